// A pointer does not say how much the task reads or writes.
#include <leveret/leveret.hpp>

#ifdef RIGHT
const auto p = lev::define("p", [](lev::inout<int> x) { x[0] = 1; });
#else
const auto p = lev::define("p", [](int* x) { *x = 1; });
#endif
