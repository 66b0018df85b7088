// spin_lock: for sections of a few instructions that never block. try_lock() is all that most
// callers use.
//
// Paper: Jack Rabbit section 4.1 (test and test-and-set on one line), without its reads of a taken
// lock by DMA.
#pragma once

#include "sync/env.hpp"

namespace lev {

template <class Env = real_env>
class spin_lock {
 public:
  bool try_lock() noexcept {
    // Pairs with unlock(): what the last holder wrote is visible.
    return taken_.load(memory_order_relaxed) == 0 && taken_.exchange(1, memory_order_acquire) == 0;
  }
  void lock() noexcept {
    while (!try_lock()) Env::pause();
  }
  void unlock() noexcept {
    // Pairs with try_lock(): publishes what was done under the lock.
    taken_.store(0, memory_order_release);
  }
  // is_held() is for assertions: a thread holds it.
  bool is_held() const noexcept { return taken_.load(memory_order_relaxed) != 0; }

 private:
  // Written by the thread that takes or frees the lock, read by those that try: publishes what the
  // lock protects.
  typename Env::template atomic<std::uint32_t> taken_{0};
};

// spin_guard holds a lock for a scope.
template <class Env = real_env>
class spin_guard {
 public:
  explicit spin_guard(spin_lock<Env>& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~spin_guard() { lock_.unlock(); }
  spin_guard(spin_guard&&) = delete;

 private:
  spin_lock<Env>& lock_;
};

}  // namespace lev
