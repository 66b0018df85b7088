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

// Whether one of two tasks must follow the other.
bool do_conflict(const argument& a, const argument& b) {
  return (is_output(a) || is_output(b)) && do_overlap(a, b);
}

using tasks = std::set<std::uint32_t>;

tasks conflicts_of(memory_uses& uses, const argument& a) {
  tasks found;
  uses.look_up(&a, 1);
  uses.visit_conflicts([&](std::uint32_t task) { found.insert(task); });
  return found;
}
unsigned visits_of(memory_uses& uses, const argument& a) {
  unsigned visits = 0;
  uses.look_up(&a, 1);
  uses.visit_conflicts([&](std::uint32_t) { ++visits; });
  return visits;
}
void add(memory_uses& uses, const argument& a, std::uint32_t task) {
  uses.look_up(&a, 1);
  uses.add(task);
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
      add(uses, a, task);
      all.push_back(a);
    }
    for (int i = 0; i < 100; ++i) {
      const argument a = some_memory(random);
      tasks expected;
      for (std::uint32_t task = 0; task < 100; ++task) {
        if (do_conflict(a, all[task])) expected.insert(task);
      }
      ASSERT_EQ(conflicts_of(uses, a), expected);
    }
  }
}

// The program of a test: tasks, each with the memory that it names, and those that it follows, over
// others, too. A task may be gone when those that it follows are.
struct program {
  memory_uses uses;
  std::vector<argument> named;
  std::vector<tasks> follows;
  tasks gone;

  // The tasks found are under way and conflict; whoever follows them follows all that conflict.
  void submit(const argument& a) {
    const auto task = static_cast<std::uint32_t>(named.size());
    tasks followed;
    for (const std::uint32_t before : conflicts_of(uses, a)) {
      ASSERT_TRUE(do_conflict(a, named[before]) && gone.count(before) == 0);
      followed.insert(before);
      followed.insert(follows[before].begin(), follows[before].end());
    }
    for (std::uint32_t before = 0; before < task; ++before) {
      ASSERT_TRUE(!do_conflict(a, named[before]) || gone.count(before) + followed.count(before) > 0)
          << task << " does not follow " << before;
    }
    named.push_back(a);
    follows.push_back(followed);
    uses.add(task);
  }
  void end_some(random_source& random) {
    for (std::uint32_t task = 0; task < named.size(); ++task) {
      bool may_end = random.below(3) != 0;
      for (const std::uint32_t before : follows[task]) may_end &= gone.count(before) != 0;
      if (may_end) gone.insert(task);
    }
    uses.drop([this](std::uint32_t task) { return gone.count(task) != 0; });
  }
};

TEST(memory_uses, what_is_forgotten_is_followed_all_the_same) {
  random_source random(11);
  for (int round = 0; round < 50; ++round) {
    program p;
    for (int i = 0; i < 80; ++i) ASSERT_NO_FATAL_FAILURE(p.submit(some_memory(random)));
  }
}

// As most programs are: a few places, named again and again, most of which meet no other.
TEST(memory_uses, the_same_regions_are_used_by_many_while_tasks_end) {
  random_source random(13);
  for (int round = 0; round < 100; ++round) {
    program p;
    std::vector<argument> places;
    for (int i = 0; i < 8; ++i) places.push_back(memory_at(kind::in, origin + i * 4096, 512));
    for (int i = 0; i < 4; ++i) places.push_back(some_memory(random));
    for (int i = 0; i < 120; ++i) {
      argument a = places[random.below(random.below(8) == 0 ? places.size() : 8)];
      a.what = random.below(2) == 0 ? kind::in : kind::inout;
      ASSERT_NO_FATAL_FAILURE(p.submit(a));
      if (random.below(10) == 0) p.end_some(random);
    }
  }
}

TEST(memory_uses, a_block_that_is_written_again_and_again_is_found_once) {
  memory_uses uses;
  const argument block = memory_at(kind::inout, origin, 64, 8, 512);
  const argument part = memory_at(kind::in, origin + 8, 8);
  const argument whole = memory_at(kind::out, origin, 8 * 512);
  for (std::uint32_t task = 0; task < 100; ++task) add(uses, block, task);
  EXPECT_EQ(visits_of(uses, block), 1u);
  for (std::uint32_t task = 100; task < 110; ++task) add(uses, part, task);
  EXPECT_EQ(visits_of(uses, part), 1u);
  EXPECT_EQ(visits_of(uses, whole), 11u);
  add(uses, whole, 200);
  EXPECT_EQ(visits_of(uses, whole), 1u);
  EXPECT_EQ(conflicts_of(uses, part), tasks{200});
  uses.drop([](std::uint32_t task) { return task == 200; });
  EXPECT_TRUE(conflicts_of(uses, block).empty());
}

TEST(memory_uses, a_region_without_users_is_kept_for_one_more_drop) {
  memory_uses uses;
  const argument block = memory_at(kind::inout, origin, 64);
  const argument other = memory_at(kind::in, origin + 64, 64);
  const auto all = [](std::uint32_t) { return true; };
  add(uses, block, 1);
  add(uses, other, 2);
  EXPECT_EQ(uses.regions(), 2u);
  uses.drop(all);
  EXPECT_EQ(uses.regions(), 2u);
  EXPECT_TRUE(conflicts_of(uses, block).empty());  // it is looked up, and may be added
  uses.drop(all);
  uses.drop(all);
  EXPECT_EQ(uses.regions(), 1u);
  uses.add(3);
  EXPECT_EQ(conflicts_of(uses, block), tasks{3});
  uses.forget_all();
  uses.forget_all();
  EXPECT_EQ(uses.regions(), 0u);
  EXPECT_TRUE(conflicts_of(uses, block).empty());
}

TEST(memory_uses, a_region_that_a_task_meets_is_kept_until_it_is_added) {
  memory_uses uses;
  const argument block = memory_at(kind::inout, origin, 64);
  const argument whole = memory_at(kind::inout, origin, 512);
  const auto all = [](std::uint32_t) { return true; };
  add(uses, block, 1);
  uses.drop(all);
  uses.look_up(&whole, 1);
  uses.drop(all);
  uses.drop(all);
  EXPECT_EQ(uses.regions(), 2u);
  uses.add(2);
  EXPECT_EQ(conflicts_of(uses, block), tasks{2});
}

TEST(memory_uses, values_and_nothing_are_no_memory) {
  memory_uses uses;
  argument none[3];
  none[1] = memory_at(kind::out, 0, 0);
  none[2].what = kind::result;
  none[2].address = origin;
  none[2].row_bytes = none[2].unit_bytes = 8;
  none[2].rows = 1;
  uses.look_up(none, 3);
  uses.add(1);
  EXPECT_EQ(uses.regions(), 1u);
}

TEST(memory_uses, at_the_ends_of_the_address_space) {
  memory_uses uses;
  const std::uint64_t top = ~std::uint64_t{0};
  const argument low = memory_at(kind::out, 1, 4), high = memory_at(kind::out, top - 9, 8);
  const argument most = memory_at(kind::in, 1, top - 2);
  add(uses, low, 1);
  add(uses, high, 2);
  EXPECT_EQ(conflicts_of(uses, most), (tasks{1, 2}));
  add(uses, most, 3);
  EXPECT_EQ(conflicts_of(uses, memory_at(kind::inout, top - 5, 2)), (tasks{2, 3}));
}

}  // namespace
}  // namespace lev
