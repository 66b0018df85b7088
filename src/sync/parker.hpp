// parker: the one place a participant sleeps. A binary semaphore: unpark() leaves a token
// that one park() takes, or drop_token().
//
//   empty (0)     no token, owner awake        park(): -> sleeping, sleep     unpark(): -> token
//   token (1)     a token waits                park(): -> empty, return       unpark(): stays
//                                              drop_token(): -> empty
//   sleeping (2)  owner sleeps or is about to  unpark(): -> token, wake
//
// Only the owner parks; any thread unparks. A park may return without a token (time-out,
// interrupted sleep): callers always look again at what they wait for. The machine says how to
// sleep on a word (`Sleeper`: wait_word, wake_word). Model test: tests/model/parker_model.cpp.
#pragma once

#include "sync/env.hpp"

namespace lev {

template <class Env = real_env>
class parker {
 public:
  using word = typename Env::template atomic<std::uint32_t>;

  // park() sleeps until unpark(), or until `deadline_ns` on the sleeper's clock.
  template <class Sleeper>
  void park(Sleeper& sleeper, std::uint64_t deadline_ns) noexcept {
    std::uint32_t expected = empty;
    // Pairs with unpark(): a token that is there already is taken with what it announces.
    if (word_.compare_exchange_strong(expected, sleeping, memory_order_acq_rel,
                                      memory_order_acquire)) {
      sleeper.wait_word(word_, sleeping, deadline_ns);
    }
    // Pairs with unpark(): whatever it announced is visible after this.
    word_.exchange(empty, memory_order_acq_rel);
  }

  // unpark() gives the token. Costs a system call only if the owner sleeps.
  template <class Sleeper>
  void unpark(Sleeper& sleeper) noexcept {
    // Pairs with park(): publishes why the owner is woken.
    if (word_.exchange(token, memory_order_acq_rel) == sleeping) sleeper.wake_word(word_);
  }

  // drop_token() is a park() that does not sleep, for an owner that looks again in any case: while
  // it polls, nothing else would take a token, and others would go on counting it as one who wakes.
  void drop_token() noexcept {
    // Pairs with unpark(): whatever it announced is visible after this.
    if (has_token()) word_.exchange(empty, memory_order_acquire);
  }

  // Whether a token waits: the owner will look again at what it waits for, as soon as it gets a
  // core. Any thread; a hint.
  bool has_token() const noexcept { return word_.load(memory_order_relaxed) == token; }
  // Whether the owner sleeps, or is about to, and nobody has woken it. Any thread; a hint.
  bool is_asleep() const noexcept { return word_.load(memory_order_relaxed) == sleeping; }

 private:
  enum : std::uint32_t { empty = 0, token = 1, sleeping = 2 };
  // Written by the owner (park, drop_token) and wakers (unpark), read by both: publishes what the
  // waker did before.
  word word_{empty};
};

}  // namespace lev
