/* Procedures for the tests: plain C functions of many shapes. */
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void axpy_f4(float a, const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

/* Narrow integers of both signs, to see that each is extended as its type says. */
void narrow(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f, int64_t* sum) {
  *sum = (int64_t)a + b + c + d + e + f;
}

void block_sum(const double* a, size_t rows, size_t count, size_t stride, double* sum) {
  const size_t columns = rows ? count / rows : 0;
  double s = 0;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) s += a[r * stride + c];
  *sum = s;
}

void fill_block(double value, double* a, size_t rows, size_t count, size_t stride) {
  const size_t columns = rows ? count / rows : 0;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) a[r * stride + c] = value;
}

int fail_with(int32_t code) {
  return code;
}

/* Sets out[i - begin] for the indices of a range: `out` is sliced along with them. */
void square_range(uint64_t begin, uint64_t end, uint64_t* out) {
  for (uint64_t i = begin; i < end; ++i) out[i - begin] = i * i;
}

void add_range(uint64_t begin, uint64_t end, double a, const double* x, double* y) {
  for (uint64_t i = 0; i < end - begin; ++i) y[i] = a + x[i];
}

void two_results(double x, double* doubled, int32_t* truncated) {
  *doubled = 2 * x;
  *truncated = (int32_t)x;
}

/* Writes its outputs, or leaves them as they are. */
void assign_or_not(int32_t assigns, double* result, double* out, size_t n) {
  if (!assigns) return;
  *result = 7.5;
  for (size_t i = 0; i < n; ++i) out[i] = 7.5;
}

void add_to(const double* x, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += x[i];
}

void sum_rows(const double* a, size_t rows, size_t count, double* sums) {
  for (size_t r = 0; r < rows; ++r) {
    sums[r] = 0;
    for (size_t c = 0; c < count / rows; ++c) sums[r] += a[r * (count / rows) + c];
  }
}

void copy_block(const float* a, float* b, size_t rows, size_t count, size_t to_row) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < count / rows; ++c) b[r * to_row + c] = a[r * (count / rows) + c];
}

/* Complex numbers as pairs, truth values as bytes of 0 and 1, half floats as their bits. */
void conjugate(const double* z, double* conjugated, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    conjugated[2 * i] = z[2 * i];
    conjugated[2 * i + 1] = -z[2 * i + 1];
  }
}

void make_complex(float re, float im, float* z) {
  z[0] = re;
  z[1] = im;
}

void invert(const uint8_t* x, uint8_t* y, size_t n, uint8_t last, uint8_t* any) {
  *any = last;
  for (size_t i = 0; i < n; ++i) {
    *any |= x[i];
    y[i] = !x[i];
  }
}

void last_half(const uint16_t* x, size_t n, uint16_t* last) {
  *last = x[n - 1];
}

void increment(int64_t* counter) {
  ++*counter;
}

/* Spins until the flag that Python holds is set, at most ten seconds. */
int wait_for_flag(const volatile int32_t* flag) {
  const time_t end = time(NULL) + 10;
  while (!*flag)
    if (time(NULL) > end) return 99;
  return 0;
}

/* Says that it runs, and does so for ever. */
void never_end(volatile int32_t* begun) {
  *begun = 1;
  for (;;) poll(NULL, 0, -1);
}

/* Says in flags[1] that it runs, and fails when flags[0] is set, after ten seconds at most. */
int fail_when_told(volatile int32_t* flags) {
  const time_t end = time(NULL) + 10;
  flags[1] = 1;
  while (!flags[0] && time(NULL) <= end) {
  }
  return 7;
}

/* Ends its process for a negative element; ends the task with a code for an infinite one. */
int root_or_crash(const double* x, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (x[i] < 0) abort();
    if (x[i] > 1e300) return 7;
    y[i] = 2 * x[i];
  }
  return 0;
}

void add_first(const double* x, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += x[0];
}

void add_one(double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += 1;
}

/* Waits until a file is there, at most ten minutes, and adds one; `path` ends with 0. */
int wait_for_file(const uint8_t* path, double* y, size_t n) {
  const time_t end = time(NULL) + 600;
  FILE* file = NULL;
  while ((file = fopen((const char*)path, "r")) == NULL) {
    if (time(NULL) > end) return 99;
    poll(NULL, 0, 1);
  }
  fclose(file);
  add_one(y, n);
  return 0;
}

/* As add_one, a millisecond for each element. */
void add_one_slowly(double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    poll(NULL, 0, 1);
    y[i] += 1;
  }
}

/* Sets y to 1, and ends its process in one call. */
void die_or_set(int32_t dies, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = 1;
  if (dies) abort();
}

/* As add_one; on a node whose environment names a file, as wait_for_file. */
void add_one_by_node(double* y, size_t n) {
  const char* path = getenv("SLOW_NODE");
  if (path == NULL)
    add_one(y, n);
  else
    wait_for_file((const uint8_t*)path, y, n);
}
