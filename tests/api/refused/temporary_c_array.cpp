// An array of C is gone at the end of the statement like any other temporary.
#include <leveret/leveret.hpp>

using four = int[4];

void program(lev::runtime& r, lev::procedure<void(lev::in<int>)> p) {
#ifdef RIGHT
  const four x = {1, 2, 3, 4};
  r.submit(p, x).wait();
#else
  r.submit(p, four{1, 2, 3, 4}).wait();
#endif
}
