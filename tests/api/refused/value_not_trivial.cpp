// A value travels as bytes: what owns memory cannot.
#include <leveret/leveret.hpp>

#include <string>

#ifdef RIGHT
using value = char;
#else
using value = std::string;
#endif

const auto p = lev::define("p", [](value) {});
