// LU: the reference and its checks themselves, and every variant against them.
#include <cstring>
#include <leveret_apps/lu.hpp>
#include <vector>

#include "app_fixture.hpp"

using namespace leveret_apps;

namespace {

template <class T>
std::vector<T> make_matrix(std::size_t n, std::uint64_t seed) {
  std::vector<T> matrix(n * n);
  lu_make_matrix(n, seed, matrix.data());
  return matrix;
}

template <class T>
std::vector<T> factor_serially(std::vector<T> matrix, std::size_t n) {
  lu_serial(n, matrix.data());
  return matrix;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(lu_serial, factors_a_matrix_worked_by_hand) {
  // Columns (2, 4, 6), (1, 5, 12), (1, 4, 14) are L = [1; 2 1; 3 3 1] times U = [2 1 1; 3 2; 5].
  std::vector<double> a = {2, 4, 6, 1, 5, 12, 1, 4, 14};
  lu_serial(3, a.data());
  EXPECT_EQ(a, (std::vector<double>{2, 2, 3, 1, 3, 3, 1, 2, 5}));
}

TEST(lu_residual, is_small_for_right_factors_and_large_for_wrong_ones) {
  constexpr std::size_t n = 50;
  const auto matrix = make_matrix<double>(n, 7);
  auto factors = factor_serially(matrix, n);
  EXPECT_LT(lu_residual(n, matrix.data(), factors.data(), n), 1e-15);
  for (const std::size_t wrong : {std::size_t{0}, n * n / 2, n * n - 1}) {
    auto spoilt = factors;
    spoilt[wrong] += 1;
    EXPECT_GT(lu_residual(n, matrix.data(), spoilt.data(), n), 1e-3) << wrong;
  }
}

TEST(lu_make_matrix, repeats_with_its_seed) {
  EXPECT_EQ(make_matrix<float>(10, 3), make_matrix<float>(10, 3));
  EXPECT_NE(make_matrix<float>(10, 3), make_matrix<float>(10, 4));
}

using lu_test = app_test;
INSTANTIATE_TEST_SUITE_P(machines, lu_test, every_case, case_name);

TEST_P(lu_test, columns_equal_serial) {
  for (const std::size_t n : {1u, 2u, 3u, 17u, 64u}) {
    const auto matrix = make_matrix<float>(n, n);
    const auto expected = factor_serially(matrix, n);
    for (const unsigned columns_per_task : {1u, 0u, 5u}) {
      auto factors = matrix;
      lu_columns(runtime(), n, factors.data(), {3, columns_per_task, dice()});
      EXPECT_TRUE(same_bits(factors, expected)) << n << ' ' << columns_per_task;
    }
  }
}

TEST_P(lu_test, columns_equal_serial_in_double_precision) {
  constexpr std::size_t n = 60;
  const auto matrix = make_matrix<double>(n, 5);
  auto factors = matrix;
  lu_columns(runtime(), n, factors.data(), {0, 0, dice()});
  EXPECT_TRUE(same_bits(factors, factor_serially(matrix, n)));
}

// Blocks are not diced: the cases with and without are the same.
TEST_P(lu_test, blocks_equal_serial) {
  for (const std::size_t n : {1u, 16u, 50u, 96u}) {
    const auto matrix = make_matrix<float>(n, n);
    const auto expected = factor_serially(matrix, n);
    for (const lu_schedule schedule : {lu_schedule::phases, lu_schedule::dependencies}) {
      for (const lu_layout layout : {lu_layout::contiguous, lu_layout::strided}) {
        auto factors = matrix;
        lu_blocks(runtime(), n, factors.data(), {16, schedule, layout});
        EXPECT_TRUE(same_bits(factors, expected))
            << n << (schedule == lu_schedule::phases ? " phases" : " dependencies")
            << (layout == lu_layout::strided ? " strided" : " contiguous");
      }
    }
  }
}

TEST_P(lu_test, blocks_of_any_size_equal_serial_in_double_precision) {
  constexpr std::size_t n = 40;
  const auto matrix = make_matrix<double>(n, 5);
  const auto expected = factor_serially(matrix, n);
  for (const unsigned block : {0u, 1u, 7u, 39u, 40u, 1000u}) {
    if (block < 2 && !dice()) continue;  // 1600 blocks: once is enough
    auto factors = matrix;
    lu_blocks(runtime(), n, factors.data(), {block, lu_schedule::dependencies, lu_layout::strided});
    EXPECT_TRUE(same_bits(factors, expected)) << block;
  }
}

TEST_P(lu_test, more_blocks_than_tickets_are_refused) {
  constexpr std::size_t n = 46;
  auto matrix = make_matrix<float>(n, 1);
  const auto before = matrix;
  const lu_block_options options = {1, lu_schedule::dependencies, lu_layout::strided};
  EXPECT_THROW(lu_blocks(runtime(), n, matrix.data(), options), lev::error);
  EXPECT_EQ(matrix, before);
}

TEST_P(lu_test, run_reports_a_correct_result) {
  lu_options options;
  options.n = 80;
  options.columns.dice = dice();
  options.blocks.block = 32;
  for (const lu_variant variant : {lu_variant::columns, lu_variant::blocks}) {
    for (const bool is_double : {false, true}) {
      options.variant = variant;
      options.double_precision = is_double;
      const lu_report report = run_lu(runtime(), options);
      EXPECT_TRUE(report.correct);
      EXPECT_LT(report.error, is_double ? 1e-15 : 1e-6);
      EXPECT_GT(report.seconds, 0);
      EXPECT_GT(report.tasks, 0u);
    }
  }
}

}  // namespace
