// alarm: the one word on which a worker of a pool sleeps, for all its wakers.
//
//   worker                                     waker
//   set: looks at the word                     writes its news
//   says on each lane that it sleeps           finds the lane asleep, or does not look
//   looks at everything once more              rings: the word is another one
//   sleeps while the word is as it was         wakes the worker
//
// A waker that has found the worker asleep rings after the alarm was set, so that the worker does
// not sleep, or is woken. So does a waker that does not look, unless the worker sees its news. The
// word only says that something may have come: a superfluous ring does no harm.
#pragma once

#include "sync/env.hpp"

namespace lev::processes {

template <class Env = real_env>
struct alarm {
  // Pairs with ring(): the looks at everything come after it.
  std::uint32_t set() const noexcept { return rings.load(memory_order_acquire); }
  // Pairs with set(): the waker's news is there.
  void ring() noexcept { rings.fetch_add(1, memory_order_release); }

  // Written by wakers of the worker, one more each; read by the worker. Publishes what they wrote
  // before.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> rings{0};
};

}  // namespace lev::processes
