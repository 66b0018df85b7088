// The backlog: the last task comes first, whole, and its memory goes with it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "flow/backlog.hpp"

namespace lev {
namespace {

// A task that can be told from others by any of its arguments.
backlog_task task_of_number(std::uint32_t n, argument* arguments) {
  backlog_task t;
  t.procedure = 7;
  t.argument_count = static_cast<std::uint8_t>(n % (argument_count_max + 1));
  t.priority = static_cast<std::int32_t>(n);
  t.parent = n + 1;
  t.parent_generation = static_cast<std::uint16_t>(n);
  t.lock_count = n % 2;
  t.locks[0] = static_cast<mutex_id>(n % 5);
  for (unsigned i = 0; i < t.argument_count; ++i) arguments[i].address = n * 100 + i;
  return t;
}

bool is_whole(const backlog_task& t, const argument* arguments) {
  const auto n = static_cast<std::uint32_t>(t.priority);
  argument expected[argument_count_max];
  const backlog_task e = task_of_number(n, expected);
  bool is_same = t.procedure == e.procedure && t.argument_count == e.argument_count &&
                 t.parent == e.parent && t.parent_generation == e.parent_generation &&
                 t.lock_count == e.lock_count && t.locks[0] == e.locks[0];
  for (unsigned i = 0; i < t.argument_count; ++i)
    is_same &= arguments[i].address == expected[i].address;
  return is_same;
}

bool pop(backlog& from, backlog_task* t, argument* arguments, bool with_locks = false) {
  return from.pop(with_locks, t, arguments, [] { return true; });
}

// What a task needs is asked for if there is one, and only then; without it, the task stays.
TEST(backlog_test, asks_for_what_a_task_needs) {
  backlog b;
  argument arguments[argument_count_max];
  backlog_task t = task_of_number(3, arguments);
  int asked = 0;
  const auto get = [&] { return ++asked > 1; };
  EXPECT_FALSE(b.pop(false, &t, arguments, get));
  EXPECT_EQ(asked, 0);
  ASSERT_TRUE(b.push(t, arguments));
  EXPECT_FALSE(b.pop(false, &t, arguments, get));
  EXPECT_TRUE(b.pop(false, &t, arguments, get));
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(is_whole(t, arguments));
}

TEST(backlog_test, gives_back_the_last_task_first_and_whole) {
  backlog b;
  argument arguments[argument_count_max];
  backlog_task t;
  EXPECT_FALSE(pop(b, &t, arguments));
  for (const std::uint32_t count : {1u, 5'000u, 17u, 20'000u}) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const backlog_task pushed = task_of_number(i, arguments);
      ASSERT_TRUE(b.push(pushed, arguments));
    }
    EXPECT_EQ(b.size(), count);
    for (std::uint32_t i = count; i-- > 0;) {
      ASSERT_FALSE(b.looks_empty());
      ASSERT_TRUE(pop(b, &t, arguments));
      ASSERT_EQ(t.priority, static_cast<std::int32_t>(i));
      ASSERT_TRUE(is_whole(t, arguments)) << i;
    }
    EXPECT_TRUE(b.looks_empty());
    EXPECT_FALSE(pop(b, &t, arguments));
  }
}

// Up and down over the edge of a piece of memory.
TEST(backlog_test, keeps_its_order_at_the_edges_of_its_memory) {
  backlog b;
  std::vector<std::uint32_t> expected;
  argument arguments[argument_count_max];
  backlog_task t;
  std::uint32_t next = 0;
  for (std::uint32_t round = 0; round < 20'000; ++round) {
    const std::uint32_t ups = round % 7, downs = round % 6;
    for (std::uint32_t i = 0; i < ups; ++i) {
      const backlog_task pushed = task_of_number(next, arguments);
      ASSERT_TRUE(b.push(pushed, arguments));
      expected.push_back(next++);
    }
    for (std::uint32_t i = 0; i < downs && !expected.empty(); ++i) {
      ASSERT_TRUE(pop(b, &t, arguments));
      ASSERT_EQ(t.priority, static_cast<std::int32_t>(expected.back()));
      ASSERT_TRUE(is_whole(t, arguments));
      expected.pop_back();
    }
  }
  while (pop(b, &t, arguments)) expected.pop_back();
  EXPECT_TRUE(expected.empty());
}

TEST(backlog_test, tasks_with_mutexes_are_a_pile_of_their_own) {
  backlog b;
  argument arguments[argument_count_max];
  backlog_task t;
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    backlog_task pushed = task_of_number(i, arguments);
    if (i % 3 == 0) pushed.flags = task_has_locks;
    ASSERT_TRUE(b.push(pushed, arguments));
  }
  for (const bool with_locks : {true, false}) {
    EXPECT_TRUE(b.has(with_locks));
    for (std::uint32_t i = 3'000; i-- > 0;) {
      if ((i % 3 == 0) != with_locks) continue;
      ASSERT_TRUE(pop(b, &t, arguments, with_locks));
      ASSERT_EQ(t.priority, static_cast<std::int32_t>(i));
    }
    EXPECT_FALSE(b.has(with_locks));
    EXPECT_FALSE(pop(b, &t, arguments, with_locks));
  }
  EXPECT_TRUE(b.looks_empty());
}

TEST(backlog_test, loses_and_doubles_nothing_between_threads) {
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t each = 20'000;
  backlog b;
  std::vector<std::atomic<std::uint32_t>> seen(threads * each);
  std::atomic<std::uint32_t> broken{0};
  const auto take = [&] {
    argument arguments[argument_count_max];
    backlog_task t;
    if (!pop(b, &t, arguments)) return false;
    broken += !is_whole(t, arguments);
    ++seen[static_cast<std::uint32_t>(t.priority)];
    return true;
  };
  std::vector<std::thread> all;
  for (std::uint32_t n = 0; n < threads; ++n) {
    all.emplace_back([&, n] {
      argument arguments[argument_count_max];
      for (std::uint32_t i = 0; i < each; ++i) {
        const backlog_task t = task_of_number(n * each + i, arguments);
        broken += !b.push(t, arguments);
        if (i % 3 != 0) take();
      }
    });
  }
  for (std::thread& t : all) t.join();
  while (take()) {
  }
  EXPECT_EQ(broken, 0u);
  std::uint32_t wrong = 0;
  for (const auto& n : seen) wrong += n != 1;
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace lev
