// The elements of a temporary are gone when the task runs.
#include <leveret/leveret.hpp>

#include <vector>

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p) {
#ifdef RIGHT
  const std::vector<int> x(100);
  r.submit(p, x).wait();
#else
  r.submit(p, std::vector<int>(100)).wait();
#endif
}
