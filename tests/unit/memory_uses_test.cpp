// Tests of memory_uses: who conflicts is found among uses of all lengths, as by comparing with each
// of them; what is covered or gone is forgotten.
#include "flow/memory_uses.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/random.hpp"

namespace lev {
namespace {

constexpr std::uint64_t origin = 1 << 20;

argument memory_at(kind what, std::uint64_t address, std::uint64_t row_bytes,
                   std::uint32_t rows = 1, std::int64_t stride = 0) {
  argument a;
  a.what = what;
  a.address = address;
  a.row_bytes = row_bytes;
  a.rows = rows;
  a.stride_bytes = rows == 1 ? static_cast<std::int64_t>(row_bytes) : stride;
  return a;
}

std::set<std::uint32_t> conflicts_of(const memory_uses& uses, const argument& a) {
  std::set<std::uint32_t> tasks;
  uses.visit_conflicts(a, [&](std::uint32_t task) { tasks.insert(task); });
  return tasks;
}

// From a byte to a quarter of all there is, in rows or not.
argument some_memory(random_source& random) {
  const kind kinds[] = {kind::in, kind::out, kind::inout};
  const kind what = kinds[random.below(3)];
  const std::uint64_t bytes = 1 + random.below(1u << random.below(14));
  const std::uint64_t at = origin + random.below(1 << 14);
  if (random.below(2) == 0) return memory_at(what, at, bytes);
  const std::uint64_t row = 1 + bytes / 8;
  return memory_at(what, at, row, 2 + random.below(8),
                   static_cast<std::int64_t>(row + random.below(500)));
}

TEST(memory_uses, finds_as_many_as_comparing_with_each) {
  random_source random(7);
  for (int round = 0; round < 50; ++round) {
    memory_uses uses;
    std::vector<argument> all;
    for (std::uint32_t task = 0; task < 100; ++task) {
      argument a = some_memory(random);
      a.what = kind::in;  // covers nobody
      uses.add(memory_uses::list_of(&a, 1), task);
      all.push_back(a);
    }
    ASSERT_EQ(uses.size(), 100u);
    for (int i = 0; i < 100; ++i) {
      const argument a = some_memory(random);
      std::set<std::uint32_t> expected;
      for (std::uint32_t task = 0; task < 100; ++task) {
        if (do_conflict(a, all[task])) expected.insert(task);
      }
      ASSERT_EQ(conflicts_of(uses, a), expected);
    }
  }
}

// Whoever follows the tasks that are found follows, over them, all that conflict with it.
TEST(memory_uses, what_is_forgotten_is_followed_all_the_same) {
  random_source random(11);
  for (int round = 0; round < 50; ++round) {
    memory_uses uses;
    std::vector<argument> all;
    std::vector<std::set<std::uint32_t>> reached;
    for (std::uint32_t task = 0; task < 80; ++task) {
      const argument a = some_memory(random);
      std::set<std::uint32_t> found;
      for (const std::uint32_t before : conflicts_of(uses, a)) {
        found.insert(before);
        found.insert(reached[before].begin(), reached[before].end());
      }
      for (std::uint32_t before = 0; before < task; ++before) {
        ASSERT_TRUE(!do_conflict(a, all[before]) || found.count(before) == 1);
      }
      all.push_back(a);
      reached.push_back(found);
      uses.add(memory_uses::list_of(&a, 1), task);
    }
  }
}

TEST(memory_uses, a_block_that_is_written_again_and_again_is_kept_once) {
  memory_uses uses;
  const argument block = memory_at(kind::inout, origin, 64, 8, 512);
  const argument part = memory_at(kind::in, origin + 8, 8);
  const argument whole = memory_at(kind::out, origin, 8 * 512);
  for (std::uint32_t task = 0; task < 100; ++task) uses.add(memory_uses::list_of(&block, 1), task);
  EXPECT_EQ(uses.size(), 1u);
  for (std::uint32_t task = 100; task < 110; ++task) uses.add(memory_uses::list_of(&part, 1), task);
  EXPECT_EQ(uses.size(), 11u);
  uses.add(memory_uses::list_of(&whole, 1), 200);
  EXPECT_EQ(uses.size(), 1u);
  EXPECT_EQ(conflicts_of(uses, part), std::set<std::uint32_t>{200});
  uses.drop([](std::uint32_t task) { return task == 200; });
  EXPECT_EQ(uses.size(), 0u);
  EXPECT_TRUE(conflicts_of(uses, block).empty());
}

TEST(memory_uses, values_and_nothing_are_no_memory) {
  argument none[3];
  none[1] = memory_at(kind::out, 0, 0);
  none[2].what = kind::result;
  none[2].address = origin;
  none[2].row_bytes = none[2].unit_bytes = 8;
  EXPECT_EQ(memory_uses::list_of(none, 3).size(), 1u);
}

TEST(memory_uses, at_the_ends_of_the_address_space) {
  memory_uses uses;
  const std::uint64_t top = ~std::uint64_t{0};
  const argument low = memory_at(kind::out, 1, 4), high = memory_at(kind::out, top - 9, 8);
  const argument most = memory_at(kind::in, 1, top - 2);
  uses.add(memory_uses::list_of(&low, 1), 1);
  uses.add(memory_uses::list_of(&high, 1), 2);
  EXPECT_EQ(conflicts_of(uses, most), (std::set<std::uint32_t>{1, 2}));
  uses.add(memory_uses::list_of(&most, 1), 3);
  EXPECT_EQ(conflicts_of(uses, memory_at(kind::inout, top - 5, 2)),
            (std::set<std::uint32_t>{2, 3}));
}

}  // namespace
}  // namespace lev
