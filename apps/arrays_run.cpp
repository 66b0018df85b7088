// SAXPY, SGEMV and CONV2D with random data: against the serial ones, and sums in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "leveret_apps/arrays.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

using floats = lev::shared_array<float>;

constexpr double allowed_error = 1e-4;  // rounding of some thousand sums in single precision
constexpr std::size_t conv2d_taps = 5;

void fill(floats& all, random_numbers& random) {
  for (float& each : all) each = static_cast<float>(random.next() * 2 - 1);
}

// work() and serially() write `to`, as often as asked; exact(i) is element i in double precision.
template <class Work, class Serially, class Exact>
array_report compared(lev::runtime& runtime, const array_options& options, floats& to, Work&& work,
                      Serially&& serially, Exact&& exact, double allowed = allowed_error) {
  const unsigned steps = std::max(1u, options.steps);
  array_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(runtime, [&] {
    for (unsigned i = 0; i < steps; ++i) work();
  });
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  const std::vector<float> found(to.begin(), to.end());
  report.serial_seconds = host_seconds([&] {
    for (unsigned i = 0; i < steps; ++i) serially();
  });
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double value = exact(i);
    difference = std::max(difference, std::abs(found[i] - value));
    largest = std::max(largest, std::abs(value));
  }
  report.error = largest > 0 ? difference / largest : difference;
  report.correct = std::equal(found.begin(), found.end(), to.begin()) && report.error <= allowed;
  return report;
}

}  // namespace

array_report run_saxpy(lev::runtime& runtime, const array_options& options) {
  constexpr float a = 0.75f;
  const std::size_t n = options.n;
  const double steps = std::max(1u, options.steps);
  random_numbers random(options.seed);
  floats x(n), first(n), y(n);
  fill(x, random);
  fill(first, random);
  std::copy(first.begin(), first.end(), y.begin());
  bool is_first = true;
  return compared(
      runtime, options, y, [&] { saxpy(runtime, options.cut, n, a, x.data(), y.data()); },
      [&] {
        if (is_first) std::copy(first.begin(), first.end(), y.begin());
        is_first = false;
        saxpy_serial(n, a, x.data(), y.data());
      },
      [&](std::size_t i) { return first[i] + steps * a * x[i]; },
      std::max(allowed_error, steps * 0x1p-23));  // each step rounds a product and a sum
}

array_report run_sgemv(lev::runtime& runtime, const array_options& options) {
  const std::size_t n = options.n;
  random_numbers random(options.seed);
  floats matrix(n * n), x(n), y(n);
  fill(matrix, random);
  fill(x, random);
  return compared(
      runtime, options, y,
      [&] { sgemv(runtime, options.cut, n, n, matrix.data(), x.data(), y.data()); },
      [&] { sgemv_serial(n, n, matrix.data(), x.data(), y.data()); },
      [&](std::size_t r) {
        double sum = 0;
        for (std::size_t c = 0; c < n; ++c) sum += double{matrix[r * n + c]} * x[c];
        return sum;
      });
}

array_report run_conv2d(lev::runtime& runtime, const array_options& options) {
  const std::size_t n = options.n;
  const std::size_t to_n = n - std::min(n, conv2d_taps - 1);
  random_numbers random(options.seed);
  floats picture(n * n), weights(conv2d_taps * conv2d_taps), to(to_n * to_n);
  fill(picture, random);
  fill(weights, random);
  return compared(
      runtime, options, to,
      [&] { conv2d(runtime, n, n, conv2d_taps, picture.data(), weights.data(), to.data()); },
      [&] { conv2d_serial(n, n, conv2d_taps, picture.data(), weights.data(), to.data()); },
      [&](std::size_t i) {
        double sum = 0;
        const float* const corner = picture.data() + i / to_n * n + i % to_n;
        for (std::size_t w = 0; w < weights.size(); ++w) {
          sum += double{weights[w]} * corner[w / conv2d_taps * n + w % conv2d_taps];
        }
        return sum;
      });
}

}  // namespace leveret_apps
