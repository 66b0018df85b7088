// LU factorisation without pivoting, two ways: by columns and by blocks.
//
// A matrix is n columns of n elements, column after column. Its factors overwrite it: U on and
// above the diagonal, L below (L has ones on its diagonal). Each element sees the same operations
// in the same order in every variant and schedule, so all results are equal bit for bit.
//
// Papers: Jack Rabbit section 5.1 (columns; after Heath); TPC section 3 (blocks; SPLASH-2's
// contiguous LU).
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

// lu_make_matrix() fills a diagonally dominant matrix (no pivoting needed) from a seed: same seed,
// same matrix, anywhere.
void lu_make_matrix(std::size_t n, std::uint64_t seed, float* matrix);
void lu_make_matrix(std::size_t n, std::uint64_t seed, double* matrix);

// lu_serial() is the reference: three loops.
void lu_serial(std::size_t n, float* matrix);
void lu_serial(std::size_t n, double* matrix);

// lu_residual() is max |L U - A| over whole rows, divided by the largest row sum of |A| in them. At
// most `rows_max` rows, evenly spread, are looked at; a row costs n * n / 2 multiplications or
// more.
double lu_residual(std::size_t n, const float* matrix, const float* factors, std::size_t rows_max);
double lu_residual(std::size_t n, const double* matrix, const double* factors,
                   std::size_t rows_max);

// By columns. Step k: multiplier tasks divide parts of column k by the pivot, barrier, update tasks
// subtract column k times an element from every later column, barrier.
struct lu_column_options {
  unsigned multiplier_tasks = 0;  // parts of the column; 0: two for each worker
  unsigned columns_per_task = 1;  // as in the paper; 0: all in one task, for the dicer to cut
  bool dice = true;
};
void lu_columns(lev::runtime& runtime, std::size_t n, float* matrix,
                const lu_column_options& options = {});
void lu_columns(lev::runtime& runtime, std::size_t n, double* matrix,
                const lu_column_options& options = {});

// By blocks. Step k: factor block (k, k); bdiv on the blocks below and bmodd on the blocks right of
// it; bmod on the rest.
enum class lu_schedule {
  phases,        // the master factors the diagonal block and waits between phases, as TPC does
  dependencies,  // four kinds of tasks, each after() the tasks that wrote its blocks; no barrier
};
enum class lu_layout {
  contiguous,  // blocks are copied together first and back at the end, as SPLASH-2 lays them out
  strided,     // blocks are taken from the columns as they are
};
struct lu_block_options {
  unsigned block = 64;  // columns and rows of a block
  lu_schedule schedule = lu_schedule::phases;
  lu_layout layout = lu_layout::contiguous;
  unsigned tickets = 4096;  // config::tickets of the runtime
};
// With lu_schedule::dependencies, (n / block)^2 tickets are held at once. Throws lev::error,
// too_big, when that is more than half of those there are.
void lu_blocks(lev::runtime& runtime, std::size_t n, float* matrix,
               const lu_block_options& options = {});
void lu_blocks(lev::runtime& runtime, std::size_t n, double* matrix,
               const lu_block_options& options = {});

enum class lu_variant { columns, blocks };
struct lu_options {
  std::size_t n = 1024;
  lu_variant variant = lu_variant::columns;
  bool double_precision = false;
  lu_column_options columns;
  lu_block_options blocks;
  std::uint64_t seed = 1;
  bool check = true;  // compare with lu_serial(), and look at the residual
};

struct lu_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // lu_serial(), by this computer's clock; 0 when not checked
  double error = 0;           // the residual
  bool correct = false;     // checked: equal to lu_serial() bit for bit, and the residual is small
  std::uint64_t tasks = 0;  // accepted by the runtime, pieces of diced ones included
};

lu_report run_lu(lev::runtime& runtime, const lu_options& options);

}  // namespace leveret_apps
