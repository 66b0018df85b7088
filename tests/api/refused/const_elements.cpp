// The elements of an input are const anyway.
#include <leveret/leveret.hpp>

#ifdef RIGHT
const auto p = lev::define("p", [](lev::in<float>) {});
#else
const auto p = lev::define("p", [](lev::in<const float>) {});
#endif
