// A result needs a variable to go to.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, lev::procedure<void(lev::result<int>)> p) {
#ifdef RIGHT
  int x = 0;
  r.submit(p, x).wait();
#else
  r.submit(p, 5).wait();
#endif
}
