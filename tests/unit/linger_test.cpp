// linger: offers that nobody takes go on, however long they last; those that are taken end it, for
// longer and longer.
#include "sync/linger.hpp"

#include <gtest/gtest.h>

namespace lev {
namespace {

struct core {
  std::uint64_t now_ns = 0;
  std::uint64_t away_ns = 0;  // how long an offer gives it away
  bool is_taken = true;       // by another thread
  std::uint64_t switches = 7;

  bool begin(lingerer& l) {
    return l.begin([&] { return switches; });
  }
  bool offer(lingerer& l) {
    const auto give = [&] {
      now_ns += away_ns;
      switches += is_taken ? 1 : 0;
    };
    return l.offer([&] { return now_ns; }, give, [&] { return switches; });
  }
};

// How many waits in a row go without.
unsigned count_skips(core& c, lingerer& l) {
  unsigned n = 0;
  while (!c.begin(l)) ++n;
  return n;
}

TEST(linger, goes_on_while_nobody_takes_the_core) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns - 1};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(c.begin(l));
    ASSERT_TRUE(c.offer(l));
  }
}

// An interrupt, or the host of a virtual machine, has had the core.
TEST(linger, goes_on_when_no_thread_has_had_the_core_however_long_it_was_away) {
  lingerer l;
  core c{.away_ns = 1000 * lingerer::taken_ns, .is_taken = false};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(c.begin(l));
    ASSERT_TRUE(c.offer(l));
  }
}

// Switches that came before, or took no time, are no reason to sleep.
TEST(linger, goes_on_after_switches_that_were_not_of_its_offers) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns, .is_taken = false};
  c.switches = 1000;
  ASSERT_TRUE(c.begin(l));
  EXPECT_TRUE(c.offer(l));
}

TEST(linger, who_loses_the_core_goes_without_more_and_more_often) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns};
  unsigned before = 0;
  ASSERT_TRUE(c.begin(l));
  for (std::uint32_t i = 1; i <= lingerer::failures_max; ++i) {
    EXPECT_FALSE(c.offer(l));
    const unsigned skips = count_skips(c, l);
    EXPECT_GT(skips, before);
    before = skips;
  }
  EXPECT_FALSE(c.offer(l));
  EXPECT_EQ(count_skips(c, l), before) << "the number has a bound";
}

TEST(linger, tells_that_the_core_is_wanted_until_it_tries_again) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns};
  EXPECT_FALSE(l.is_wanted());
  ASSERT_TRUE(c.begin(l));
  EXPECT_FALSE(c.offer(l));
  while (l.is_wanted()) EXPECT_FALSE(c.begin(l));
  EXPECT_TRUE(c.begin(l));
}

TEST(linger, many_successes_make_up_for_a_loss) {
  lingerer l;
  core c{.away_ns = lingerer::taken_ns};
  ASSERT_TRUE(c.begin(l));
  const auto lose = [&] {
    EXPECT_FALSE(c.offer(l));
    return count_skips(c, l);
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
