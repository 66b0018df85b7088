// The interface of a rival: the same three shapes of work that Leveret is measured with.
//
// Each file of this folder fills in one table, and is compiled only when CMake has found its
// library. Where it is not compiled, its functions are weak symbols without a definition, that is,
// null.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peers/blocks.hpp"
#include "peers/irregular.hpp"

namespace bench {

struct peer {
  const char* name;

  // Runs `count` tasks from one submitter; each calls work(value). Returns when all are done.
  void (*stream)(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value);

  // The same with empty tasks.
  void (*null_stream)(std::size_t count);

  // fib(n) with one task per call of n >= 2: spawn fib(n - 1), compute fib(n - 2) in place, wait.
  // Null where tasks cannot wait for tasks.
  std::uint64_t (*fib)(unsigned n);

  // A loop of `count` calls of work(value), one piece for each, and a wait; null where there is
  // none.
  void (*loop)(std::size_t count, void (*work)(std::uint64_t), std::uint64_t value);

  // Null where tasks cannot wait for tasks.
  const irregular_programs* programs;

  // Null where tasks are not ordered by their memory.
  const ordered_programs* ordered = nullptr;
};

[[gnu::weak]] const peer* onetbb_peer();
[[gnu::weak]] const peer* openmp_peer();
[[gnu::weak]] const peer* starpu_peer();

// boost_fiber_switch_ns() is the time of one yield among `width` fibers that yield `turns` times.
[[gnu::weak]] double boost_fiber_switch_ns(unsigned width, std::size_t turns);

// A peer, or why there is none.
struct rival {
  const peer* table;
  const char* absent;
};

inline rival onetbb() {
  return {onetbb_peer != nullptr ? onetbb_peer() : nullptr, "not built: libtbb-dev not found"};
}
inline rival openmp() {
  return {openmp_peer != nullptr ? openmp_peer() : nullptr, "not built: OpenMP not found"};
}
inline rival starpu() {
  return {starpu_peer != nullptr ? starpu_peer() : nullptr, "not built: libstarpu-dev not found"};
}

}  // namespace bench
