// The elements of a std::array may be const, and are inside of it all the same.
#include <leveret/leveret.hpp>

#include <array>

std::array<const int, 4> make();

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p) {
#ifdef RIGHT
  const auto x = make();
  r.submit(p, x).wait();
#else
  r.submit(p, make()).wait();
#endif
}
