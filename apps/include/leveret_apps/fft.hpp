// A large Fourier transform in six steps (Bailey, 1990): columns and rows of a square matrix of
// complex numbers, transposed in between, so that each task has a row that fits its local store.
//
// Paper: TPC, section 4 (SPLASH-2's FFT, single precision; 4 million and 65,536 points).
#pragma once

#include <leveret_apps/arrays.hpp>

namespace leveret_apps {

struct complex_float {
  float re, im;
};

// fft() transforms n points in place: the k-th becomes the sum of x[j] * exp(-2 pi i j k / n). n is
// a power of 4, to 4^13. `cut.tasks` is for a step over rows; a transposition has a task for two
// blocks of 32 x 32. 1. Transpose. 2. Transform each row, and 3. turn its k-th point by row * k /
// n.
// 4. Transpose. 5. Transform each row. 6. Transpose. Waits for all tasks; bit for bit what
// fft_serial() does. Throws lev::error: bad_argument (n), too_big (a row and what it needs are
// larger than the local store).
void fft(lev::runtime& runtime, const array_cut& cut, std::size_t n, complex_float* points);
void fft_serial(std::size_t n, complex_float* points);

// run_fft() transforms options.n random points, as often as asked, and compares some of them with
// sums in double precision. Throws as fft() does, and std::bad_alloc.
array_report run_fft(lev::runtime& runtime, const array_options& options);

}  // namespace leveret_apps
