// elsewhere: a thread that does not sleep on its word, as others do (parker.hpp), but in a place of
// its own, such as poll() with a bell among its files. A waker must ring that bell.
//
// The sleeper writes down its word here, looks at the word, and sleeps until the bell rings. A
// waker changes the word, looks whether that word is written down here, and rings. Both sides store
// and then load, in the one order of sequentially consistent operations. The waker's change belongs
// to another protocol and has a weaker order, so the waker makes a second change, which adds 0. If
// the sleeper's look comes before that second change, the waker finds the word written down; if it
// comes after it, it sees the change. Model test: tests/model/elsewhere_model.cpp.
#pragma once

#include "sync/env.hpp"

namespace lev {

template <class Env = real_env>
class elsewhere {
 public:
  using word = typename Env::template atomic<std::uint32_t>;

  // The sleeper calls may_sleep(): false when the word is no longer `expected`.
  bool may_sleep(word& mine, std::uint32_t expected) noexcept {
    // Pairs with must_ring(): the word is written down, then looked at; only a total order keeps
    // that in place.
    word_.store(&mine, memory_order_seq_cst);
    return mine.load(memory_order_seq_cst) == expected;  // Pairs with must_ring() too
  }
  // A waker calls must_ring(), after it has changed the word.
  bool must_ring(word& changed) noexcept {
    // Pairs with may_sleep(): the change, then the look, in the same total order.
    changed.fetch_add(0, memory_order_seq_cst);
    return word_.load(memory_order_seq_cst) == &changed;  // Pairs with may_sleep() too
  }

 private:
  // Written by the sleeper, read by wakers: the word that it sleeps for. Publishes nothing else.
  typename Env::template atomic<word*> word_{nullptr};
};

}  // namespace lev
