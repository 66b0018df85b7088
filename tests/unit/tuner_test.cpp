// Tests of the automatic choice: a simulated memory tells what each number of items in flight
// takes, and the tuner must find the best and lose little by looking.
#include <gtest/gtest.h>
#include <leveret/interleave.hpp>

#include <algorithm>
#include <functional>
#include <random>

namespace lev {
namespace {

using detail::tuner;

// Time per item, by the number in flight, and what filling and draining costs for each.
struct memory {
  double alone_ns;
  double by_16_ns;
  double by_24_ns;
  double by_48_ns;
  double per_strand_ns = 20;

  double of(unsigned width) const {
    return width == 1 ? alone_ns : width == 16 ? by_16_ns : width == 24 ? by_24_ns : by_48_ns;
  }
  unsigned best() const {
    return *std::min_element(std::begin(tuner::widths), std::end(tuner::widths),
                             [this](unsigned one, unsigned other) { return of(one) < of(other); });
  }
  double best_ns() const { return of(best()); }
};

struct tally {
  double ns = 0;
  double items_by[49] = {};
};

// Runs `count` items in calls of `call_items`.
tally run(
    tuner& t, const memory& m, std::size_t count, std::size_t call_items,
    const std::function<double()>& disturbance = [] { return 0.0; },
    const std::function<double()>& stretch = [] { return 1.0; }) {
  tally total;
  for (std::size_t done = 0; done < count; done += call_items) {
    for (std::size_t left = call_items; left > 0;) {
      const tuner::plan p = t.next(left);
      EXPECT_GE(p.items, 1u);
      EXPECT_LE(p.items, left);
      const double filling_ns = p.width == 1 ? 0 : m.per_strand_ns * p.width;
      const double items_ns = static_cast<double>(p.items) * m.of(p.width) * stretch();
      const double ns = items_ns + filling_ns + disturbance();
      t.took(static_cast<std::uint64_t>(ns));
      total.ns += ns;
      total.items_by[p.width] += static_cast<double>(p.items);
      left -= p.items;
    }
  }
  return total;
}

constexpr memory cached{2, 12, 12, 14};
constexpr memory large{130, 22, 15.8, 10.2};
constexpr memory of_fewer_misses{130, 17, 15.8, 18};
constexpr memory of_trees{110, 56.8, 62.3, 79};
constexpr memory nearly_cached{17, 22.7, 24.6, 28};
constexpr memory far_away{220, 88, 70, 62};
constexpr memory nearer{20, 22.9, 25.6, 29};
constexpr memory close_rivals{20, 19.2, 19, 19.5};
constexpr memory slow_items{3e6, 4e5, 4e5, 4e5};

TEST(tuner, loses_less_than_three_percent_on_any_memory) {
  for (const memory& m : {cached, large, of_fewer_misses, of_trees, close_rivals}) {
    tuner t;
    const std::size_t count = static_cast<std::size_t>(200e6 / m.best_ns());
    const tally total = run(t, m, count, count);
    const double best_ns = m.best_ns() * static_cast<double>(count);
    EXPECT_LT(total.ns, best_ns * 1.03) << m.alone_ns << " ns alone";
  }
}

TEST(tuner, learns_over_short_calls) {
  tuner t;
  run(t, cached, 200'000, 100);
  const tally later = run(t, cached, 200'000, 100);
  EXPECT_GT(later.items_by[1], 0.95 * 200'000);
}

TEST(tuner, finds_many_where_they_are_better) {
  for (const memory& m : {large, of_fewer_misses, of_trees}) {
    tuner t;
    run(t, m, 1'000'000, 1'000'000);
    const tally later = run(t, m, 1'000'000, 1'000'000);
    EXPECT_GT(later.items_by[m.best()], 0.95e6);
  }
}

// The data of later calls is of another kind: found within 40 ms.
TEST(tuner, follows_a_change) {
  tuner t;
  for (int turn = 0; turn < 6; ++turn) {
    run(t, cached, 20'000'000, 1'000'000);
    EXPECT_GT(run(t, cached, 1'000'000, 1'000'000).items_by[1], 0.9e6) << "turn " << turn;
    const memory& other = turn % 2 == 0 ? large : of_fewer_misses;
    run(t, other, 2'500'000, 500'000);
    EXPECT_GT(run(t, other, 1'000'000, 1'000'000).items_by[other.best()], 0.9e6) << "turn " << turn;
  }
}

// The same where the new data is quicker to reach for every number in flight, as what is known of
// the others is wrong then, too: found within 10 ms.
TEST(tuner, follows_a_change_to_quicker_data) {
  for (const memory& before : {far_away, of_trees}) {
    tuner t;
    run(t, before, 4'000'000, 500'000);
    run(t, nearer, 400'000, 100'000);
    EXPECT_GT(run(t, nearer, 1'000'000, 1'000'000).items_by[1], 0.9e6) << before.alone_ns;
  }
}

// Every 20th piece loses its core for 4 ms: the answer stays the same.
TEST(tuner, bears_interruptions) {
  for (const memory& m : {cached, large, of_fewer_misses, of_trees}) {
    tuner t;
    int piece = 0;
    const auto disturbance = [&piece] { return ++piece % 20 == 7 ? 4e6 : 0.0; };
    const std::size_t count = static_cast<std::size_t>(400e6 / m.best_ns());
    run(t, m, count, count, disturbance);
    const tally later = run(t, m, count, count, disturbance);
    EXPECT_GT(later.items_by[m.best()], 0.9 * static_cast<double>(count)) << m.best();
  }
}

// A neighbour on the core makes every other piece up to a third longer.
TEST(tuner, bears_a_restless_machine) {
  for (const memory& m : {cached, large, of_fewer_misses, of_trees, nearly_cached}) {
    tuner t;
    std::mt19937 random(1);
    std::uniform_real_distribution<> longer(1, 1.35);
    std::bernoulli_distribution is_hit(0.5);
    const auto stretch = [&] { return is_hit(random) ? longer(random) : 1.0; };
    const std::size_t count = static_cast<std::size_t>(400e6 / m.best_ns());
    run(t, m, count, count, [] { return 0.0; }, stretch);
    const tally later = run(t, m, count, count, [] { return 0.0; }, stretch);
    EXPECT_GT(later.items_by[m.best()], 0.95 * static_cast<double>(count)) << m.best();
  }
}

// Few and long items are all in flight at once: nobody waits for a trial.
TEST(tuner, few_long_items_run_side_by_side) {
  tuner t;
  EXPECT_EQ(run(t, slow_items, 24, 24).items_by[24], 24);
}

TEST(tuner, gives_up_where_told) {
  tuner t;
  t.next(10);
  t.give_up();
  const tuner::plan p = t.next(1'000'000);
  EXPECT_EQ(p.width, 1u);
  EXPECT_EQ(p.items, 1'000'000u);
}

}  // namespace
}  // namespace lev
