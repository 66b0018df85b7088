// Elements that own memory cannot be copied byte by byte.
#include <leveret/leveret.hpp>

#include <string>

#ifdef RIGHT
using element = char;
#else
using element = std::string;
#endif

const auto p = lev::define("p", [](lev::in<element>) {});
