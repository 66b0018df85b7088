// 18 parameters are possible.
#include <leveret/leveret.hpp>

#ifdef RIGHT
void f(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int) {}
#else
void f(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int,
       int) {}
#endif

const auto p = lev::define("p", &f);
