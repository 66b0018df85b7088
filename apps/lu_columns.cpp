// LU by columns (Jack Rabbit section 5.1, Figure 5.1).
//
// Step k: 1. divide column k below the diagonal by the pivot, in a few more tasks than workers;
// wait. 2. For every later column j, subtract element (k, j) times the multipliers; all tasks are
// handed over at once; wait.
#include <algorithm>

#include "drained.hpp"
#include "leveret_apps/lu.hpp"

namespace leveret_apps {
namespace {

// Jack Rabbit's update tasks took 4.6 ns an element on an SPE of 3.2 GHz (fit to Table 5.1, double
// buffered).
constexpr std::uint64_t cycles_per_element = 15;

template <class T>
void divide(T pivot, lev::inout<T> part) {
  for (T& element : part) element /= pivot;
}

// `column` starts with element (k, j) of U, which stays; the elements of the multipliers belong to
// those after it.
template <class T>
void subtract(const T* __restrict multipliers, std::size_t count, T* __restrict column) {
  const T factor = column[0];
  for (std::size_t i = 0; i < count; ++i) column[i + 1] -= multipliers[i] * factor;
}

template <class T>
void update_columns(lev::in<T> multipliers, lev::inout<T> columns) {
  for (std::size_t c = 0; c < columns.rows(); ++c) {
    subtract(multipliers.data(), multipliers.size(), columns.row(c));
  }
}

// Every kind of task here handles each element of its last argument once.
std::uint64_t cycles(const lev::descriptor& task) {
  const lev::argument& last = task.arguments[task.argument_count - 1];
  return last.rows * (last.row_bytes / last.unit_bytes) * cycles_per_element;
}

template <class T>
struct procedures {
  lev::procedure<void(T, lev::inout<T>)> divide;
  lev::procedure<void(lev::in<T>, lev::inout<T>)> update_columns;
};
const procedures<float> float_procedures = {
    lev::define("lu_divide_f32", &divide<float>, nullptr, &cycles),
    lev::define("lu_update_f32", &update_columns<float>, nullptr, &cycles)};
const procedures<double> double_procedures = {
    lev::define("lu_divide_f64", &divide<double>, nullptr, &cycles),
    lev::define("lu_update_f64", &update_columns<double>, nullptr, &cycles)};

template <class T>
class column_factorisation {
 public:
  column_factorisation(lev::runtime& runtime, std::size_t n, T* matrix,
                       const lu_column_options& options, const procedures<T>& run)
      : runtime_(runtime), n_(n), matrix_(matrix), options_(options), run_(run) {}

  void factor() {
    drained(runtime_, [&] {
      for (std::size_t k = 0; k + 1 < n_; ++k) {
        compute_multipliers(k);
        update(k);
      }
    });
  }

 private:
  T* element(std::size_t row, std::size_t column) const { return matrix_ + column * n_ + row; }

  void compute_multipliers(std::size_t k) {
    const std::size_t below = n_ - k - 1;
    const std::size_t wanted =
        options_.multiplier_tasks != 0 ? options_.multiplier_tasks : 2 * runtime_.workers();
    const std::size_t tasks = std::min(below, wanted);
    T* const column = element(k + 1, k);
    const T pivot = *element(k, k);
    const auto make = [&](std::size_t i, lev::descriptor& task) {
      const std::size_t first = below * i / tasks;
      auto part = lev::view(column + first, below * (i + 1) / tasks - first);
      part.is_sliced = options_.dice;
      task = lev::pack(run_.divide, pivot, part);
    };
    runtime_.submit_bulk(tasks, make).wait();
  }

  void update(std::size_t k) {
    const std::size_t below = n_ - k - 1;
    const std::size_t per_task = options_.columns_per_task == 0
                                     ? below
                                     : std::min<std::size_t>(below, options_.columns_per_task);
    const auto multipliers = lev::view(element(k + 1, k), below);
    const auto make = [&](std::size_t i, lev::descriptor& task) {
      const std::size_t first = k + 1 + i * per_task;
      const std::size_t count = std::min(per_task, n_ - first);
      auto columns = lev::strided(element(k, first), count, below + 1, n_);
      columns.is_sliced = options_.dice && count > 1;
      task = lev::pack(run_.update_columns, multipliers, columns);
    };
    runtime_.submit_bulk((below + per_task - 1) / per_task, make).wait();
  }

  lev::runtime& runtime_;
  std::size_t n_;
  T* matrix_;
  const lu_column_options& options_;
  const procedures<T>& run_;
};

}  // namespace

void lu_columns(lev::runtime& runtime, std::size_t n, float* matrix,
                const lu_column_options& options) {
  column_factorisation<float>(runtime, n, matrix, options, float_procedures).factor();
}
void lu_columns(lev::runtime& runtime, std::size_t n, double* matrix,
                const lu_column_options& options) {
  column_factorisation<double>(runtime, n, matrix, options, double_procedures).factor();
}

}  // namespace leveret_apps
