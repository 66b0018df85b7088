// A result is a few bytes; more is an output.
#include <leveret/leveret.hpp>

struct data {
#ifdef RIGHT
  char bytes[16];
#else
  char bytes[17];
#endif
};

const auto p = lev::define("p", [](lev::result<data>) {});
