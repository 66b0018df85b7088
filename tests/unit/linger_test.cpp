// linger: offers that nobody takes go on, those that are taken end it, for longer and longer.
#include "sync/linger.hpp"

#include <gtest/gtest.h>

namespace lev {
namespace {

struct core {
  std::uint64_t now_ns = 0;
  std::uint64_t away_ns = 0;  // how long an offer gives it away
  bool offer(lingerer& l) {
    return l.offer([&] { return now_ns; }, [&] { now_ns += away_ns; });
  }
};

// How many waits in a row go without.
unsigned count_skips(lingerer& l) {
  unsigned n = 0;
  while (!l.begin()) ++n;
  return n;
}

TEST(linger, goes_on_while_nobody_takes_the_core) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns - 1};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(l.begin());
    ASSERT_TRUE(c.offer(l));
  }
}

TEST(linger, who_loses_the_core_goes_without_more_and_more_often) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns};
  unsigned before = 0;
  for (std::uint32_t i = 1; i <= lingerer::failures_max; ++i) {
    EXPECT_FALSE(c.offer(l));
    const unsigned skips = count_skips(l);
    EXPECT_GT(skips, before);
    before = skips;
  }
  EXPECT_FALSE(c.offer(l));
  EXPECT_EQ(count_skips(l), before) << "the number has a bound";
}

TEST(linger, many_successes_make_up_for_a_loss) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns};
  const auto lose = [&] {
    EXPECT_FALSE(c.offer(l));
    return count_skips(l);
  };
  const auto succeed = [&](std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) l.end();
  };
  const unsigned first = lose();
  const unsigned second = lose();
  EXPECT_GT(second, first);
  succeed(lingerer::successes_per_failure);
  EXPECT_EQ(lose(), second) << "one made up for, one more";
  succeed(lingerer::successes_per_failure - 1);
  EXPECT_GT(lose(), second) << "one success too few";
  succeed(100 * lingerer::successes_per_failure);
  EXPECT_EQ(lose(), first);
}

}  // namespace
}  // namespace lev
