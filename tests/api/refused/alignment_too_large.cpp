// An element's alignment is at most that of a page.
#include <leveret/leveret.hpp>

#ifdef RIGHT
struct alignas(4096) page {
  char bytes[4096];
};
#else
struct alignas(8192) page {
  char bytes[8192];
};
#endif

const auto p = lev::define("p", [](lev::in<page>) {});
