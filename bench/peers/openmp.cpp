// OpenMP tasks: a parallel region whose single thread submits.
#include "peers/peers.hpp"

namespace bench {
namespace {

void stream(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value) {
#pragma omp parallel
#pragma omp single
  for (std::size_t i = 0; i < count; ++i) {
#pragma omp task firstprivate(work, value)
    work(value);
  }
}

void null_stream(std::size_t count) {
#pragma omp parallel
#pragma omp single
  for (std::size_t i = 0; i < count; ++i) {
#pragma omp task
    asm volatile("");  // a task without any body is dropped by the compiler
  }
}

std::uint64_t fib_task(unsigned n) {
  if (n < 2) return n;
  std::uint64_t first = 0;
#pragma omp task shared(first) firstprivate(n)
  first = fib_task(n - 1);
  const std::uint64_t second = fib_task(n - 2);
#pragma omp taskwait
  return first + second;
}

std::uint64_t fib(unsigned n) {
  std::uint64_t value = 0;
#pragma omp parallel
#pragma omp single
  value = fib_task(n);
  return value;
}

void loop(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < count; ++i) work(value);
}

struct task_fork {
  template <auto body, class Node>
  static void all(Node* nodes, std::size_t count) {
    for (std::size_t i = 0; i + 1 < count; ++i) {
      Node* const node = nodes + i;
#pragma omp task firstprivate(node)
      body(*node);
    }
    body(nodes[count - 1]);
#pragma omp taskwait
  }
};

// A program is run by the single thread of a parallel region; the others take its tasks.
std::uint64_t queens(unsigned size) {
  std::uint64_t solutions = 0;
#pragma omp parallel
#pragma omp single
  solutions = irregular<task_fork>::queens(size);
  return solutions;
}

void sort(std::uint64_t* data, std::size_t count) {
#pragma omp parallel
#pragma omp single
  irregular<task_fork>::sort(data, count);
}

std::uint64_t tree(unsigned branches, std::uint64_t seed) {
  std::uint64_t nodes = 0;
#pragma omp parallel
#pragma omp single
  nodes = irregular<task_fork>::tree(branches, seed);
  return nodes;
}

constexpr irregular_programs programs{queens, sort, tree};

// A block is named by its first element, a unit by its first word: what depend() lists is the same
// or apart, so a task names both units that it updates.
struct depending_tasks {
  void factor(block_place a) {
#pragma omp task firstprivate(a) depend(inout : a.first[0])
    factor_block(a);
  }
  void solve(block_place l, block_place a) {
#pragma omp task firstprivate(l, a) depend(in : l.first[0]) depend(inout : a.first[0])
    solve_block(l, a);
  }
  void update(block_place x, block_place y, block_place a) {
#pragma omp task firstprivate(x, y, a) depend(in : x.first[0], y.first[0]) \
    depend(inout : a.first[0])
    update_block(x, y, a);
  }
  void step(const std::uint64_t* read, std::uint64_t* updated, std::uint64_t turns) {
#pragma omp task firstprivate(read, updated, turns) depend(in : read[0]) \
    depend(inout : updated[0], updated[unit_words])
    run_step(read, updated, turns);
  }
};

void factor_matrix(const block_matrix& m) {
#pragma omp parallel
#pragma omp single
  {
    depending_tasks tasks;
    cholesky(tasks, m);
  }
}

void run_steps(const unit_array& a, std::size_t count, std::uint64_t turns) {
#pragma omp parallel
#pragma omp single
  {
    depending_tasks tasks;
    steps(tasks, a, count, turns);
  }
}

constexpr ordered_programs in_order{factor_matrix, run_steps};

}  // namespace

const peer* openmp_peer() {
  static constexpr peer table{"OpenMP", stream, null_stream, fib, loop, &programs, &in_order};
  return &table;
}

}  // namespace bench
