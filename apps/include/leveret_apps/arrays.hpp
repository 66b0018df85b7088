// Three loops over arrays of floats: SAXPY, a matrix times a vector, and a convolution of a picture
// in blocks.
//
// Paper: TPC, section 4 (SAXPY, SGEMV and CONV2D, taken over from Sequoia); its CONV2D passes
// blocks of 32 x 64 elements of a picture of 4096 x 4096 as strided arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

// How work is handed over. `tasks` has no meaning for conv2d(): a task is a block.
struct array_cut {
  unsigned tasks = 64;  // at least 1; no more than elements or rows
  bool dice = true;
};

// saxpy() adds a * x to y, n elements each. Like the next two it waits for all tasks, is bit for
// bit what its _serial() does, and throws lev::error when the runtime refuses a task: too_big for
// one that is larger than the local store and not diced.
void saxpy(lev::runtime& runtime, const array_cut& cut, std::size_t n, float a, const float* x,
           float* y);
void saxpy_serial(std::size_t n, float a, const float* x, float* y);

// sgemv() stores the products of a matrix' rows with x in y. The matrix is contiguous, row by row.
void sgemv(lev::runtime& runtime, const array_cut& cut, std::size_t rows, std::size_t columns,
           const float* matrix, const float* x, float* y);
void sgemv_serial(std::size_t rows, std::size_t columns, const float* matrix, const float* x,
                  float* y);

constexpr std::size_t conv2d_block_rows = 32;
constexpr std::size_t conv2d_block_columns = 64;
constexpr std::size_t conv2d_taps_max = 15;

// conv2d() multiplies each `taps` x `taps` elements of a picture with weights, and stores their
// sum: `to` has taps - 1 rows and columns less than the picture. Nothing is turned round, as a
// convolution in the mathematical sense would be. Throws lev::error, bad_argument: taps is not 1 to
// 15, or the picture is smaller.
void conv2d(lev::runtime& runtime, std::size_t rows, std::size_t columns, std::size_t taps,
            const float* picture, const float* weights, float* to);
void conv2d_serial(std::size_t rows, std::size_t columns, std::size_t taps, const float* picture,
                   const float* weights, float* to);

struct array_options {
  std::size_t n = 1024;  // elements of SAXPY; rows and columns of the others
  array_cut cut;
  unsigned steps = 1;  // times that it is done
  std::uint64_t seed = 1;
  bool check = true;  // compare with the serial one, and with sums in double precision
};

struct array_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // the serial one, by this computer's clock; 0 when not checked
  double error = 0;           // against double precision, relative to the largest element
  bool correct = false;     // checked: equal to the serial one bit for bit, and the error is small
  std::uint64_t tasks = 0;  // accepted by the runtime, pieces of diced ones included
};

// run_saxpy(), run_sgemv() and run_conv2d() (5 x 5 weights) make random data and do it. Throw as
// above, and std::bad_alloc.
array_report run_saxpy(lev::runtime& runtime, const array_options& options);
array_report run_sgemv(lev::runtime& runtime, const array_options& options);
array_report run_conv2d(lev::runtime& runtime, const array_options& options);

}  // namespace leveret_apps
