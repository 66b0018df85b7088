// napper: naps go on while each spares wake-ups, become longer when it does not, and then stop.
#include "remote/nap.hpp"

#include <gtest/gtest.h>

namespace lev {
namespace {

std::uint64_t nap(napper& n, std::uint64_t ends) {
  const std::uint64_t span_ns = n.span_ns([&] { return ends; });
  n.begin_nap(ends);
  return span_ns;
}

TEST(nap, goes_on_at_one_length_while_enough_tasks_end_in_each) {
  napper n;
  n.begin_wait();
  for (std::uint64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(nap(n, 7 + i * napper::ends_min), napper::first_ns);
}

TEST(nap, becomes_longer_while_too_few_tasks_end_and_then_stops) {
  napper n;
  n.begin_wait();
  EXPECT_EQ(nap(n, 0), napper::first_ns);
  EXPECT_EQ(nap(n, 1), 2 * napper::first_ns);
  EXPECT_EQ(nap(n, 1 + napper::ends_min), 2 * napper::first_ns) << "these were enough";
  EXPECT_EQ(nap(n, 1 + napper::ends_min), napper::span_ns_max);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nap(n, 2 + napper::ends_min), 0u);
}

// Polling found something first: nothing can be said of a nap that was not begun.
TEST(nap, is_judged_only_if_it_was_begun) {
  napper n;
  n.begin_wait();
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(n.span_ns([] { return std::uint64_t{0}; }), napper::first_ns);
}

TEST(nap, begins_anew_with_each_wait) {
  napper n;
  n.begin_wait();
  while (nap(n, 0) != 0) continue;
  n.begin_wait();
  EXPECT_EQ(nap(n, 0), napper::first_ns);
}

// The count of ends is that of a runtime that may have run for years.
TEST(nap, counts_ends_across_the_end_of_the_numbers) {
  napper n;
  n.begin_wait();
  EXPECT_EQ(nap(n, ~0ull - 1), napper::first_ns);
  EXPECT_EQ(nap(n, napper::ends_min - 2), napper::first_ns);
}

}  // namespace
}  // namespace lev
