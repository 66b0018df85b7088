// ordered: tasks whose order follows from the memory that they declare. A matrix is factored by
// blocks of itself, which lie together and are used in place, or have rows apart and are copied;
// and short steps update parts of an array that overlap.
// OpenMP's depend() runs the same loops with the same kernels, and is told the blocks by their
// first elements, the array by its units.
#include "peers/peers.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>

#include <algorithm>
#include <cmath>

namespace bench {

[[gnu::noinline]] void factor_block(block_place a) noexcept {
  for (std::size_t k = 0; k < a.side; ++k) {
    double* const row = a.first + k * a.stride;
    row[k] = std::sqrt(row[k]);
    for (std::size_t i = k + 1; i < a.side; ++i) a.first[i * a.stride + k] /= row[k];
    for (std::size_t i = k + 1; i < a.side; ++i) {
      double* const below = a.first + i * a.stride;
      for (std::size_t j = k + 1; j <= i; ++j) below[j] -= below[k] * a.first[j * a.stride + k];
    }
  }
}

[[gnu::noinline]] void solve_block(block_place l, block_place a) noexcept {
  for (std::size_t i = 0; i < a.side; ++i) {
    double* const row = a.first + i * a.stride;
    for (std::size_t j = 0; j < a.side; ++j) {
      const double* const other = l.first + j * l.stride;
      for (std::size_t k = 0; k < j; ++k) row[j] -= row[k] * other[k];
      row[j] /= other[j];
    }
  }
}

[[gnu::noinline]] void update_block(block_place x, block_place y, block_place a) noexcept {
  for (std::size_t i = 0; i < a.side; ++i) {
    for (std::size_t j = 0; j < a.side; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < a.side; ++k)
        sum += x.first[i * x.stride + k] * y.first[j * y.stride + k];
      a.first[i * a.stride + j] -= sum;
    }
  }
}

[[gnu::noinline]] void run_step(const std::uint64_t* read, std::uint64_t* updated,
                                std::uint64_t turns) noexcept {
  const std::uint64_t value = chain(*read ^ updated[0] ^ updated[unit_words], turns);
  for (std::size_t i = 0; i < 2 * unit_words; ++i) updated[i] += value + i;
}

namespace {

struct block_case {
  std::size_t side;
  std::size_t blocks;  // in a row of the matrix
  bool is_by_rows;
  figure_spec over_openmp;
  figure_spec per_task;
};
constexpr block_case block_cases[] = {
    {8, 32, false, {"b8_over_openmp", "ratio", "< 1"}, {"b8_us", "us", ""}},
    {16, 32, false, {"b16_over_openmp", "ratio", "< 1"}, {"b16_us", "us", ""}},
    {32, 24, false, {"b32_over_openmp", "ratio", "< 1"}, {"b32_us", "us", ""}},
    {32, 24, true, {"b32_rows_over_openmp", "ratio", "< 1"}, {"b32_rows_us", "us", ""}},
    {64, 12, false, {"b64_over_openmp", "ratio", "< 1"}, {"b64_us", "us", ""}},
    {64, 12, true, {"b64_rows_over_openmp", "ratio", "< 1"}, {"b64_rows_us", "us", ""}},
};
struct step_case {
  double step_ns;
  std::size_t count;
  figure_spec over_openmp;
  figure_spec per_task;
};
constexpr step_case step_cases[] = {
    {500, 20'000, {"steps_500ns_over_openmp", "ratio", "< 1"}, {"steps_500ns_us", "us", ""}},
    {2'000, 10'000, {"steps_2us_over_openmp", "ratio", "< 1"}, {"steps_2us_us", "us", ""}},
    {10'000, 4'000, {"steps_10us_over_openmp", "ratio", "< 1"}, {"steps_10us_us", "us", ""}},
};
constexpr std::size_t unit_count = 512;

struct no_tasks {
  void factor(block_place a) { factor_block(a); }
  void solve(block_place l, block_place a) { solve_block(l, a); }
  void update(block_place x, block_place y, block_place a) { update_block(x, y, a); }
  void step(const std::uint64_t* read, std::uint64_t* updated, std::uint64_t turns) {
    run_step(read, updated, turns);
  }
};

template <class View>
block_place place_of(View& view) {
  const std::size_t stride =
      view.rows() < 2 ? 0 : static_cast<std::size_t>(view.row(1) - view.row(0));
  return {const_cast<double*>(view.row(0)), view.rows(), stride};
}
void factor_task(lev::inout<double> a) {
  factor_block(place_of(a));
}
void solve_task(lev::in<double> l, lev::inout<double> a) {
  solve_block(place_of(l), place_of(a));
}
void update_task(lev::in<double> x, lev::in<double> y, lev::inout<double> a) {
  update_block(place_of(x), place_of(y), place_of(a));
}
void step_task(lev::in<std::uint64_t> read, lev::inout<std::uint64_t> updated,
               std::uint64_t turns) {
  run_step(read.data(), updated.data(), turns);
}
const auto factor_procedure = lev::define("bench.factor", factor_task);
const auto solve_procedure = lev::define("bench.solve", solve_task);
const auto update_procedure = lev::define("bench.update", update_task);
const auto step_procedure = lev::define("bench.step", step_task);

struct scoped_tasks {
  explicit scoped_tasks(lev::runtime& home) : tasks(home) {}
  static lev::memory<double> memory_of(block_place b) {
    return lev::strided(b.first, b.side, b.side, static_cast<std::ptrdiff_t>(b.stride));
  }
  void factor(block_place a) { tasks.submit(factor_procedure, memory_of(a)); }
  void solve(block_place l, block_place a) {
    tasks.submit(solve_procedure, memory_of(l), memory_of(a));
  }
  void update(block_place x, block_place y, block_place a) {
    tasks.submit(update_procedure, memory_of(x), memory_of(y), memory_of(a));
  }
  void step(const std::uint64_t* read, std::uint64_t* updated, std::uint64_t turns) {
    tasks.submit(step_procedure, lev::view(read, unit_words), lev::view(updated, 2 * unit_words),
                 turns);
  }
  lev::ordered tasks;
};

// A matrix to be factored, and what it must become. All elements are 1, those on the diagonal more.
class matrix_problem {
 public:
  explicit matrix_problem(const block_case& b)
      : elements_(b.blocks * b.side * b.blocks * b.side),
        m_{nullptr, b.blocks, b.side, b.is_by_rows} {
    no_tasks none;
    cholesky(none, fresh());
    wanted_ = elements_;
  }
  template <class Run>
  double task_us(Run&& run) {
    const block_matrix m = fresh();
    const std::uint64_t start_ns = now_ns();
    run(m);
    const double us = static_cast<double>(now_ns() - start_ns) / 1e3;
    check(elements_ == wanted_, "ordered: the matrix");
    return us / static_cast<double>(m.tasks());
  }

 private:
  block_matrix fresh() {
    std::fill(elements_.begin(), elements_.end(), 1.0);
    m_.elements = elements_.data();
    for (std::size_t k = 0; k < m_.blocks; ++k) {
      for (std::size_t i = 0; i < m_.side; ++i)
        m_.at(k, k)[i * (m_.stride() + 1)] = static_cast<double>(m_.blocks * m_.side);
    }
    return m_;
  }
  std::vector<double> elements_, wanted_;
  block_matrix m_;
};

class step_problem {
 public:
  step_problem(const step_case& s, const settings& how)
      : turns_(static_cast<std::uint64_t>(s.step_ns / chain_step_ns())),
        count_(how.scaled(s.count)),
        words_(unit_count * unit_words) {
    no_tasks none;
    steps(none, fresh(), count_, turns_);
    wanted_ = words_;
  }
  template <class Run>
  double task_us(Run&& run) {
    const unit_array a = fresh();
    const std::uint64_t start_ns = now_ns();
    run(a, count_, turns_);
    const double us = static_cast<double>(now_ns() - start_ns) / 1e3;
    check(words_ == wanted_, "ordered: the steps");
    return us / static_cast<double>(count_);
  }

 private:
  unit_array fresh() {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = i;
    return {words_.data(), unit_count};
  }
  std::uint64_t turns_;
  std::size_t count_;
  std::vector<std::uint64_t> words_, wanted_;
};

// Leveret, OpenMP and the serial run, in turn.
template <class Problem, class Leveret, class Rival, class Serial>
void compare(const settings& how, report& figures, const figure_spec& over,
             const figure_spec& per_task, Problem problem, Leveret leveret, Rival rival,
             Serial serial) {
  const bool has_rival = openmp().table != nullptr;
  const auto timed = [&problem](auto run) {
    return std::function<double()>([&problem, run] { return problem.task_us(run); });
  };
  const auto rounds = interleave(
      how.rounds(),
      {timed(leveret), has_rival ? timed(rival) : std::function<double()>(), timed(serial)});
  const std::string beside = text("serial %.2f us", median(rounds[2]));
  if (has_rival) {
    figures.add(over, ratio(rounds[0], rounds[1]),
                text("OpenMP: %.2f us a task", median(rounds[1])));
  } else {
    figures.add(over, {}, openmp().absent);
  }
  figures.add(per_task, rounds[0], beside);
}

}  // namespace

void ordered_tasks(const settings& how, report& figures) {
  lev::runtime runtime;
  const ordered_programs* const rival =
      openmp().table == nullptr ? nullptr : openmp().table->ordered;
  for (const block_case& b : block_cases) {
    compare(
        how, figures, b.over_openmp, b.per_task, matrix_problem(b),
        [&](const block_matrix& m) {
          scoped_tasks tasks(runtime);
          cholesky(tasks, m);
          tasks.tasks.wait();
        },
        [=](const block_matrix& m) { rival->cholesky(m); },
        [](const block_matrix& m) {
          no_tasks none;
          cholesky(none, m);
        });
  }
  for (const step_case& s : step_cases) {
    compare(
        how, figures, s.over_openmp, s.per_task, step_problem(s, how),
        [&](const unit_array& a, std::size_t count, std::uint64_t turns) {
          scoped_tasks tasks(runtime);
          steps(tasks, a, count, turns);
          tasks.tasks.wait();
        },
        [=](const unit_array& a, std::size_t count, std::uint64_t turns) {
          rival->steps(a, count, turns);
        },
        [](const unit_array& a, std::size_t count, std::uint64_t turns) {
          no_tasks none;
          steps(none, a, count, turns);
        });
  }
}

}  // namespace bench
