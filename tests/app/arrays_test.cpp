// SAXPY, SGEMV, CONV2D and the Fourier transform: by hand, and tasks against the serial ones.
#include <array>
#include <cmath>
#include <leveret_apps/fft.hpp>
#include <random>
#include <vector>

#include "app_fixture.hpp"

using leveret_apps::array_cut;
using leveret_apps::array_options;
using leveret_apps::complex_float;

namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> all(n);
  for (float& each : all) each = static_cast<float>(random() % 2001) / 1000 - 1;
  return all;
}

TEST(arrays_serial, by_hand) {
  float y[2] = {10, 20};
  leveret_apps::saxpy_serial(2, 2, std::vector<float>{1, 2}.data(), y);
  EXPECT_EQ(y[0], 12);
  EXPECT_EQ(y[1], 24);
  const float matrix[6] = {1, 2, 3, 4, 5, 6};
  leveret_apps::sgemv_serial(2, 3, matrix, std::vector<float>{1, 0, 2}.data(), y);
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[1], 16);
  const float weights[4] = {1, 10, 100, 1000};
  leveret_apps::conv2d_serial(2, 3, 2, matrix, weights, y);
  EXPECT_EQ(y[0], 5421);
  EXPECT_EQ(y[1], 6532);
}

TEST(fft_serial, of_one_wave_is_one_point) {
  constexpr std::size_t n = 256;
  std::vector<complex_float> points(n);
  for (std::size_t j = 0; j < n; ++j) {
    const double angle = 2 * 3.14159265358979323846 * 5 * static_cast<double>(j) / n;
    points[j] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  leveret_apps::fft_serial(n, points.data());
  for (std::size_t k = 0; k < n; ++k) {
    EXPECT_NEAR(points[k].re, k == 5 ? n : 0, 1e-3) << k;
    EXPECT_NEAR(points[k].im, 0, 1e-3) << k;
  }
}

using arrays_test = app_test;
INSTANTIATE_TEST_SUITE_P(machines, arrays_test, every_case, case_name);

TEST_P(arrays_test, saxpy_and_sgemv_equal_serial_for_any_number_of_tasks) {
  constexpr std::size_t rows = 37, columns = 53;
  const auto matrix = random_floats(rows * columns, 1);
  const auto x = random_floats(columns, 2);
  std::vector<float> expected(rows), sums = matrix, more = matrix;
  leveret_apps::sgemv_serial(rows, columns, matrix.data(), x.data(), expected.data());
  leveret_apps::saxpy_serial(matrix.size(), 3, matrix.data(), sums.data());
  for (const unsigned tasks : {0u, 1u, 2u, 36u, 37u, 5000u}) {
    std::vector<float> y(rows);
    leveret_apps::sgemv(runtime(), {tasks, dice()}, rows, columns, matrix.data(), x.data(),
                        y.data());
    EXPECT_EQ(y, expected) << tasks << " tasks";
    more = matrix;
    leveret_apps::saxpy(runtime(), {tasks, dice()}, matrix.size(), 3, matrix.data(), more.data());
    EXPECT_EQ(more, sums) << tasks << " tasks";
  }
}

TEST_P(arrays_test, conv2d_equals_serial_for_blocks_that_do_not_fit) {
  for (const auto& [rows, columns, taps] :
       {std::array<std::size_t, 3>{1, 1, 1}, {5, 5, 5}, {33, 66, 2}, {70, 131, 15}, {64, 64, 1}}) {
    const auto picture = random_floats(rows * columns, 3);
    const auto weights = random_floats(taps * taps, 4);
    std::vector<float> expected((rows - taps + 1) * (columns - taps + 1)), to(expected.size());
    leveret_apps::conv2d_serial(rows, columns, taps, picture.data(), weights.data(),
                                expected.data());
    leveret_apps::conv2d(runtime(), rows, columns, taps, picture.data(), weights.data(), to.data());
    EXPECT_EQ(to, expected) << rows << " x " << columns << ", " << taps;
  }
}

TEST_P(arrays_test, fft_equals_serial_for_any_number_of_tasks) {
  for (const std::size_t n : {1u, 4u, 64u, 1024u, 16384u}) {
    const auto parts = random_floats(2 * n, 5);
    std::vector<complex_float> points, expected;
    for (std::size_t i = 0; i < n; ++i) points.push_back({parts[2 * i], parts[2 * i + 1]});
    expected = points;
    leveret_apps::fft_serial(n, expected.data());
    for (const unsigned tasks : {1u, 3u, 1000u}) {
      auto found = points;
      leveret_apps::fft(runtime(), {tasks, dice()}, n, found.data());
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(found[i].re, expected[i].re) << n << " points, " << tasks << " tasks";
        ASSERT_EQ(found[i].im, expected[i].im) << n << " points, " << tasks << " tasks";
      }
    }
  }
}

TEST_P(arrays_test, runs_report_correct_results) {
  for (const auto run : {leveret_apps::run_saxpy, leveret_apps::run_sgemv, leveret_apps::run_conv2d,
                         leveret_apps::run_fft}) {
    array_options o;
    o.n = 256;
    o.cut = {7, dice()};
    o.steps = 2;
    const auto report = run(runtime(), o);
    EXPECT_TRUE(report.correct);
    EXPECT_LT(report.error, 1e-5);
    EXPECT_GT(report.seconds, 0);
    EXPECT_GE(report.tasks, 2u);
  }
}

// Each step adds to what the one before has rounded.
TEST(arrays_on_sim, many_steps_of_saxpy_may_round_as_often) {
  lev::config c;
  c.machine = "sim";
  lev::runtime runtime(c);
  array_options o;
  o.n = 8;
  o.cut = {1, false};
  o.steps = 20'000;
  const auto report = leveret_apps::run_saxpy(runtime, o);
  EXPECT_TRUE(report.correct) << report.error;
  EXPECT_GT(report.error, 1e-4);
}

TEST_P(arrays_test, what_makes_no_sense_is_refused) {
  std::vector<float> some(64);
  std::vector<complex_float> points(8);
  EXPECT_THROW(leveret_apps::fft(runtime(), {1, dice()}, 8, points.data()), lev::error);
  EXPECT_THROW(leveret_apps::fft(runtime(), {1, dice()}, 0, points.data()), lev::error);
  for (const std::size_t taps : {0u, 9u, 16u}) {
    EXPECT_THROW(leveret_apps::conv2d(runtime(), 8, 8, taps, some.data(), some.data(), some.data()),
                 lev::error);
  }
}

TEST(arrays_on_processes, are_correct) {
  if (const char* why = lev::machine_unavailable("processes")) GTEST_SKIP() << why;
  lev::config config;
  config.machine = "processes";
  config.workers = 2;
  lev::runtime runtime(config);
  array_options o;
  o.n = 1024;
  for (const auto run : {leveret_apps::run_saxpy, leveret_apps::run_sgemv, leveret_apps::run_conv2d,
                         leveret_apps::run_fft}) {
    EXPECT_TRUE(run(runtime, o).correct);
  }
}

// On `sim` other seeds are other schedules, and none changes a result.
TEST(arrays_on_sim, are_the_same_for_200_seeds) {
  const auto first = random_floats(2 * 256, 6);
  std::vector<complex_float> expected;
  for (std::size_t i = 0; i < 256; ++i) expected.push_back({first[2 * i], first[2 * i + 1]});
  const auto points = expected;
  leveret_apps::fft_serial(256, expected.data());
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    lev::config config;
    config.machine = "sim";
    config.workers = 3;
    config.seed = seed;
    lev::runtime runtime(config);
    auto found = points;
    leveret_apps::fft(runtime, {5, true}, 256, found.data());
    for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(found[i].re, expected[i].re) << seed;
  }
}

}  // namespace
