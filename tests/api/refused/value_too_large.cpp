// A value has at most 16 bytes.
#include <leveret/leveret.hpp>

struct value {
#ifdef RIGHT
  char bytes[16];
#else
  char bytes[17];
#endif
};

const auto p = lev::define("p", [](value) {});
