// Tests of lev::interleave_flat: items that are coroutines.
#include <gtest/gtest.h>
#include <leveret/interleave_flat.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lev {
namespace {

constexpr unsigned flat_widths[] = {strands_automatic, 1, 2, 3, 16, 33, 64};

flat count_down(std::size_t from, std::size_t& sum) {
  for (; from > 0; --from) {
    co_await fetch(&from);
    sum += from;
  }
}

TEST(interleave_flat, every_width_runs_every_item_once) {
  for (const unsigned n : flat_widths) {
    for (const std::size_t count : {0u, 1u, 5u, 1000u}) {
      std::vector<std::size_t> sums(count, 0);
      interleave_flat(n, count, [&](std::size_t i) { return count_down(i % 40, sums[i]); });
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sums[i], (i % 40) * (i % 40 + 1) / 2);
    }
  }
}

flat write(char letter, std::string& seen) {
  for (int step = 0; step < 3; ++step) {
    seen += letter;
    co_await fetch(&letter);
  }
}

TEST(interleave_flat, items_take_turns) {
  std::string seen;
  interleave_flat(3, 4, [&](std::size_t i) { return write(static_cast<char>('a' + i), seen); });
  EXPECT_EQ(seen, "abcabcabcddd");
  seen.clear();
  interleave_flat(1, 3, [&](std::size_t i) { return write(static_cast<char>('a' + i), seen); });
  EXPECT_EQ(seen, "aaabbbccc");
}

flat fail_at(std::size_t i, std::size_t& ended) {
  const auto resource = std::make_unique<int>(1);
  co_await fetch(&i);
  if (i == 20) throw std::runtime_error("item 20");
  if (i > 20) throw std::logic_error("later");
  co_await fetch(&i);
  ended += static_cast<std::size_t>(*resource);
}

TEST(interleave_flat, the_first_exception_arrives_when_the_others_have_ended) {
  for (const unsigned n : flat_widths) {
    std::size_t ended = 0;
    try {
      interleave_flat(n, 1000, [&](std::size_t i) { return fail_at(i, ended); });
      ADD_FAILURE() << "nothing thrown, n = " << n;
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "item 20");
    }
    EXPECT_EQ(ended, 20u) << "n = " << n;
  }
}

TEST(interleave_flat, a_start_that_throws) {
  std::size_t sum = 0;
  const auto start = [&](std::size_t i) {
    if (i == 10) throw std::runtime_error("start");
    return count_down(3, sum);
  };
  EXPECT_THROW(interleave_flat(4, 100, start), std::runtime_error);
  EXPECT_EQ(sum, 60u);
}

flat count_down_all(items& left, std::vector<std::size_t>& sums) {
  for (const std::size_t i : left) {
    for (std::size_t from = i % 40; from > 0; --from) {
      co_await fetch(&from);
      sums[i] += from;
    }
  }
}

TEST(interleave_flat, one_coroutine_runs_many_items) {
  for (const unsigned n : flat_widths) {
    for (const std::size_t count : {0u, 1u, 5u, 1000u}) {
      std::vector<std::size_t> sums(count, 0);
      unsigned started = 0;
      interleave_flat(n, count, [&](items& left) { return ++started, count_down_all(left, sums); });
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sums[i], (i % 40) * (i % 40 + 1) / 2);
      if (n == strands_automatic) continue;
      EXPECT_EQ(started, std::min<std::size_t>(n, count));
    }
  }
}

flat write_all(items& left, std::string& seen) {
  for (const std::size_t i : left) {
    for (int step = 0; step < 3; ++step) {
      seen += static_cast<char>('a' + i);
      co_await fetch(&i);
    }
  }
}

TEST(interleave_flat, who_ends_an_item_takes_the_next) {
  std::string seen;
  interleave_flat(3, 5, [&](items& left) { return write_all(left, seen); });
  EXPECT_EQ(seen, "abcabcabcdedede");
  seen.clear();
  interleave_flat(1, 3, [&](items& left) { return write_all(left, seen); });
  EXPECT_EQ(seen, "aaabbbccc");
}

flat fail_among(items& left, std::size_t& ended) {
  const auto resource = std::make_unique<int>(1);
  for (const std::size_t i : left) {
    co_await fetch(&i);
    if (i == 20) throw std::runtime_error("item 20");
    co_await fetch(&i);
    ended += static_cast<std::size_t>(*resource);
  }
}

TEST(interleave_flat, after_a_failure_no_item_is_taken) {
  for (const unsigned n : flat_widths) {
    std::size_t ended = 0;
    EXPECT_THROW(interleave_flat(n, 1000, [&](items& left) { return fail_among(left, ended); }),
                 std::runtime_error)
        << n;
    EXPECT_GE(ended, 20u) << n;
    EXPECT_LE(ended, 20u + 64u) << n;  // those in flight went on
  }
}

// Turns are jumps, or calls that come back after each round: none of them is left on the stack.
TEST(interleave_flat, the_stack_does_not_grow_with_the_turns) {
  constexpr std::size_t turns = 1'000'000;
  std::size_t sum = 0;
  interleave_flat(2, 2, [&](std::size_t) { return count_down(turns, sum); });
  EXPECT_EQ(sum, turns * (turns + 1));
}

TEST(interleave_flat, coroutines_that_end_at_once) {
  std::size_t sum = 0;
  interleave_flat(64, 1000, [&](std::size_t i) { return count_down(i % 3, sum); });
  EXPECT_EQ(sum, 333u * 4 + 0u);
  std::vector<std::size_t> none;
  interleave_flat(16, 0, [&](items& left) { return count_down_all(left, none); });
}

TEST(interleave_flat, frames_are_kept_for_the_next_items) {
  detail::frame_store store;
  void* const first = store.take(100);
  store.give_back(first, 100);
  EXPECT_EQ(store.take(100), first);
  void* const other = store.take(200);
  store.give_back(first, 100);
  store.give_back(other, 200);  // another size: not kept
  EXPECT_EQ(store.take(100), first);
  store.give_back(first, 100);
  store.close();
}

flat pass_by(items& left) {
  for (const std::size_t i : left) co_await fetch(&i);
}

// The first thread_local of a thread is destroyed last: when the frames that were kept are gone.
// The leak checker sees those that its coroutines would leave.
struct interleaves_at_the_end {
  bool is_used = false;
  ~interleaves_at_the_end() {
    if (is_used) interleave_flat(8, 100, pass_by);
  }
};

TEST(interleave_flat, destructors_at_the_end_of_a_thread_leave_no_frame) {
  std::thread([] {
    static thread_local interleaves_at_the_end last;
    last.is_used = true;
    interleave_flat(8, 100, pass_by);
  }).join();
  detail::frame_store closed;
  closed.close();
  void* const place = closed.take(100);
  closed.give_back(place, 100);
  void* const other = closed.take(200);
  closed.give_back(other, 200);
}

flat take_nothing(items&) {
  co_return;
}
flat take_one(items& left, int& taken) {
  for ([[maybe_unused]] const std::size_t i : left) {
    ++taken;
    co_return;
  }
}

TEST(interleave_flat, coroutines_that_take_nothing_are_refused) {
  const auto code_of = [](auto&& start) {
    try {
      interleave_flat(4, 10, start);
    } catch (const error& e) {
      return e.code();
    }
    return status::ok;
  };
  EXPECT_EQ(code_of([](items& left) { return take_nothing(left); }), status::bad_argument);
  EXPECT_EQ(code_of([](items&) { return flat(); }), status::bad_argument);
  EXPECT_EQ(code_of([](std::size_t) { return flat(); }), status::bad_argument);
  int taken = 0;
  EXPECT_EQ(code_of([&](items& left) { return take_one(left, taken); }), status::ok);
  EXPECT_EQ(taken, 10);
}

TEST(interleave_flat, refuses_more_than_64) {
  std::size_t sum = 0;
  EXPECT_THROW(interleave_flat(65, 1, [&](std::size_t) { return count_down(1, sum); }), error);
  EXPECT_EQ(sum, 0u);
}

}  // namespace
}  // namespace lev
