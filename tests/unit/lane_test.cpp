// The lane of a worker process: what it is between two workers, and how its numbers are compared.
#include "machines/processes/lane.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace lev::test {

namespace {

using processes::end_details;
using processes::lane;
using processes::lane_records;

constexpr std::uint32_t firsts[] = {1, 2, 17, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0};

std::uint32_t at(const lane<>::word& w) {
  return w.load(memory_order_relaxed);
}

void expect_equal(const lane<>::record& a, const lane<>::record& b) {
  EXPECT_EQ(at(a.number), at(b.number));
  EXPECT_EQ(at(a.skip), at(b.skip));
  EXPECT_EQ(a.procedure, b.procedure);
  EXPECT_EQ(a.argument_count, b.argument_count);
  EXPECT_EQ(a.is_timed, b.is_timed);
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(std::memcmp(a.arguments, b.arguments, sizeof a.arguments), 0);
}

void expect_equal(const end_details& a, const end_details& b) {
  EXPECT_EQ(a.text_bytes, b.text_bytes);
  EXPECT_EQ(a.task_code, b.task_code);
  EXPECT_EQ(a.stopped_at, b.stopped_at);
  EXPECT_EQ(std::memcmp(a.text, b.text, sizeof a.text), 0);
}

// Whatever was written to it before, byte by byte.
TEST(lane, reset_leaves_nothing_of_what_was_there) {
  const auto used = std::make_unique<lane<>>();
  const auto clean = std::make_unique<lane<>>();
  for (const std::uint32_t first : firsts) {
    std::memset(static_cast<void*>(clean.get()), 0, sizeof(lane<>));
    clean->reset(first);
    for (const int filling : {0xff, 0x55, 1}) {
      std::memset(static_cast<void*>(used.get()), filling, sizeof(lane<>));
      used->reset(first);
      for (std::uint32_t i = 0; i < lane_records; ++i) {
        expect_equal(used->records[i], clean->records[i]);
        EXPECT_EQ(used->end_of(i), clean->end_of(i));
        expect_equal(used->details[i], clean->details[i]);
      }
      EXPECT_EQ(at(used->orders), lane<>::order_wait);
      EXPECT_EQ(at(used->claimed), first - 1);
      EXPECT_EQ(at(used->arrived) + at(used->died_at) + at(used->asleep) + at(used->rung), 0u);
      EXPECT_EQ(used->first, first);
    }
  }
}

// No number that comes is taken for there, ended or cancelled before it is.
TEST(lane, a_new_lane_knows_none_of_the_numbers_to_come) {
  const auto one = std::make_unique<lane<>>();
  for (const std::uint32_t first : firsts) {
    one->reset(first);
    for (std::uint32_t n = first; n != first + 3 * lane_records; ++n) {
      EXPECT_FALSE(one->has_record(n)) << n;
      EXPECT_FALSE(one->has_end(n)) << n;
      EXPECT_FALSE(one->is_skipped(n)) << n;
      EXPECT_NE(at(one->claimed), n);
      EXPECT_FALSE(one->post(n, 1)) << "nobody sleeps";
      EXPECT_TRUE(one->has_record(n));
      EXPECT_FALSE(one->has_record(n + 1));
      EXPECT_FALSE(one->is_skipped(n)) << n;
      if (n % 3 == 0) static_cast<void>(one->take_back(n));
      EXPECT_EQ(one->is_skipped(n), n % 3 == 0);
      one->claim(n);
      one->finish(n);
      EXPECT_TRUE(one->has_end(n));
    }
  }
}

}  // namespace

}  // namespace lev::test
