// Tests of ready_queue by one thread: which ring a participant queues at, and takes from.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "flow/ready_queue.hpp"

namespace lev {
namespace {

constexpr std::uint32_t capacity = 64;

struct rings {
  explicit rings(std::uint32_t count)
      : cells(new index_ring<>::cell[std::size_t{capacity} * count]) {
    queue.open(cells.get(), capacity, count);
  }
  std::uint32_t take(ready_queue<>::place& place, bool begins_at_home) {
    std::uint32_t task = 0;
    return queue.nearest(place, begins_at_home).try_pop(&task) ? task : 0;
  }
  std::unique_ptr<index_ring<>::cell[]> cells;
  ready_queue<> queue;
};

TEST(ready_queue_test, few_takers_have_one_ring_and_many_have_up_to_eight) {
  for (std::uint32_t takers = 1; takers <= 4; ++takers)
    EXPECT_EQ(ready_queue<>::rings_for(takers), 1u) << takers << " takers";
  EXPECT_EQ(ready_queue<>::rings_for(5), 4u);
  EXPECT_EQ(ready_queue<>::rings_for(8), 4u);
  EXPECT_EQ(ready_queue<>::rings_for(16), 8u);
  EXPECT_EQ(ready_queue<>::rings_for(1000), ready_queue<>::rings_max);
}

TEST(ready_queue_test, a_taker_finds_what_any_participant_has_queued) {
  for (std::uint32_t count = 1; count <= ready_queue<>::rings_max; ++count) {
    rings r(count);
    for (std::uint32_t from = 0; from < 2 * count; ++from) {
      for (std::uint32_t to = 0; to < count; ++to) {
        ready_queue<>::place queues = r.queue.place_of(from);
        ready_queue<>::place takes = r.queue.place_of(to);
        EXPECT_TRUE(r.queue.looks_empty());
        ASSERT_TRUE(queues.home->try_push(7));
        EXPECT_FALSE(r.queue.looks_empty());
        EXPECT_EQ(r.queue.size(), 1u);
        EXPECT_EQ(r.take(takes, to % 2 == 0), 7u) << "queued by " << from << ", taken by " << to;
      }
    }
  }
}

TEST(ready_queue_test, what_one_participant_queues_is_taken_in_order) {
  rings r(4);
  ready_queue<>::place queues = r.queue.place_of(2);
  ready_queue<>::place takers[2] = {r.queue.place_of(0), r.queue.place_of(1)};
  for (std::uint32_t i = 1; i <= capacity; ++i) ASSERT_TRUE(queues.home->try_push(i));
  for (std::uint32_t i = 1; i <= capacity; ++i) EXPECT_EQ(r.take(takers[i % 2], false), i);
  EXPECT_TRUE(r.queue.looks_empty());
}

// No ring ever gets empty, and a taker comes to each of them again and again.
TEST(ready_queue_test, no_ring_is_left_aside) {
  constexpr std::uint32_t count = 4;
  for (const bool begins_at_home : {false, true}) {
    rings r(count);
    ready_queue<>::place self = r.queue.place_of(1);
    std::uint32_t visits[count] = {};
    for (std::uint32_t ring = 0; ring < count; ++ring)
      ASSERT_TRUE(r.queue.place_of(ring).home->try_push(1 + ring));
    for (int turn = 0; turn < 1000; ++turn) {
      const std::uint32_t task = r.take(self, begins_at_home);
      ASSERT_NE(task, 0u);
      ++visits[task - 1];
      ASSERT_TRUE(r.queue.place_of(task - 1).home->try_push(task));
    }
    for (std::uint32_t ring = 0; ring < count; ++ring) {
      EXPECT_GE(visits[ring], 10u)
          << "ring " << ring << (begins_at_home ? ", from home on" : ", from where it was");
    }
  }
}

TEST(ready_queue_test, each_ring_is_shown_until_one_is_the_right_one) {
  rings r(4);
  std::uint32_t seen = 0;
  EXPECT_FALSE(r.queue.each([&](index_ring<>&) { return ++seen == 0; }));
  EXPECT_EQ(seen, 4u);
  EXPECT_TRUE(r.queue.each([&](index_ring<>& ring) { return &ring == &r.queue.first(); }));
}

}  // namespace
}  // namespace lev
