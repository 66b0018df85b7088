// Tests of index_ring by one thread: order, bounds and batches, in particular where positions wrap
// at 2^32. Threads are the business of tests/model and tests/stress.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "queue/index_ring.hpp"

namespace lev {
namespace {

constexpr std::uint32_t near_wrap = 0xfffffffbu;  // 2^32 - 5

struct ring {
  ring(std::uint32_t capacity, std::uint32_t start) : cells(new index_ring<>::cell[capacity]) {
    queue.open(cells.get(), capacity, start);
  }
  std::unique_ptr<index_ring<>::cell[]> cells;
  index_ring<> queue;
};

class index_ring_test : public testing::TestWithParam<std::uint32_t> {};

TEST_P(index_ring_test, keeps_order_and_says_when_full_or_empty) {
  ring r(8, GetParam());
  std::uint32_t value = 0;
  EXPECT_TRUE(r.queue.looks_empty());
  EXPECT_FALSE(r.queue.try_pop(&value));
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(r.queue.try_push(100 + i));
  EXPECT_FALSE(r.queue.try_push(200));
  EXPECT_EQ(r.queue.size(), 8u);
  EXPECT_FALSE(r.queue.looks_empty());
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(r.queue.try_pop(&value));
    EXPECT_EQ(value, 100 + i);
  }
  EXPECT_TRUE(r.queue.looks_empty());
  EXPECT_EQ(r.queue.size(), 0u);
}

TEST_P(index_ring_test, a_batch_goes_in_whole_or_not_at_all) {
  ring r(8, GetParam());
  const std::uint32_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_TRUE(r.queue.try_push_all(values, 5));
  EXPECT_FALSE(r.queue.try_push_all(values, 4));
  EXPECT_EQ(r.queue.size(), 5u);
  EXPECT_TRUE(r.queue.try_push_all(values + 5, 3));
  std::uint32_t got[10];
  EXPECT_EQ(r.queue.try_pop_some(got, 10), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(got[i], values[i]);
  EXPECT_EQ(r.queue.try_pop_some(got, 10), 0u);
}

TEST_P(index_ring_test, random_use_agrees_with_a_deque) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    const std::uint32_t capacity = 2u << random.below(5);
    ring r(capacity, GetParam());
    std::deque<std::uint32_t> expected;
    std::uint32_t next = 0;
    for (int turn = 0; turn < 1000; ++turn) {
      std::vector<std::uint32_t> batch(1 + random.below(capacity));
      if (random.below(2) == 0) {
        std::iota(batch.begin(), batch.end(), next);
        const auto n = static_cast<std::uint32_t>(batch.size());
        const bool fits = expected.size() + n <= capacity;
        ASSERT_EQ(r.queue.try_push_all(batch.data(), n), fits);
        if (fits) expected.insert(expected.end(), batch.begin(), batch.end());
        next += n;
      } else {
        const auto n = static_cast<std::uint32_t>(batch.size());
        const std::uint32_t got = r.queue.try_pop_some(batch.data(), n);
        ASSERT_EQ(got, std::min<std::size_t>(n, expected.size()));
        for (std::uint32_t i = 0; i < got; ++i) {
          ASSERT_EQ(batch[i], expected.front());
          expected.pop_front();
        }
      }
      ASSERT_EQ(r.queue.size(), expected.size());
      ASSERT_EQ(r.queue.looks_empty(), expected.empty());
    }
  }
}

TEST_P(index_ring_test, goes_round_many_times) {
  ring r(2, GetParam());
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(r.queue.try_push(i));
    ASSERT_TRUE(r.queue.try_pop(&value));
    ASSERT_EQ(value, i);
  }
}

INSTANTIATE_TEST_SUITE_P(starts, index_ring_test, testing::Values(0u, near_wrap, 0x7ffffffdu),
                         [](const auto& start) { return "at_" + std::to_string(start.param); });

}  // namespace
}  // namespace lev
