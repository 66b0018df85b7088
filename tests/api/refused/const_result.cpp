// A result cannot go to a constant.
#include <leveret/leveret.hpp>

#ifdef RIGHT
using place = int;
#else
using place = const int;
#endif

void program(lev::runtime& r, lev::procedure<void(lev::result<int>)> p, place& x) {
  r.submit(p, x);
}
