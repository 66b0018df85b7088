// Tests of reorder_buffer against a vector: it is pushed to, popped from and widened in the middle
// until it has wrapped its array many times.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "queue/reorder_buffer.hpp"

namespace lev {
namespace {

waiting_task numbered(std::uint32_t n) {
  waiting_task t{};
  t.slot = n;
  t.sequence = n;
  return t;
}

void expect_equal(reorder_buffer& buffer, const std::vector<std::uint32_t>& expected) {
  ASSERT_EQ(buffer.size(), expected.size());
  ASSERT_EQ(buffer.empty(), expected.empty());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(buffer.begin()[i].slot, expected[i]) << "at " << i;
  }
}

TEST(reorder_buffer, random_use_agrees_with_a_vector) {
  constexpr std::size_t capacity = 24;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    waiting_task place[capacity];
    reorder_buffer buffer;
    buffer.open(place, capacity);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t turn = 0; turn < 2000; ++turn) {
      const std::uint32_t choice = random.below(6);
      if (choice <= 1 && expected.size() < capacity) {
        buffer.push_back(numbered(turn));
        expected.push_back(turn);
      } else if (choice <= 3 && !expected.empty()) {
        buffer.pop_front();
        expected.erase(expected.begin());
      } else if (choice == 4 && !expected.empty()) {
        const std::size_t room = capacity - expected.size();
        const std::size_t count = random.below(static_cast<std::uint32_t>(room) + 1);
        const std::size_t at = random.below(static_cast<std::uint32_t>(expected.size()));
        waiting_task* first = buffer.insert_after(buffer.begin() + at, count);
        for (std::size_t i = 0; i < count; ++i) first[i] = numbered(1'000'000 + turn);
        expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at) + 1, count,
                        1'000'000 + turn);
      } else if (choice == 5) {
        const std::uint32_t taken_in = 1 + random.below(24);
        const auto is_taken = [&](std::uint32_t n) { return n % 24 < taken_in / 2; };
        std::vector<std::uint32_t> asked;
        buffer.remove_if([&](const waiting_task& t) {
          asked.push_back(t.slot);
          return is_taken(t.slot);
        });
        EXPECT_EQ(asked, expected);
        std::erase_if(expected, is_taken);
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(buffer, expected));
    }
  }
}

TEST(reorder_buffer, insertion_returns_where_the_entries_belong_after_packing) {
  waiting_task place[4];
  reorder_buffer buffer;
  buffer.open(place, 4);
  for (std::uint32_t i = 0; i < 4; ++i) buffer.push_back(numbered(i));
  buffer.pop_front();
  buffer.pop_front();
  waiting_task* first = buffer.insert_after(buffer.begin(), 2);
  first[0] = numbered(10);
  first[1] = numbered(11);
  ASSERT_NO_FATAL_FAILURE(expect_equal(buffer, {2, 10, 11, 3}));
}

using reorder_buffer_death_test = testing::Test;

TEST(reorder_buffer_death_test, more_than_it_holds_is_caught) {
  waiting_task place[2];
  reorder_buffer buffer;
  buffer.open(place, 2);
  buffer.push_back(numbered(1));
  buffer.push_back(numbered(2));
  EXPECT_DEATH(buffer.push_back(numbered(3)), "end_ < capacity_");
}

}  // namespace
}  // namespace lev
