// A host of a shared pool that does what a seed says, for pool_exercise.cpp, and what must come of
// it whatever the other hosts of the pool do.
#pragma once

#include <atomic>
#include <cstdint>

namespace lev::test {

// In memory that the driver and all hosts share.
struct pool_world {
  // Of workers or their keeper, by the driver.
  std::atomic<std::uint64_t> kills_begun{0};
  std::atomic<std::uint64_t> kills_done{0};
};

struct script {
  const char* pool;
  std::uint64_t seed;
  std::uint32_t host;
  bool is_confined;
  bool is_told;  // every step is printed
  pool_world* world;
};

// run_script() returns when the host has left the pool. What must not be is printed, and ends the
// process with 1.
void run_script(const script& s);

}  // namespace lev::test
