// A procedure's result is one of its parameters.
#include <leveret/leveret.hpp>

#ifdef RIGHT
void twice(int x, lev::result<int> y) {
  y = 2 * x;
}
#else
int twice(int x) {
  return 2 * x;
}
#endif
LEV_PROCEDURE(twice);
