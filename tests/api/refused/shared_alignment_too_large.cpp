// Shared memory is aligned to 128 bytes.
#include <leveret/leveret.hpp>

#ifdef RIGHT
struct alignas(128) element {
  char bytes[256];
};
#else
struct alignas(256) element {
  char bytes[256];
};
#endif

lev::shared_array<element> make() {
  return lev::shared_array<element>(3);
}
