// Far memory's elements are aligned as a get()'s buffer at most.
#include <leveret/leveret.hpp>

#ifdef RIGHT
struct alignas(128) node {
  char bytes[256];
};
#else
struct alignas(256) node {
  char bytes[256];
};
#endif

const auto p = lev::define("p", [](lev::far<const node>) {});
