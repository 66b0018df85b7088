// A function becomes a procedure by LEV_PROCEDURE or lev::define().
#include <leveret/leveret.hpp>

void twice(int x, lev::result<int> y) {
  y = 2 * x;
}
LEV_PROCEDURE(twice);

void program(lev::runtime& r, int& x) {
#ifdef RIGHT
  r.submit<twice>(1, x);
#else
  r.submit(twice, 1, x);
#endif
}
