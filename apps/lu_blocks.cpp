// LU by blocks (SPLASH-2, as ported to tasks in TPC section 3).
//
// Step k: 1. factor block (k, k). 2. bdiv: blocks (i, k) become L(i, k) = A U(k, k)^-1; bmodd:
// blocks (k, j) become U(k, j) = L(k, k)^-1 A. 3. bmod: blocks (i, j) lose L(i, k) U(k, j). A block
// is a memory argument whose rows are the block's columns.
#include <algorithm>
#include <vector>

#include "drained.hpp"
#include "leveret_apps/lu.hpp"

namespace leveret_apps {
namespace {

// An SPE's peak of single precision: four multiplications and additions begin in a cycle (gcell).
constexpr std::uint64_t operations_per_cycle = 8;

template <class T>
void subtract(T* __restrict from, const T* __restrict what, T factor, std::size_t begin,
              std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) from[i] -= what[i] * factor;
}

template <class T>
void factor_diagonal(lev::inout<T> d) {
  const std::size_t size = d.rows();
  for (std::size_t k = 0; k < size; ++k) {
    T* const column = d.row(k);
    for (std::size_t i = k + 1; i < size; ++i) column[i] /= column[k];
    for (std::size_t j = k + 1; j < size; ++j) subtract(d.row(j), column, d.row(j)[k], k + 1, size);
  }
}

template <class T>
void bdiv(lev::in<T> d, lev::inout<T> a) {
  for (std::size_t j = 0; j < a.rows(); ++j) {
    T* const column = a.row(j);
    for (std::size_t k = 0; k < j; ++k) subtract(column, a.row(k), d.row(j)[k], 0, a.row_size());
    const T pivot = d.row(j)[j];
    for (std::size_t i = 0; i < a.row_size(); ++i) column[i] /= pivot;
  }
}

template <class T>
void bmodd(lev::in<T> d, lev::inout<T> a) {
  for (std::size_t j = 0; j < a.rows(); ++j) {
    T* const column = a.row(j);
    for (std::size_t k = 0; k < d.rows(); ++k) {
      subtract(column, d.row(k), column[k], k + 1, a.row_size());
    }
  }
}

// Four columns of L at a time, one after the other for each element: the same roundings in the same
// order as one column at a time, with a quarter of the loads and stores of `from`.
template <class T>
void subtract_four(T* __restrict from, const lev::in<T>& l, const T* u, std::size_t k,
                   std::size_t count) {
  const T* __restrict l0 = l.row(k);
  const T* __restrict l1 = l.row(k + 1);
  const T* __restrict l2 = l.row(k + 2);
  const T* __restrict l3 = l.row(k + 3);
  const T u0 = u[k], u1 = u[k + 1], u2 = u[k + 2], u3 = u[k + 3];
  for (std::size_t i = 0; i < count; ++i) {
    from[i] = from[i] - l0[i] * u0 - l1[i] * u1 - l2[i] * u2 - l3[i] * u3;
  }
}

template <class T>
void bmod(lev::in<T> l, lev::in<T> u, lev::inout<T> a) {
  for (std::size_t j = 0; j < a.rows(); ++j) {
    std::size_t k = 0;
    for (; k + 4 <= l.rows(); k += 4) subtract_four(a.row(j), l, u.row(j), k, a.row_size());
    for (; k < l.rows(); ++k) subtract(a.row(j), l.row(k), u.row(j)[k], 0, a.row_size());
  }
}

std::uint64_t elements(const lev::argument& a) {
  return a.rows * (a.row_bytes / a.unit_bytes);
}

// bmod multiplies and adds once per element of `a` and column of `l`; the other two do half of
// that.
std::uint64_t bmod_cycles(const lev::descriptor& task) {
  return 2 * elements(task.arguments[2]) * task.arguments[0].rows / operations_per_cycle;
}
std::uint64_t half_cycles(const lev::descriptor& task) {
  return elements(task.arguments[1]) * task.arguments[0].rows / operations_per_cycle;
}
std::uint64_t diagonal_cycles(const lev::descriptor& task) {
  return 2 * elements(task.arguments[0]) * task.arguments[0].rows / (3 * operations_per_cycle);
}

template <class T>
struct procedures {
  lev::procedure<void(lev::inout<T>)> diagonal;
  lev::procedure<void(lev::in<T>, lev::inout<T>)> bdiv;
  lev::procedure<void(lev::in<T>, lev::inout<T>)> bmodd;
  lev::procedure<void(lev::in<T>, lev::in<T>, lev::inout<T>)> bmod;
};
const procedures<float> float_procedures = {
    lev::define("lu_diagonal_f32", &factor_diagonal<float>, nullptr, &diagonal_cycles),
    lev::define("lu_bdiv_f32", &bdiv<float>, nullptr, &half_cycles),
    lev::define("lu_bmodd_f32", &bmodd<float>, nullptr, &half_cycles),
    lev::define("lu_bmod_f32", &bmod<float>, nullptr, &bmod_cycles)};
const procedures<double> double_procedures = {
    lev::define("lu_diagonal_f64", &factor_diagonal<double>, nullptr, &diagonal_cycles),
    lev::define("lu_bdiv_f64", &bdiv<double>, nullptr, &half_cycles),
    lev::define("lu_bmodd_f64", &bmodd<double>, nullptr, &half_cycles),
    lev::define("lu_bmod_f64", &bmod<double>, nullptr, &bmod_cycles)};

// Where the blocks lie: in the caller's matrix, or each together in a copy that goes back at the
// end.
template <class T>
class block_grid {
 public:
  block_grid(std::size_t n, std::size_t block, lu_layout layout, T* matrix)
      : n_(n), block_(block), side_((n + block - 1) / block), matrix_(matrix) {
    if (layout == lu_layout::strided) return;
    copy_.resize(side_ * side_ * block_ * block_);
    for_each_column([](T* in_matrix, T* in_block, std::size_t size) {
      std::copy_n(in_matrix, size, in_block);
    });
  }

  std::size_t side() const { return side_; }

  lev::memory<T> at(std::size_t i, std::size_t j) {
    T* const start = copy_.empty() ? matrix_ + j * block_ * n_ + i * block_
                                   : copy_.data() + (j * side_ + i) * block_ * block_;
    return lev::strided(start, size(j), size(i), copy_.empty() ? n_ : size(i));
  }

  void copy_back() {
    if (copy_.empty()) return;
    for_each_column([](T* in_matrix, T* in_block, std::size_t size) {
      std::copy_n(in_block, size, in_matrix);
    });
  }

 private:
  std::size_t size(std::size_t i) const { return std::min(block_, n_ - i * block_); }

  template <class Visit>
  void for_each_column(Visit visit) {
    for (std::size_t j = 0; j < side_; ++j) {
      for (std::size_t i = 0; i < side_; ++i) {
        for (std::size_t c = 0; c < size(j); ++c) {
          visit(matrix_ + (j * block_ + c) * n_ + i * block_, at(i, j).data + c * size(i), size(i));
        }
      }
    }
  }

  std::size_t n_;
  std::size_t block_;
  std::size_t side_;
  T* matrix_;
  std::vector<T> copy_;
};

// The master's own work: the diagonal block, between the phases.
template <class T>
void factor_diagonal_here(const lev::memory<T>& d) {
  factor_diagonal(lev::inout<T>(d.data, d.row_size, d.rows, d.stride_bytes));
}

template <class T>
void factor_in_phases(lev::runtime& runtime, block_grid<T>& grid, const procedures<T>& run) {
  for (std::size_t k = 0; k < grid.side(); ++k) {
    factor_diagonal_here(grid.at(k, k));
    const std::size_t rest = grid.side() - k - 1;
    if (rest == 0) return;
    const auto panel = [&](std::size_t i, lev::descriptor& task) {
      const std::size_t other = k + 1 + i / 2;
      task = i % 2 == 0 ? lev::pack(run.bdiv, grid.at(k, k), grid.at(other, k))
                        : lev::pack(run.bmodd, grid.at(k, k), grid.at(k, other));
    };
    runtime.submit_bulk(2 * rest, panel).wait();
    const auto interior = [&](std::size_t b, lev::descriptor& task) {
      const std::size_t i = k + 1 + b % rest;
      const std::size_t j = k + 1 + b / rest;
      task = lev::pack(run.bmod, grid.at(i, k), grid.at(k, j), grid.at(i, j));
    };
    runtime.submit_bulk(rest * rest, interior).wait();
  }
}

// Options for a task that comes after those of the tickets, of which some may be empty.
template <class... Tickets>
lev::options after_all(const Tickets&... tickets) {
  lev::options o;
  ((tickets ? void(o.after(tickets)) : void()), ...);
  return o;
}

// A block is written in turn by the tasks of steps 0, 1, ...; it is read only after its last write.
// So it is enough that each task comes after the last writers of the blocks it touches. Tickets of
// finished rows and columns of blocks are given back; a failure among them reaches the last block,
// whose task depends on all others.
template <class T>
void factor_by_dependencies(lev::runtime& runtime, block_grid<T>& grid, const procedures<T>& run) {
  const std::size_t side = grid.side();
  std::vector<lev::ticket> writer(side * side);
  const auto last = [&](std::size_t i, std::size_t j) -> lev::ticket& {
    return writer[j * side + i];
  };
  for (std::size_t k = 0; k < side; ++k) {
    const auto d = grid.at(k, k);
    last(k, k) = runtime.submit(after_all(last(k, k)), run.diagonal, d);
    for (std::size_t i = k + 1; i < side; ++i) {
      last(i, k) = runtime.submit(after_all(last(k, k), last(i, k)), run.bdiv, d, grid.at(i, k));
      last(k, i) = runtime.submit(after_all(last(k, k), last(k, i)), run.bmodd, d, grid.at(k, i));
    }
    for (std::size_t j = k + 1; j < side; ++j) {
      for (std::size_t i = k + 1; i < side; ++i) {
        last(i, j) = runtime.submit(after_all(last(i, k), last(k, j), last(i, j)), run.bmod,
                                    grid.at(i, k), grid.at(k, j), grid.at(i, j));
      }
    }
    if (k + 1 == side) break;
    for (std::size_t i = k; i < side; ++i) {
      last(i, k).release();
      last(k, i).release();
    }
  }
  last(side - 1, side - 1).wait();
}

template <class T>
void factor(lev::runtime& runtime, std::size_t n, T* matrix, const lu_block_options& options,
            const procedures<T>& run) {
  if (n == 0) return;
  const bool is_graph = options.schedule == lu_schedule::dependencies;
  block_grid<T> grid(n, std::clamp<std::size_t>(options.block, 1, n), options.layout, matrix);
  // A submit waits for ever when its caller holds all tickets.
  if (is_graph && grid.side() * grid.side() > options.tickets / 2) {
    throw lev::error(lev::status::too_big, -1,
                     "lu_blocks(): more blocks than half the tickets; take larger blocks");
  }
  drained(runtime, [&] {
    if (is_graph) {
      factor_by_dependencies(runtime, grid, run);
    } else {
      factor_in_phases(runtime, grid, run);
    }
  });
  grid.copy_back();
}

}  // namespace

void lu_blocks(lev::runtime& runtime, std::size_t n, float* matrix,
               const lu_block_options& options) {
  factor(runtime, n, matrix, options, float_procedures);
}
void lu_blocks(lev::runtime& runtime, std::size_t n, double* matrix,
               const lu_block_options& options) {
  factor(runtime, n, matrix, options, double_procedures);
}

}  // namespace leveret_apps
