// The elements of a temporary array are gone when the pieces run.
#include <leveret/leveret.hpp>

#include <array>

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p) {
#ifdef RIGHT
  const std::array<int, 4> x = {1, 2, 3, 4};
  r.submit(p, lev::sliced(x)).wait();
#else
  r.submit(p, lev::sliced(std::array<int, 4>{1, 2, 3, 4})).wait();
#endif
}
