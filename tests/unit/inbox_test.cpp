// Tests of inbox by one thread: youngest first for the owner, oldest first for thieves, and its
// bound. What threads do to each other is the business of tests/model and tests/stress.
#include <gtest/gtest.h>
#include <leveret/config.hpp>

#include <cstdint>
#include <deque>

#include "base/random.hpp"
#include "queue/inbox.hpp"
#include "worker/participant.hpp"

namespace lev {
namespace {

TEST(inbox, owner_takes_the_youngest_thief_the_oldest) {
  inbox<> box;
  for (std::uint32_t i = 1; i <= 4; ++i) ASSERT_TRUE(box.try_push(i, false));
  std::uint32_t value = 0;
  ASSERT_TRUE(box.try_pop(&value));
  EXPECT_EQ(value, 4u);
  ASSERT_TRUE(box.try_steal(&value));
  EXPECT_EQ(value, 1u);
  ASSERT_TRUE(box.try_steal(&value));
  EXPECT_EQ(value, 2u);
  ASSERT_TRUE(box.try_pop(&value));
  EXPECT_EQ(value, 3u);
  EXPECT_FALSE(box.try_pop(&value));
  EXPECT_FALSE(box.try_steal(&value));
  EXPECT_TRUE(box.looks_empty());
}

TEST(inbox, says_when_it_is_full) {
  inbox<real_env, 8> box;
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(box.room(), 8 - i);
    ASSERT_TRUE(box.try_push(i, i % 2 == 0));
  }
  EXPECT_EQ(box.room(), 0u);
  EXPECT_FALSE(box.try_push(9, true));
  std::uint32_t value = 0;
  ASSERT_TRUE(box.try_steal(&value));
  EXPECT_EQ(box.room(), 1u);
  EXPECT_TRUE(box.try_push(9, true));
}

TEST(inbox, random_use_agrees_with_a_deque) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    inbox<real_env, 16> box;
    std::deque<std::uint32_t> expected;
    for (std::uint32_t turn = 0; turn < 5000; ++turn) {
      std::uint32_t value = 0;
      switch (random.below(4)) {
        case 0:
        case 1:
          ASSERT_EQ(box.try_push(turn, random.below(2) == 0), expected.size() < 16);
          if (expected.size() < 16) expected.push_back(turn);
          break;
        case 2:
          ASSERT_EQ(box.try_pop(&value), !expected.empty());
          if (expected.empty()) break;
          ASSERT_EQ(value, expected.back());
          expected.pop_back();
          break;
        default:
          ASSERT_EQ(box.try_steal(&value), !expected.empty());
          if (expected.empty()) break;
          ASSERT_EQ(value, expected.front());
          expected.pop_front();
      }
      ASSERT_EQ(box.looks_empty(), expected.empty());
      ASSERT_EQ(box.room(), 16 - expected.size());
    }
  }
}

// One that finds no room queues behind everybody's tasks, and its parent waits for that long.
TEST(inbox, a_participants_own_holds_what_a_deep_recursion_leaves_waiting) {
  constexpr std::uint32_t children_to_come = 7;
  EXPECT_GE(inbox_capacity, children_to_come * config{}.nest_max);
}

}  // namespace
}  // namespace lev
