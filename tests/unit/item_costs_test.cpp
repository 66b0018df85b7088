// Tests of item_costs: which grain follows from what items took.
#include <gtest/gtest.h>

#include "base/numbers.hpp"
#include "flow/item_costs.hpp"

namespace lev {
namespace {

constexpr std::uint32_t place = 7;

TEST(item_costs, unknown_costs_leave_512_pieces_each) {
  item_costs c;
  EXPECT_EQ(c.grain(place, 1'000'000, 2), 976u);
  EXPECT_EQ(c.grain(place, 100, 2), 0u);
}

TEST(item_costs, short_items_make_pieces_of_five_microseconds) {
  item_costs c;
  c.note(place, 1000, 10'000);  // 10 ns each
  EXPECT_EQ(c.grain(place, 100'000, 2), 500u);
  EXPECT_EQ(c.grain(place + 1, 100'000, 2), 97u) << "another procedure";
}

TEST(item_costs, a_task_shorter_than_one_piece_stays_whole) {
  item_costs c;
  c.note(place, 1000, 10'000);
  EXPECT_EQ(c.grain(place, 500, 2), 500u);
  EXPECT_EQ(c.grain(place, 2, 2), 2u);
}

TEST(item_costs, every_taker_keeps_eight_pieces) {
  item_costs c;
  c.note(place, 1000, 10'000);
  EXPECT_EQ(c.grain(place, 8000, 4), 250u);
}

TEST(item_costs, no_piece_is_shorter_than_a_microsecond) {
  item_costs c;
  c.note(place, 1000, 10'000);
  EXPECT_EQ(c.grain(place, 1600, 4), 100u);
  EXPECT_EQ(c.grain(place, 1600, 64), 100u);
}

TEST(item_costs, pieces_that_cost_more_are_longer) {
  item_costs c;
  c.set_scale(4);
  c.note(place, 1000, 10'000);
  EXPECT_EQ(c.grain(place, 1'000'000, 2), 2000u);
  EXPECT_EQ(c.grain(place, 6400, 64), 400u) << "none is shorter than 4 us";
  EXPECT_EQ(c.grain(place, 2000, 2), 2000u) << "shorter than one piece";
}

TEST(item_costs, a_small_change_is_not_noted) {
  item_costs c;
  c.note(place, 1000, 10'000);
  c.note(place, 1000, 11'000);
  EXPECT_EQ(c.time_ns(place, 1'000'000), 10'000'000u);
  c.note(place, 1000, 20'000);
  EXPECT_GT(c.time_ns(place, 1'000'000), 10'000'000u);
}

TEST(item_costs, the_time_of_items) {
  item_costs c;
  EXPECT_EQ(c.time_ns(place, 1000), 0u) << "not known";
  c.note(place, 1000, 10'000);
  EXPECT_EQ(c.time_ns(place, 300), 3000u);
  EXPECT_GT(c.time_ns(place, ~std::uint64_t{0}), 1'000'000'000'000u) << "more than a word holds";
}

TEST(item_costs, long_items_stay_fine) {
  item_costs c;
  c.note(place, 10, 1'000'000);  // 100 us each
  EXPECT_EQ(c.grain(place, 10'240, 2), 10u);
  EXPECT_EQ(c.grain(place, 100, 2), 0u);
}

TEST(item_costs, one_interruption_counts_for_little) {
  item_costs c;
  c.note(place, 1000, 10'000);
  const std::uint64_t before = c.grain(place, 100'000, 2);
  c.note(place, 1000, 1'000'000'000);
  EXPECT_GE(c.grain(place, 100'000, 2), before / 2);
}

TEST(item_costs, interruptions_that_are_not_in_a_row_count_for_little) {
  item_costs c;
  c.note(place, 1000, 10'000);
  const std::uint64_t before = c.grain(place, 100'000, 2);
  for (int i = 0; i < 100; ++i) {
    c.note(place, 1000, 1'000'000'000);
    for (int k = 0; k < 8; ++k) c.note(place, 1000, 10'000);
  }
  EXPECT_GE(c.grain(place, 100'000, 2), before / 2);
}

// A task that is not cut gives one note: a loop whose items take long from now on must not run
// many times on one thread.
TEST(item_costs, much_longer_items_are_believed_the_second_time) {
  item_costs c;
  for (int i = 0; i < 100; ++i) c.note(place, 64, 128);
  ASSERT_EQ(c.grain(place, 64, 2), 64u);
  for (int i = 0; i < 2; ++i) c.note(place, 64, 64'000'000);
  EXPECT_EQ(c.grain(place, 64, 2), 0u);
}

// Short tasks and long ones that take turns, each in as many pieces as the grain says.
TEST(item_costs, a_long_task_between_short_ones_is_cut) {
  for (const int short_ones : {1, 2, 7, 15}) {
    item_costs c;
    const auto run = [&c](std::uint64_t item_ns) {
      const std::uint64_t grain = larger<std::uint64_t>(c.grain(place, 64, 2), 1);
      for (std::uint64_t i = 0; i < 64; i += grain) c.note(place, grain, grain * item_ns);
      return grain;
    };
    for (int i = 0; i < 100; ++i) run(2);
    for (int long_ones = 0; long_ones < 50; ++long_ones) {
      const std::uint64_t grain = run(27'000);
      if (long_ones != 0) {
        EXPECT_LE(grain, 64 / (2 * 8)) << long_ones;
      }
      for (int i = 0; i < short_ones; ++i) run(2);
    }
  }
}

TEST(item_costs, a_short_task_is_whole_again_some_time_after_an_interruption) {
  item_costs c;
  for (int i = 0; i < 100; ++i) c.note(place, 64, 128);
  c.note(place, 64, 1'000'000);
  EXPECT_EQ(c.grain(place, 64, 2), 4u) << "eight pieces for each";
  int cut = 0;
  for (; c.grain(place, 64, 2) != 64; ++cut) {
    ASSERT_LT(cut, 100);
    for (int k = 0; k < 16; ++k) c.note(place, 4, 8);
  }
  EXPECT_EQ(c.grain(place, 64, 2), 64u);
}

TEST(item_costs, the_mean_follows) {
  item_costs c;
  c.note(place, 1000, 10'000);
  for (int i = 0; i < 100; ++i) c.note(place, 1000, 100'000);
  EXPECT_NEAR(static_cast<double>(c.grain(place, 10'000, 1)), 50, 5) << "5 us of 100 ns each";
}

TEST(item_costs, extremes_do_no_harm) {
  item_costs c;
  c.note(place, 0, 0);
  c.note(place, ~std::uint64_t{0}, 1);
  c.note(place, 1, ~std::uint64_t{0});
  EXPECT_LE(c.grain(place, ~std::uint64_t{0}, 1024), ~std::uint64_t{0});
  EXPECT_EQ(c.grain(place, 0, 1), 0u);
}

TEST(item_costs, bodies_of_loops_are_told_apart) {
  const procedure_id loop = register_own(detail::describe("leveret.columns.of_item_costs", +[] {}));
  argument a[2];
  a[0].what = kind::value;
  a[0].unit_bytes = 16;
  a[0].address = 0x1000;
  const std::uint32_t first = item_costs::place_of(loop, a, 2);
  a[0].address = 0x1040;
  EXPECT_NE(item_costs::place_of(loop, a, 2), first);
  EXPECT_EQ(item_costs::place_of(loop, a, 1), std::uint32_t{loop});
  argument b[3];  // the procedure that the tasks of a bulk call comes after their arguments
  b[1] = a[0];
  EXPECT_NE(item_costs::place_of(loop, b, 3), first);
  EXPECT_EQ(item_costs::place_of(loop, b, 3), item_costs::place_of(loop, a, 2));
}

// Otherwise no task would profit from what the one before took.
TEST(item_costs, a_programs_own_value_before_a_range_is_no_body) {
  const procedure_id own = define("unit.item_costs", +[] {}).id;
  argument a[2];
  a[0].what = kind::value;
  a[0].unit_bytes = 16;
  a[0].address = 0x1000;
  const std::uint32_t first = item_costs::place_of(own, a, 2);
  a[0].address = 0x1040;
  EXPECT_EQ(item_costs::place_of(own, a, 2), first);
}

}  // namespace
}  // namespace lev
