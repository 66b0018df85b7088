// SAXPY, SGEMV and CONV2D: one body for each, called by tasks and by the serial program.
//
// 1. Cut elements, rows or blocks into tasks; 2. submit all as one bulk; 3. wait. Dicing cuts a
// task of SAXPY by elements, one of SGEMV by rows.
#include "leveret_apps/arrays.hpp"

#include <algorithm>

#include "drained.hpp"

namespace leveret_apps {
namespace {

// Bytes of the smallest piece: 5 us at some 10 bytes a ns.
constexpr std::uint32_t grain_bytes = 48 << 10;

void saxpy_body(float a, lev::in<float> x, lev::inout<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

// Eight sums, as the processor could not add up one faster than it adds: in an order of its own,
// but always the same.
void sgemv_body(lev::in<float> matrix, lev::in<float> x, lev::out<float> y) {
  constexpr std::size_t width = 8;
  const std::size_t columns = x.size();
  for (std::size_t r = 0; r < y.size(); ++r) {
    const float* const row = matrix.row(r);
    float sums[width] = {};
    std::size_t c = 0;
    for (; c + width <= columns; c += width) {
      for (std::size_t i = 0; i < width; ++i) sums[i] += row[c + i] * x[c + i];
    }
    for (; c < columns; ++c) sums[c % width] += row[c] * x[c];
    float sum = 0;
    for (const float each : sums) sum += each;
    y[r] = sum;
  }
}

void conv2d_body(std::uint32_t taps, lev::in<float> picture, lev::in<float> weights,
                 lev::out<float> to) {
  for (std::size_t r = 0; r < to.rows(); ++r) {
    float* const sums = to.row(r);
    std::fill(sums, sums + to.row_size(), 0.0f);
    for (std::size_t i = 0; i < taps; ++i) {
      const float* const row = picture.row(r + i);
      for (std::size_t j = 0; j < taps; ++j) {
        const float weight = weights[i * taps + j];
        for (std::size_t c = 0; c < to.row_size(); ++c) sums[c] += weight * row[c + j];
      }
    }
  }
}

// An SPE loads or stores four floats in a cycle, and multiplies and adds four at the same time
// (Cell Broadband Engine Programming Handbook, 1.11, appendix B): two loads and a store for four
// elements of SAXPY, two loads of SGEMV, and of CONV2D for each weight, as neighbours are not
// aligned.
std::uint64_t saxpy_cycles(const lev::descriptor& task) {
  return task.arguments[2].row_bytes / sizeof(float) * 3 / 4;
}
std::uint64_t sgemv_cycles(const lev::descriptor& task) {
  return task.arguments[0].row_bytes / sizeof(float) * task.arguments[0].rows / 2;
}
std::uint64_t conv2d_cycles(const lev::descriptor& task) {
  const lev::argument& to = task.arguments[3];
  const std::uint64_t weights = task.arguments[2].row_bytes / sizeof(float);
  return to.row_bytes / sizeof(float) * to.rows * weights / 2;
}

const auto saxpy_procedure = lev::define("array_saxpy", &saxpy_body, nullptr, &saxpy_cycles);
const auto sgemv_procedure = lev::define("array_sgemv", &sgemv_body, nullptr, &sgemv_cycles);
const auto conv2d_procedure = lev::define("array_conv2d", &conv2d_body, nullptr, &conv2d_cycles);

// Calls make(range, task) for parts of [0, n), and submits the tasks as one bulk.
template <class Make>
void in_parts(lev::runtime& runtime, unsigned tasks, std::size_t n, Make&& make) {
  if (n == 0) return;
  const std::size_t count = std::clamp<std::size_t>(tasks, 1, n);
  const auto make_one = [&](std::size_t i, lev::descriptor& task) {
    task = make(lev::range{n * i / count, n * (i + 1) / count});
  };
  drained(runtime, [&] { runtime.submit_bulk(count, make_one).wait(); });
}

template <class T>
lev::memory<T> part(T* data, lev::range r, bool slice) {
  auto m = lev::view(data + r.begin, r.end - r.begin);
  m.is_sliced = slice;
  return m;
}

template <class View, class T>
View all_of(T* data, std::size_t rows, std::size_t row_size) {
  return {data, row_size, rows, static_cast<std::ptrdiff_t>(row_size * sizeof(T))};
}

void check_conv2d(std::size_t rows, std::size_t columns, std::size_t taps) {
  if (taps < 1 || taps > conv2d_taps_max) {
    throw lev::error(lev::status::bad_argument, -1, "conv2d: taps must be 1 to 15");
  }
  if (rows < taps || columns < taps) {
    throw lev::error(lev::status::bad_argument, -1,
                     "conv2d: the picture must have as many rows and columns as the weights");
  }
}

}  // namespace

void saxpy(lev::runtime& runtime, const array_cut& cut, std::size_t n, float a, const float* x,
           float* y) {
  in_parts(runtime, cut.tasks, n, [&](lev::range r) {
    lev::descriptor task =
        lev::pack(saxpy_procedure, a, part(x, r, cut.dice), part(y, r, cut.dice));
    task.grain = grain_bytes / (3 * sizeof(float));
    return task;
  });
}

void saxpy_serial(std::size_t n, float a, const float* x, float* y) {
  saxpy_body(a, all_of<lev::in<float>>(x, 1, n), all_of<lev::inout<float>>(y, 1, n));
}

void sgemv(lev::runtime& runtime, const array_cut& cut, std::size_t rows, std::size_t columns,
           const float* matrix, const float* x, float* y) {
  if (columns == 0) std::fill(y, y + rows, 0.0f);
  in_parts(runtime, cut.tasks, columns == 0 ? 0 : rows, [&](lev::range r) {
    auto some = lev::strided(matrix + r.begin * columns, r.end - r.begin, columns,
                             static_cast<std::ptrdiff_t>(columns));
    some.is_sliced = cut.dice;
    lev::descriptor task =
        lev::pack(sgemv_procedure, some, lev::view(x, columns), part(y, r, cut.dice));
    const std::size_t grain = grain_bytes / (columns * sizeof(float));
    task.grain = static_cast<std::uint32_t>(std::max<std::size_t>(1, grain));
    return task;
  });
}

void sgemv_serial(std::size_t rows, std::size_t columns, const float* matrix, const float* x,
                  float* y) {
  sgemv_body(all_of<lev::in<float>>(matrix, rows, columns), all_of<lev::in<float>>(x, 1, columns),
             all_of<lev::out<float>>(y, 1, rows));
}

void conv2d(lev::runtime& runtime, std::size_t rows, std::size_t columns, std::size_t taps,
            const float* picture, const float* weights, float* to) {
  check_conv2d(rows, columns, taps);
  const std::size_t to_rows = rows - taps + 1;
  const std::size_t to_columns = columns - taps + 1;
  const std::size_t down = (to_rows + conv2d_block_rows - 1) / conv2d_block_rows;
  const std::size_t across = (to_columns + conv2d_block_columns - 1) / conv2d_block_columns;
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    const std::size_t r = i / across * conv2d_block_rows;
    const std::size_t c = i % across * conv2d_block_columns;
    const std::size_t height = std::min(conv2d_block_rows, to_rows - r);
    const std::size_t width = std::min(conv2d_block_columns, to_columns - c);
    task = lev::pack(conv2d_procedure, static_cast<std::uint32_t>(taps),
                     lev::strided(picture + r * columns + c, height + taps - 1, width + taps - 1,
                                  static_cast<std::ptrdiff_t>(columns)),
                     lev::view(weights, taps * taps),
                     lev::strided(to + r * to_columns + c, height, width,
                                  static_cast<std::ptrdiff_t>(to_columns)));
  };
  drained(runtime, [&] { runtime.submit_bulk(down * across, make).wait(); });
}

void conv2d_serial(std::size_t rows, std::size_t columns, std::size_t taps, const float* picture,
                   const float* weights, float* to) {
  check_conv2d(rows, columns, taps);
  conv2d_body(static_cast<std::uint32_t>(taps), all_of<lev::in<float>>(picture, rows, columns),
              all_of<lev::in<float>>(weights, 1, taps * taps),
              all_of<lev::out<float>>(to, rows - taps + 1, columns - taps + 1));
}

}  // namespace leveret_apps
