// The Fourier transform in six steps: bodies of tasks, and the same serially.
//
// A row: 1. points change places, as the bits of their numbers are turned round; 2. stages of
// butterflies of 2, 4, 8 ... points.
#include "leveret_apps/fft.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "drained.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr std::size_t block = 32;  // of a transposition: 8 KiB, twice

complex_float product(complex_float a, complex_float b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// roots[k] is exp(-2 pi i k / size), for k below size / 2.
void transform_row(std::size_t size, const complex_float* roots, complex_float* row) {
  for (std::size_t i = 1, j = 0; i < size; ++i) {
    std::size_t bit = size / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(row[i], row[j]);
  }
  for (std::size_t half = 1; half < size; half *= 2) {
    for (std::size_t first = 0; first < size; first += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        complex_float& a = row[first + k];
        complex_float& b = row[first + k + half];
        const complex_float turned = product(b, roots[k * (size / 2 / half)]);
        b = {a.re - turned.re, a.im - turned.im};
        a = {a.re + turned.re, a.im + turned.im};
      }
    }
  }
}

// Turns the k-th point by angle * k. The angle's multiples are products in double precision.
void turn_row(std::size_t size, double angle, complex_float* row) {
  const double step_re = std::cos(angle);
  const double step_im = std::sin(angle);
  double re = 1;
  double im = 0;
  for (std::size_t k = 0; k < size; ++k) {
    row[k] = product(row[k], {static_cast<float>(re), static_cast<float>(im)});
    const double next = re * step_re - im * step_im;
    im = re * step_im + im * step_re;
    re = next;
  }
}

// With `turns` steps 2 and 3, else step 5.
void rows_body(bool turns, lev::range numbers, lev::in<complex_float> roots,
               lev::inout<complex_float> rows) {
  const std::size_t size = rows.row_size();
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    transform_row(size, roots.data(), rows.row(r));
    const double points = static_cast<double>(size) * static_cast<double>(size);
    const double number = static_cast<double>(numbers.begin + r);
    if (turns) turn_row(size, -2 * pi * number / points, rows.row(r));
  }
}

// Two blocks that change places, or a block of the diagonal.
void swap_body(lev::inout<complex_float> a, lev::inout<complex_float> b) {
  for (std::size_t r = 0; r < a.rows(); ++r) {
    for (std::size_t c = 0; c < b.rows(); ++c) std::swap(a.row(r)[c], b.row(c)[r]);
  }
}
void turn_over_body(lev::inout<complex_float> a) {
  for (std::size_t r = 0; r < a.rows(); ++r) {
    for (std::size_t c = 0; c < r; ++c) std::swap(a.row(r)[c], a.row(c)[r]);
  }
}

// An SPE works on four floats in a cycle, and loads or stores four at the same time (Cell Broadband
// Engine Programming Handbook, 1.11, appendix B): 8 loads, stores and shuffles for four
// butterflies; a load and a store for two points that change places, and as many shuffles.
std::uint64_t rows_cycles(const lev::descriptor& task) {
  const lev::argument& rows = task.arguments[3];
  const std::uint64_t size = rows.row_bytes / sizeof(complex_float);
  std::uint64_t stages = 0;
  while ((size >> stages) > 1) ++stages;
  return rows.rows * size * (stages + 1);
}
std::uint64_t swap_cycles(const lev::descriptor& task) {
  const lev::argument& rows = task.arguments[0];
  return rows.rows * rows.row_bytes / sizeof(complex_float) * 2;
}

const auto rows_procedure = lev::define("fft_rows", &rows_body, nullptr, &rows_cycles);
const auto swap_procedure = lev::define("fft_swap_blocks", &swap_body, nullptr, &swap_cycles);
const auto turn_over_procedure =
    lev::define("fft_turn_block_over", &turn_over_body, nullptr, &swap_cycles);

// The square matrix that n points are; refuses other n.
struct square {
  square(std::size_t n, complex_float* all) : points(all) {
    while (side * side < n) side *= 2;
    if (side * side != n || side > 1u << 13) {
      throw lev::error(lev::status::bad_argument, -1,
                       "fft: the number of points must be a power of 4, to 4^13");
    }
    edge = std::min(block, side);
    for (std::size_t r = 0; r < side / edge; ++r) {
      for (std::size_t c = 0; c <= r; ++c) pairs.push_back({r * edge, c * edge});
    }
    for (std::size_t k = 0; k < std::max<std::size_t>(1, side / 2); ++k) {
      const double angle = -2 * pi * static_cast<double>(k) / static_cast<double>(side);
      roots.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
    }
  }

  lev::memory<complex_float> rows_at(std::size_t r, std::size_t c, std::size_t rows,
                                     std::size_t columns) const {
    return lev::strided(points + r * side + c, rows, columns, static_cast<std::ptrdiff_t>(side));
  }

  complex_float* points;
  std::size_t side = 1;
  std::size_t edge = 1;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // of blocks that change places
  std::vector<complex_float> roots;
};

void transpose(lev::runtime& runtime, const square& m) {
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    const auto [r, c] = m.pairs[i];
    const auto here = m.rows_at(r, c, m.edge, m.edge);
    task = r == c ? lev::pack(turn_over_procedure, here)
                  : lev::pack(swap_procedure, here, m.rows_at(c, r, m.edge, m.edge));
  };
  runtime.submit_bulk(m.pairs.size(), make).wait();
}

void transform_rows(lev::runtime& runtime, const array_cut& cut, const square& m, bool turns) {
  const std::size_t count = std::clamp<std::size_t>(cut.tasks, 1, m.side);
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    const lev::range r{m.side * i / count, m.side * (i + 1) / count};
    auto rows = m.rows_at(r.begin, 0, r.end - r.begin, m.side);
    rows.is_sliced = cut.dice;
    task = lev::pack(rows_procedure, turns, r, m.roots, rows);
    if (!cut.dice) task.arguments[1].flags = 0;
  };
  runtime.submit_bulk(count, make).wait();
}

lev::inout<complex_float> as_view(const lev::memory<complex_float>& m) {
  return {m.data, m.row_size, m.rows, m.stride_bytes};
}

void transpose_serially(const square& m) {
  for (const auto& [r, c] : m.pairs) {
    const auto here = as_view(m.rows_at(r, c, m.edge, m.edge));
    if (r == c) {
      turn_over_body(here);
    } else {
      swap_body(here, as_view(m.rows_at(c, r, m.edge, m.edge)));
    }
  }
}

void transform_rows_serially(const square& m, bool turns) {
  const auto stride = static_cast<std::ptrdiff_t>(m.roots.size() * sizeof(complex_float));
  rows_body(turns, {0, m.side}, {m.roots.data(), m.roots.size(), 1, stride},
            as_view(m.rows_at(0, 0, m.side, m.side)));
}

// The k-th point by its definition.
std::pair<double, double> plain_point(const std::vector<complex_float>& points, std::size_t k) {
  double re = 0;
  double im = 0;
  const std::size_t n = points.size();
  for (std::size_t j = 0; j < n; ++j) {
    const double angle = -2 * pi * static_cast<double>(j * k % n) / static_cast<double>(n);
    re += points[j].re * std::cos(angle) - points[j].im * std::sin(angle);
    im += points[j].re * std::sin(angle) + points[j].im * std::cos(angle);
  }
  return {re, im};
}

}  // namespace

void fft(lev::runtime& runtime, const array_cut& cut, std::size_t n, complex_float* points) {
  const square m(n, points);
  drained(runtime, [&] {
    transpose(runtime, m);
    transform_rows(runtime, cut, m, true);
    transpose(runtime, m);
    transform_rows(runtime, cut, m, false);
    transpose(runtime, m);
  });
}

void fft_serial(std::size_t n, complex_float* points) {
  const square m(n, points);
  transpose_serially(m);
  transform_rows_serially(m, true);
  transpose_serially(m);
  transform_rows_serially(m, false);
  transpose_serially(m);
}

array_report run_fft(lev::runtime& runtime, const array_options& options) {
  constexpr double allowed_error = 1e-5;  // of rounding in single precision, over 13 or 26 stages
  constexpr std::size_t samples = 8;
  const unsigned steps = std::max(1u, options.steps);
  random_numbers random(options.seed);
  std::vector<complex_float> first(options.n);
  for (complex_float& p : first) {
    p = {static_cast<float>(random.next() - 0.5), static_cast<float>(random.next() - 0.5)};
  }
  lev::shared_array<complex_float> points(options.n);
  // Each step begins with the same points: their size would grow without bound.
  const auto again = [&] { std::copy(first.begin(), first.end(), points.begin()); };
  array_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  for (unsigned i = 0; i < steps; ++i) {
    again();
    report.seconds +=
        machine_seconds(runtime, [&] { fft(runtime, options.cut, options.n, points.data()); });
  }
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  const std::vector<complex_float> found(points.begin(), points.end());
  for (unsigned i = 0; i < steps; ++i) {
    again();
    report.serial_seconds += host_seconds([&] { fft_serial(options.n, points.data()); });
  }
  const auto is_same = [](complex_float a, complex_float b) {
    return a.re == b.re && a.im == b.im;
  };
  const bool is_equal = std::equal(found.begin(), found.end(), points.begin(), is_same);
  for (std::size_t s = 0; s < samples; ++s) {
    const auto k = static_cast<std::size_t>(random.next() * static_cast<double>(options.n));
    const auto [re, im] = plain_point(first, k);
    // Relative to what a random point has on average.
    const double size = std::sqrt(static_cast<double>(options.n) / 6);
    report.error = std::max(report.error, std::hypot(found[k].re - re, found[k].im - im) / size);
  }
  report.correct = is_equal && report.error <= allowed_error;
  return report;
}

}  // namespace leveret_apps
