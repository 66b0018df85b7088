// A task is a call of a procedure: a lambda that uses what is around it is none.
#include <leveret/leveret.hpp>

void program(lev::runtime& r, int& x) {
#ifdef RIGHT
  r.submit(lev::define("p", [](lev::result<int> y) { y = 1; }), x);
#else
  r.submit([&] { x = 1; });
#endif
}
