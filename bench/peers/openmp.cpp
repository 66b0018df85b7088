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

}  // namespace

const peer* openmp_peer() {
  static constexpr peer table{"OpenMP", stream, null_stream, fib};
  return &table;
}

}  // namespace bench
