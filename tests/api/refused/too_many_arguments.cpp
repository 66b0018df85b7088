// One argument is too many.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, lev::procedure<void(int, int)> p) {
#ifdef RIGHT
  r.submit(p, 1, 2);
#else
  r.submit(p, 1, 2, 3);
#endif
}
