// The elements of a temporary are gone when the pieces run.
#include <leveret/leveret.hpp>

#include <vector>

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p) {
#ifdef RIGHT
  const std::vector<int> x(100);
  r.submit(p, lev::sliced(x)).wait();
#else
  r.submit(p, lev::sliced(std::vector<int>(100))).wait();
#endif
}
