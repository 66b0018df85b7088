// sleep_lock: for sections that make system calls or allocate memory, where a poller would burn a
// core for as long as the kernel takes. A thread that finds it taken sleeps.
//
//     word 0: free    1: taken    2: taken, and a thread may sleep
//
// 1. lock(): 0 -> 1, and the caller has the lock. Otherwise the word becomes 2 by an exchange. If
//    it was 0, the caller has the lock; if not, the caller sleeps while it is 2, then tries again.
// 2. unlock(): the word becomes 0 by an exchange. If it was 2, one sleeper is woken.
//
// Proof sketch. A sleeper has written 2 before, and sleeps only while the word is 2. The holder of
// the lock then ends with an exchange that finds that 2 and wakes one. The woken thread takes the
// lock with a 2, as it cannot know whether others sleep, so its unlock() wakes the next. A word of
// 1 is only written over 0, when no thread sleeps or one is on the way that will write 2.
//
// The `Sleeper` knows how to sleep on a word, as in parker.hpp; futex_sleeper uses the kernel's
// futex. Model test: tests/model/sleep_lock_model.cpp.
//
// Algorithm: U. Drepper, "Futexes are tricky" (2004), mutex 2.
#pragma once

#include "sync/env.hpp"
#include "sync/futex.hpp"

namespace lev {

// Threads of this process sleep on words of its own.
struct futex_sleeper {
  void wait_word(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns) noexcept {
    sleep_while(word, expected, deadline_ns, sleepers::here);
  }
  void wake_word(const std::atomic<std::uint32_t>& word) noexcept {
    wake_sleeper(word, sleepers::here);
  }
};

template <class Env = real_env>
class sleep_lock {
 public:
  template <class Sleeper>
  void lock(Sleeper& sleeper) noexcept {
    std::uint32_t expected = is_free;
    // Pairs with unlock(): what the last holder wrote is visible.
    if (word_.compare_exchange_strong(expected, is_taken, memory_order_acquire,
                                      memory_order_relaxed))
      return;
    // Pairs with unlock() too.
    while (word_.exchange(may_be_awaited, memory_order_acquire) != is_free)
      sleeper.wait_word(word_, may_be_awaited, no_deadline);
  }
  template <class Sleeper>
  void unlock(Sleeper& sleeper) noexcept {
    // Pairs with lock(): publishes what was done under the lock.
    if (word_.exchange(is_free, memory_order_release) == may_be_awaited) sleeper.wake_word(word_);
  }

 private:
  enum : std::uint32_t { is_free = 0, is_taken = 1, may_be_awaited = 2 };
  // Written by the thread that takes or frees the lock, read by those that try: publishes what the
  // lock protects.
  typename Env::template atomic<std::uint32_t> word_{is_free};
};

// sleep_guard holds a lock for a scope.
class sleep_guard {
 public:
  explicit sleep_guard(sleep_lock<>& lock) noexcept : lock_(lock) { lock_.lock(kernel_); }
  ~sleep_guard() { lock_.unlock(kernel_); }
  sleep_guard(sleep_guard&&) = delete;

 private:
  sleep_lock<>& lock_;
  [[no_unique_address]] futex_sleeper kernel_;
};

}  // namespace lev
