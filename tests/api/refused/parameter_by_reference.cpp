// A reference does not say whether the task reads or writes.
#include <leveret/leveret.hpp>

#ifdef RIGHT
const auto p = lev::define("p", [](lev::result<int> x) { x = 1; });
#else
const auto p = lev::define("p", [](int& x) { x = 1; });
#endif
