// LU: the matrix, the serial reference, the residual, and a run with its checks.
#include "leveret_apps/lu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

// Off the diagonal uniform in [-1, 1); on it n + 1, more than the rest of its row and column
// together.
template <class T>
void make_matrix(std::size_t n, std::uint64_t seed, T* matrix) {
  random_numbers random(seed);
  for (std::size_t i = 0; i < n * n; ++i) matrix[i] = static_cast<T>(2 * random.next() - 1);
  for (std::size_t k = 0; k < n; ++k) matrix[k * n + k] = static_cast<T>(n + 1);
}

template <class T>
void factor_serially(std::size_t n, T* a) {
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) a[k * n + i] /= a[k * n + k];
    for (std::size_t j = k + 1; j < n; ++j) {
      for (std::size_t i = k + 1; i < n; ++i) a[j * n + i] -= a[k * n + i] * a[j * n + k];
    }
  }
}

// Row i of L U is the sum over k of L(i, k) times row k of U, in double precision.
template <class T>
double residual(std::size_t n, const T* matrix, const T* factors, std::size_t rows_max) {
  const std::size_t rows = std::min(n, std::max<std::size_t>(1, rows_max));
  double worst = 0;
  double norm = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t i = rows == 1 ? n - 1 : r * (n - 1) / (rows - 1);
    double row_sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      double product = i <= j ? double{factors[j * n + i]} : 0.0;
      for (std::size_t k = 0; k < i && k <= j; ++k) {
        product += double{factors[k * n + i]} * double{factors[j * n + k]};
      }
      worst = std::max(worst, std::abs(product - double{matrix[j * n + i]}));
      row_sum += std::abs(double{matrix[j * n + i]});
    }
    norm = std::max(norm, row_sum);
  }
  return worst / norm;
}

template <class T>
lu_report run(lev::runtime& runtime, const lu_options& options) {
  constexpr std::size_t sampled_rows_max = 64;
  const std::size_t n = options.n;
  std::vector<T> matrix(n * n);
  make_matrix(n, options.seed, matrix.data());
  std::vector<T> factors = matrix;
  lu_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(runtime, [&] {
    if (options.variant == lu_variant::columns) {
      lu_columns(runtime, n, factors.data(), options.columns);
    } else {
      lu_blocks(runtime, n, factors.data(), options.blocks);
    }
  });
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  std::vector<T> expected = matrix;
  report.serial_seconds = host_seconds([&] { factor_serially(n, expected.data()); });
  report.error = residual(n, matrix.data(), factors.data(), sampled_rows_max);
  // Each element comes from at most n products: n roundings, of which a dominant diagonal lets few
  // add up.
  const double allowed = static_cast<double>(n) * std::numeric_limits<T>::epsilon();
  report.correct = std::memcmp(expected.data(), factors.data(), n * n * sizeof(T)) == 0 &&
                   report.error <= allowed;
  return report;
}

}  // namespace

void lu_make_matrix(std::size_t n, std::uint64_t seed, float* matrix) {
  make_matrix(n, seed, matrix);
}
void lu_make_matrix(std::size_t n, std::uint64_t seed, double* matrix) {
  make_matrix(n, seed, matrix);
}

void lu_serial(std::size_t n, float* matrix) {
  factor_serially(n, matrix);
}
void lu_serial(std::size_t n, double* matrix) {
  factor_serially(n, matrix);
}

double lu_residual(std::size_t n, const float* matrix, const float* factors, std::size_t rows_max) {
  return residual(n, matrix, factors, rows_max);
}
double lu_residual(std::size_t n, const double* matrix, const double* factors,
                   std::size_t rows_max) {
  return residual(n, matrix, factors, rows_max);
}

lu_report run_lu(lev::runtime& runtime, const lu_options& options) {
  return options.double_precision ? run<double>(runtime, options) : run<float>(runtime, options);
}

}  // namespace leveret_apps
