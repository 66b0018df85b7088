// Memory is named by where it begins and how much of it there is.
#include <leveret/leveret.hpp>

#include <vector>

void program(lev::runtime& r, lev::procedure<void(lev::inout<float>)> p, std::vector<float>& x) {
#ifdef RIGHT
  r.submit(p, lev::view(&x[0], 1));
#else
  r.submit(p, x[0]);
#endif
}
