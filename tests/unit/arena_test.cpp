// Tests of arena: random allocations and releases against a plain list of the blocks in use.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "store/arena.hpp"

namespace lev {
namespace {

struct block {
  std::size_t begin;
  std::size_t end;
};

// The widest gap between blocks of an arena of `bytes`.
std::size_t widest_gap(std::vector<block> used, std::size_t bytes) {
  std::sort(used.begin(), used.end(), [](block a, block b) { return a.begin < b.begin; });
  std::size_t from = 0;
  std::size_t widest = 0;
  for (const block& b : used) {
    widest = std::max(widest, b.begin - from);
    from = b.end;
  }
  return std::max(widest, bytes - from);
}

void check_allocation(arena& a, std::vector<block>& used, std::size_t wanted, std::size_t bytes) {
  const std::size_t rounded = round_up(wanted, arena::alignment);
  const bool fits = used.size() < arena::blocks_max && widest_gap(used, bytes) >= rounded;
  const std::size_t offset = a.allocate(wanted);
  ASSERT_EQ(offset != arena::none, fits) << wanted << " bytes, " << used.size() << " blocks";
  if (!fits) return;
  ASSERT_EQ(offset % arena::alignment, 0u);
  ASSERT_LE(offset + rounded, bytes);
  for (const block& b : used) ASSERT_TRUE(offset + rounded <= b.begin || offset >= b.end);
  used.push_back({offset, offset + rounded});
}

TEST(arena, random_use_agrees_with_a_list_of_blocks) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    const std::size_t bytes = std::size_t{4096} << random.below(7);
    arena a;
    a.open(bytes);
    std::vector<block> used;
    for (int turn = 0; turn < 2000; ++turn) {
      if (!used.empty() && random.below(2) == 0) {
        const std::size_t victim = random.below(static_cast<std::uint32_t>(used.size()));
        a.release(used[victim].begin);
        used.erase(used.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        const std::size_t wanted = 1 + random.below(static_cast<std::uint32_t>(bytes / 4));
        ASSERT_NO_FATAL_FAILURE(check_allocation(a, used, wanted, bytes));
      }
      ASSERT_EQ(a.blocks(), used.size());
    }
  }
}

TEST(arena, can_be_filled_to_the_last_byte) {
  arena a;
  a.open(8192);
  EXPECT_EQ(a.allocate(8192), 0u);
  EXPECT_EQ(a.allocate(1), arena::none);
  a.release(0);
  EXPECT_EQ(a.allocate(8193), arena::none);
  EXPECT_EQ(a.blocks(), 0u);
}

TEST(arena, has_a_bounded_number_of_blocks) {
  arena a;
  a.open(1 << 20);
  for (std::uint32_t i = 0; i < arena::blocks_max; ++i) EXPECT_NE(a.allocate(1), arena::none);
  EXPECT_EQ(a.allocate(1), arena::none);
  a.release(0);
  EXPECT_EQ(a.allocate(1), 0u);
}

TEST(arena, refuses_absurd_sizes) {
  arena a;
  a.open(4096);
  EXPECT_EQ(a.allocate(std::size_t{1} << 63), arena::none);
  EXPECT_EQ(a.allocate(~std::size_t{0} - 200), arena::none);
  EXPECT_EQ(a.allocate(100), 0u);
  EXPECT_EQ(a.allocate(~std::size_t{0} - 200), arena::none);
}

TEST(arena, aligns_blocks_and_uses_the_gaps_between_them) {
  arena a;
  a.open(16384);
  EXPECT_EQ(a.allocate(100), 0u);
  EXPECT_EQ(a.allocate(100, 4096), 4096u);
  EXPECT_EQ(a.allocate(100, 64), 128u);
  EXPECT_EQ(a.allocate(100, 512), 512u);
  EXPECT_EQ(a.allocate(4000, 2048), 6144u);
  EXPECT_EQ(a.allocate(4096, 4096), 12288u);
  EXPECT_EQ(a.allocate(1, 4096), arena::none);
  EXPECT_EQ(a.allocate(1, 1024), 1024u);
  a.release(4096);
  EXPECT_EQ(a.allocate(1, 4096), 4096u);
}

using arena_death_test = testing::Test;

TEST(arena_death_test, releasing_what_was_not_allocated_is_caught) {
  arena a;
  a.open(4096);
  EXPECT_DEATH(a.release(128), "place < count_");
}

}  // namespace
}  // namespace lev
