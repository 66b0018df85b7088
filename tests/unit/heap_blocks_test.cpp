// The blocks of the shared heap, against a map of which 64 bytes are in use.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "share/heap_blocks.hpp"

namespace lev {
namespace {

constexpr std::uintptr_t heap_begin = 0x10000;
constexpr std::size_t block_unit = 64;

// The smallest gap that is large enough, the first of several; -1: none.
int best_gap(const std::vector<bool>& used, std::size_t units) {
  int best = -1;
  std::size_t best_units = used.size() + 1;
  for (std::size_t i = 0; i < used.size();) {
    std::size_t end = i;
    while (end < used.size() && !used[end]) ++end;
    if (end - i >= units && end - i < best_units) {
      best = static_cast<int>(i);
      best_units = end - i;
    }
    i = end + 1;
  }
  return best;
}

TEST(heap_blocks_test, the_smallest_gap_that_is_large_enough_is_taken) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    std::vector<bool> used(64 + random.below(200));
    heap_blocks blocks;
    blocks.add(heap_begin, used.size() * block_unit);
    std::map<std::uintptr_t, std::size_t> taken;
    for (int step = 0; step < 600; ++step) {
      if (!taken.empty() && random.below(5) < 2) {
        auto one = taken.begin();
        std::advance(one, random.below(static_cast<std::uint32_t>(taken.size())));
        ASSERT_EQ(blocks.used(one->first), one->second * block_unit);
        blocks.give(one->first);
        ASSERT_EQ(blocks.used(one->first), 0u);
        const std::size_t first = (one->first - heap_begin) / block_unit;
        for (std::size_t i = 0; i < one->second; ++i) used[first + i] = false;
        taken.erase(one);
        continue;
      }
      const std::size_t units = 1 + random.below(12);
      const int gap = best_gap(used, units);
      const std::uintptr_t begin = blocks.find(units * block_unit);
      ASSERT_EQ(begin, gap < 0 ? 0 : heap_begin + static_cast<std::size_t>(gap) * block_unit);
      if (gap < 0) continue;
      blocks.take(begin, units * block_unit);
      for (std::size_t i = 0; i < units; ++i) used[static_cast<std::size_t>(gap) + i] = true;
      taken[begin] = units;
    }
    for (const auto& [begin, units] : taken) blocks.give(begin);
    EXPECT_EQ(blocks.find(used.size() * block_unit), heap_begin) << "it is one block again";
  }
}

TEST(heap_blocks_test, what_begins_inside_a_block_is_none) {
  heap_blocks blocks;
  blocks.add(heap_begin, 10 * block_unit);
  blocks.take(heap_begin, 4 * block_unit);
  EXPECT_EQ(blocks.used(heap_begin), 4 * block_unit);
  EXPECT_EQ(blocks.used(heap_begin + block_unit), 0u);
  EXPECT_EQ(blocks.used(heap_begin + 4 * block_unit), 0u) << "it is free";
  EXPECT_EQ(blocks.find(7 * block_unit), 0u);
  blocks.clear();
  EXPECT_EQ(blocks.find(block_unit), 0u);
}

}  // namespace
}  // namespace lev
