// A procedure's result is one of its parameters.
#include <leveret/leveret.hpp>

void program() {
#ifdef RIGHT
  lev::define("p", [](int x, lev::result<int> y) { y = 2 * x; });
#else
  lev::define("p", [](int x) { return 2 * x; });
#endif
}
