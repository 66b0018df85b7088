// pass_lock: a job that any thread may do and none should wait for, such as a scheduler pass.
//
// A thread that has made work for the job calls run(). If another thread is doing the job, that
// thread is told to go round once more and the caller leaves at once. No work is ever left without
// a thread that will look at it.
//
//     word 0: not being done    1: being done    2: being done, and requested again
//
// Proof sketch. A caller's work is visible before its exchange on the word. (a) It found 0, then or
// before it: it does the job itself. (b) It found 1 or 2: the holder's final compare-exchange
// 1 -> 0 fails or has not happened, so the holder goes round again after reading what the caller
// has written there, hence after its work. (c) A holder that leaves without a look (end_hold) reads
// the request in the same exchange, and comes again. Model test: tests/model/pass_lock_model.cpp.
#pragma once

#include "sync/env.hpp"

namespace lev {

template <class Env = real_env>
class pass_lock {
 public:
  // run() does job() here, as often as it is requested meanwhile, or leaves it to the holder.
  template <class Job>
  void run(Job&& job) noexcept(noexcept(job())) {
    run_while([&]() noexcept(noexcept(job())) { return job(), true; });
  }
  // run_while() is for a job() that returns false when another round would find nothing to do yet.
  // The caller must then come again, also for requests made meanwhile. (Otherwise a caller that
  // asks without a pause could keep the holder from leaving.)
  template <class Job>
  void run_while(Job&& job) noexcept(noexcept(job())) {
    if (!try_hold()) {
      // Pairs with take_request(), end_hold() and the failure of finish(): the holder sees the work
      // this caller has made.
      if (word_.exchange(asked, memory_order_release) != idle) return;
      take_request();
    }
    for (;;) {
      if (!job()) return static_cast<void>(end_hold());
      if (finish()) return;
      take_request();
    }
  }

  // try_hold() takes the lock for something other than the job, such as changing the job's data.
  bool try_hold() noexcept {
    std::uint32_t expected = idle;
    // Pairs with finish().
    return word_.compare_exchange_strong(expected, busy, memory_order_acquire,
                                         memory_order_relaxed);
  }
  // release_hold() ends try_hold(). Returns false when the job was requested meanwhile: the caller
  // must do it and try again.
  bool release_hold() noexcept {
    if (finish()) return true;
    take_request();
    return false;
  }
  // end_hold() ends try_hold() at once. Returns true when the job was requested meanwhile: it is
  // left to the caller, which may do other things first.
  bool end_hold() noexcept {
    // Pairs with run_while(): its work is visible here, and what was done here to the next holder.
    return word_.exchange(idle, memory_order_acq_rel) == asked;
  }

  // is_held() is for assertions: a thread holds it, or does the job.
  bool is_held() const noexcept { return word_.load(memory_order_relaxed) != idle; }

 private:
  enum : std::uint32_t { idle = 0, busy = 1, asked = 2 };

  void take_request() noexcept {
    // Pairs with run_while() of a later caller: its work is visible to the round that follows. And
    // with finish() of an earlier holder, where the lock was free.
    word_.exchange(busy, memory_order_acquire);
  }
  bool finish() noexcept {
    std::uint32_t expected = busy;
    // Pairs with run_while(): publishes what the job did to the next holder.
    return word_.compare_exchange_strong(expected, idle, memory_order_release,
                                         memory_order_relaxed);
  }

  // Written by all threads that run the job, read by the same: publishes the work they made and
  // what the job did.
  typename Env::template atomic<std::uint32_t> word_{idle};
};

}  // namespace lev
