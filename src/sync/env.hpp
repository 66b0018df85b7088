// The seam between Leveret's protocols and the machine they run on.
//
// Every protocol class is a template over an environment. `real_env` is std::atomic and costs
// nothing. The model tests supply another one in which every operation is a step of a checker, and
// run the same code (tests/model/relacy_env.hpp).
//
// An environment has atomic<T> with load, store, exchange, compare_exchange_strong, fetch_add,
// fetch_sub, fetch_or, fetch_and. Its heavy_fence() orders this thread's earlier accesses against
// every other thread's, at the price of a system call; asymmetric() tells whether that works here.
#pragma once

#include "base/sanitizer.hpp"
#include "sync/fence.hpp"
#include "sync/pause.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lev {

// Two cache lines: adjacent-line prefetchers fetch lines in pairs, so data that must not share a
// line must not share a pair.
constexpr std::size_t line_pair_bytes = 128;
constexpr std::size_t line_bytes = 64;
static_assert(line_pair_bytes == 2 * line_bytes);

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

struct real_env {
  template <class T>
  using atomic = std::atomic<T>;
  static void heavy_fence() noexcept { lev::heavy_fence(); }
  static bool asymmetric() noexcept { return lev::asymmetric_fences(); }
  // Between tries of a lock that is held for a few instructions.
  static void pause() noexcept { wait_for_holder(); }
};

template <class T>
using atomic = real_env::atomic<T>;

// A counter with one writer. Any thread may read it.
class owned_counter {
 public:
  void add(std::uint64_t n) noexcept {
#if defined(__x86_64__) && !defined(LEV_UNDER_TSAN) && !defined(LEVERET_MODEL_CHECKER)
    // The same in one instruction, of which compilers make three. Stores are in order on x86-64.
    __asm__ volatile("addq %1, %0" : "+m"(value_) : "er"(n) : "memory");
#else
    // Pairs with read(): a thread that sees the count sees what was done before it was counted.
    value_.store(value_.load(memory_order_relaxed) + n, memory_order_release);
#endif
  }
  std::uint64_t read() const noexcept {
    // Pairs with add().
    return value_.load(memory_order_acquire);
  }

 private:
  // Written by its owner, read by anyone: publishes everything the owner did before.
  atomic<std::uint64_t> value_{0};
};

}  // namespace lev
