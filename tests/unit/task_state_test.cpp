// Tests of task_state by one thread: every transition of the word, and every one that must not
// happen. What threads do to each other is the business of tests/model.
#include <gtest/gtest.h>

#include <cstdint>

#include "task/task_state.hpp"

namespace lev {
namespace {

using bits = state_bits;
using state = task_state<>;

bool finish(state& s, status outcome) {
  std::uint64_t seen = s.word();
  return s.try_finish(seen, outcome);
}

TEST(task_state, a_task_lives_is_done_and_is_collected_once) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  EXPECT_EQ(s.peek(generation), status::pending);
  EXPECT_EQ(s.collect(generation), status::pending);
  ASSERT_TRUE(finish(s, status::task_failed));
  EXPECT_EQ(s.peek(generation), status::task_failed);
  EXPECT_EQ(s.collect(generation), status::task_failed);
  EXPECT_EQ(s.collect(generation), status::stale_ticket);
  EXPECT_EQ(s.peek(generation), status::stale_ticket);
  s.retire();
  EXPECT_EQ(s.generation(), generation + 1);
  EXPECT_EQ(s.peek(generation), status::stale_ticket);
  EXPECT_EQ(bits::phase(s.word()), bits::free);
}

TEST(task_state, an_announcement_makes_the_completer_look_again) {
  state s;
  s.open();
  std::uint64_t seen = s.word();
  ASSERT_TRUE(s.announce(s.generation(), bits::called_back));
  EXPECT_FALSE(s.try_finish(seen, status::ok));
  EXPECT_NE(seen & bits::called_back, 0u);
  EXPECT_TRUE(s.try_finish(seen, status::ok));
}

TEST(task_state, nothing_can_be_announced_to_a_done_or_stale_task) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  EXPECT_FALSE(s.announce(generation + 1, bits::called_back));
  EXPECT_FALSE(s.announce_waiter(generation + 1, 3));
  ASSERT_TRUE(finish(s, status::ok));
  EXPECT_FALSE(s.announce(generation, bits::depended_on));
  EXPECT_FALSE(s.announce_waiter(generation, 3));
  ASSERT_EQ(s.collect(generation), status::ok);
  EXPECT_FALSE(s.announce(generation, bits::depended_on));
}

TEST(task_state, one_waiter_is_named_more_are_a_crowd) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  ASSERT_TRUE(s.announce_waiter(generation, 500));
  EXPECT_EQ(bits::waiter(s.word()), 500u);
  EXPECT_EQ(s.word() & bits::crowd, 0u);
  ASSERT_TRUE(s.announce_waiter(generation, 500));
  EXPECT_EQ(s.word() & bits::crowd, 0u);
  ASSERT_TRUE(s.announce_waiter(generation, 501));
  EXPECT_NE(s.word() & bits::crowd, 0u);
  EXPECT_EQ(s.peek(generation), status::pending);
}

TEST(task_state, a_released_task_frees_itself) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  EXPECT_EQ(s.release(generation), state::release_result::left_to_completer);
  ASSERT_TRUE(finish(s, status::ok));
  EXPECT_EQ(bits::phase(s.word()), bits::free);
  EXPECT_EQ(s.generation(), generation + 1);
  EXPECT_EQ(s.release(generation), state::release_result::stale);
}

TEST(task_state, releasing_a_done_task_is_collecting_it) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  ASSERT_TRUE(finish(s, status::ok));
  EXPECT_EQ(s.release(generation), state::release_result::freed);
  s.retire();
  EXPECT_EQ(s.release(generation), state::release_result::stale);
}

TEST(task_state, opened_without_a_ticket_it_is_released_from_the_start) {
  state s;
  s.open(bits::released);
  const std::uint32_t generation = s.generation();
  ASSERT_TRUE(finish(s, status::ok));
  EXPECT_EQ(s.generation(), generation + 1);
}

TEST(task_state, a_cancellation_that_was_asked_for_is_no_outcome_yet) {
  state s;
  s.open();
  const std::uint32_t generation = s.generation();
  ASSERT_TRUE(s.announce(generation, bits::cancel_asked));
  EXPECT_EQ(s.peek(generation), status::pending);
  EXPECT_NE(s.word() & bits::cancel_asked, 0u);
  ASSERT_TRUE(finish(s, status::ok));
  EXPECT_EQ(s.collect(generation), status::ok);
}

TEST(task_state, generations_wrap) {
  state s;
  for (int i = 0; i < 1000; ++i) {
    s.open();
    const std::uint32_t generation = s.generation();
    ASSERT_EQ(generation, static_cast<std::uint32_t>(i));
    ASSERT_TRUE(finish(s, status::ok));
    ASSERT_EQ(s.collect(generation), status::ok);
    s.retire();
  }
  EXPECT_EQ(bits::generation(bits::make(0xffffffffu, bits::live)), 0xffffffffu);
  EXPECT_EQ(bits::generation(bits::make(0xffffffffu + 1u, bits::free)), 0u);
}

TEST(state_bits, fields_do_not_touch_each_other) {
  const std::uint64_t w = bits::make(0x89abcdefu, bits::done, status::bad_filter);
  EXPECT_EQ(bits::generation(w), 0x89abcdefu);
  EXPECT_EQ(bits::phase(w), bits::done);
  EXPECT_EQ(bits::outcome(w), status::bad_filter);
  EXPECT_EQ(bits::waiter(w), 0u);
  EXPECT_EQ(w & bits::flag_mask, 0u);
}

}  // namespace
}  // namespace lev
