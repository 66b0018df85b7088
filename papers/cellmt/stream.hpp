// CellMT's synthetic benchmark (section 5): blocks are got, computed on, and put back, by simple
// buffering (Listing 1), double buffering (Listing 3) or threads (Listing 1 with Listing 2's wait).
#pragma once

#include <leveret_papers/world.hpp>

namespace leveret_papers {

enum class buffering { single, twofold, threads };

struct stream {
  buffering how = buffering::single;
  unsigned threads = 1;
  std::uint32_t bytes = 128;  // of a block
  double cycles_per_byte = 0;
  bool is_put_back = false;
  unsigned spes = 16;
  const char* machine = "cell-qs20";
};

// Bytes that are processed in a second by all those SPEs, start and end included.
double bytes_per_second(world& w, const stream& what);

// How many threads with a block of that size each fit into a local store.
unsigned threads_that_fit(world& w, std::uint32_t bytes);

}  // namespace leveret_papers
