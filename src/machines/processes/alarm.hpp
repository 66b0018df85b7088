// alarm: on what a worker of a pool sleeps: one word, whoever may wake it.
//
//   worker                                     waker
//   set: looks at the word                     writes what it has come for
//   says on each lane that it sleeps           finds the lane asleep, or does not look
//   looks at everything once more              rings: the word is another one
//   sleeps while the word is as it was         wakes
//
// A waker that has found the worker asleep rings after it was set, so that the worker does not
// sleep, or is woken. So does one that does not look, unless the worker sees what it has written.
// The word says no more than that something may have come: a ring too many is no harm.
#ifndef LEVERET_MACHINES_PROCESSES_ALARM_HPP
#define LEVERET_MACHINES_PROCESSES_ALARM_HPP

#include "sync/env.hpp"

namespace lev::processes {

template <class Env = real_env>
struct alarm {
  // Pairs with ring(): the looks at everything come after it.
  std::uint32_t set() const noexcept { return rings.load(memory_order_acquire); }
  // Pairs with set(): what the waker has come for is there.
  void ring() noexcept { rings.fetch_add(1, memory_order_release); }

  // Written by those who wake the worker, one more each; read by the worker. Publishes what they
  // wrote before.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> rings{0};
};

}  // namespace lev::processes

#endif
