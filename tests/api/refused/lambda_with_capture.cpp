// A procedure is a plain function: a lambda that captures something is none.
#include <leveret/leveret.hpp>

void program(int x) {
#ifdef RIGHT
  static_cast<void>(x);
  lev::define("p", [](lev::result<int> y) { y = 1; });
#else
  lev::define("p", [x](lev::result<int> y) { y = x; });
#endif
}
