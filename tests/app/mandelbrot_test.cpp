// Mandelbrot: the reference itself, and tasks against it.
#include <leveret_apps/mandelbrot.hpp>
#include <vector>

#include "app_fixture.hpp"

using leveret_apps::mandelbrot;
using leveret_apps::mandelbrot_view;

namespace {

constexpr mandelbrot_view small = {64, 48, 200, -2.25, 0.95, -1.2, 1.2};

std::vector<std::uint16_t> serial(const mandelbrot_view& view) {
  std::vector<std::uint16_t> counts(std::size_t{view.width} * view.height);
  leveret_apps::mandelbrot_serial(view, counts.data());
  return counts;
}

TEST(mandelbrot_serial, knows_points_inside_and_outside) {
  // Columns at x = -2.5, -1, 0.5; rows at y = 0, 2: only -1 belongs to the set.
  const auto counts = serial({3, 2, 50, -2.5, 2, 0, 4});
  EXPECT_EQ(counts[0], 1);
  EXPECT_EQ(counts[1], 50);
  EXPECT_EQ(counts[2], 5);
  EXPECT_EQ(counts[4], 1);
}

TEST(mandelbrot_serial, is_symmetric_about_the_real_axis) {
  // Row r lies at -1.5 + r / 16, and row 48 - r as far above zero; all are exact.
  const mandelbrot_view view = {64, 48, 200, -2.5, 1.5, -1.5, 1.5};
  const auto counts = serial(view);
  for (std::uint32_t r = 1; r < view.height; ++r) {
    for (std::uint32_t c = 0; c < view.width; ++c) {
      EXPECT_EQ(counts[r * view.width + c], counts[(view.height - r) * view.width + c]);
    }
  }
}

using mandelbrot_test = app_test;
INSTANTIATE_TEST_SUITE_P(machines, mandelbrot_test, every_case, case_name);

TEST_P(mandelbrot_test, equals_serial_for_any_number_of_tasks) {
  const auto expected = serial(small);
  for (const unsigned tasks : {0u, 1u, 2u, 5u, 7u, 24u, 47u, 48u, 49u, 1000u}) {
    std::vector<std::uint16_t> counts(expected.size(), 0xffff);
    mandelbrot(runtime(), small, tasks, dice(), counts.data());
    EXPECT_EQ(counts, expected) << tasks << " tasks";
  }
}

TEST_P(mandelbrot_test, draws_a_single_column_and_a_single_row) {
  for (const mandelbrot_view view :
       {mandelbrot_view{1, 40, 100, -1, 0, -1, 1}, mandelbrot_view{40, 1, 100, -2, 1, 0, 1},
        mandelbrot_view{1, 1, 100, 0, 1, 0, 1}}) {
    const auto expected = serial(view);
    for (const unsigned tasks : {1u, 3u, 40u}) {
      std::vector<std::uint16_t> counts(expected.size());
      mandelbrot(runtime(), view, tasks, dice(), counts.data());
      EXPECT_EQ(counts, expected) << view.width << " x " << view.height;
    }
  }
}

TEST_P(mandelbrot_test, one_task_becomes_many_only_with_dicing) {
  std::vector<std::uint16_t> counts(std::size_t{small.width} * small.height);
  const auto before = runtime().count().diced;
  mandelbrot(runtime(), small, 1, dice(), counts.data());
  EXPECT_EQ(runtime().count().diced > before, dice());
}

TEST_P(mandelbrot_test, run_reports_a_correct_result) {
  leveret_apps::mandelbrot_options options;
  options.view = small;
  options.tasks = 4;
  options.frames = 3;
  options.dice = dice();
  const auto report = run_mandelbrot(runtime(), options);
  EXPECT_TRUE(report.correct);
  EXPECT_EQ(report.error, 0);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GT(report.serial_seconds, 0);
  EXPECT_GT(report.iterations, std::uint64_t{small.width} * small.height);
}

TEST_P(mandelbrot_test, strip_mines_or_refuses_a_picture_larger_than_the_local_store) {
  const mandelbrot_view large = {1024, 256, 20, -2.25, 0.95, -1.2, 1.2};
  std::vector<std::uint16_t> counts(std::size_t{large.width} * large.height);
  try {
    mandelbrot(runtime(), large, 1, dice(), counts.data());
    EXPECT_EQ(counts, serial(large));
  } catch (const lev::error& e) {
    EXPECT_EQ(e.code(), lev::status::too_big);
    EXPECT_FALSE(dice());
    EXPECT_STREQ(GetParam().machine, "sim");  // copies all arguments
  }
}

}  // namespace
