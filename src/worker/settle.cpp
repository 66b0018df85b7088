// settle: what a participant owes others is told before it waits, leaves or looks elsewhere: ends,
// the end of everything, and that there is more work than it takes.
#include "worker/complete.hpp"
#include "worker/take.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev {

void tell_ends(engine& e, participant& self) noexcept {
  while (owes_ends(self)) {
    drain(e, self);
    count_ended_pieces(e, self);
    fail_rest(e, self);
  }
}

void settle(engine& e, participant& self) noexcept {
  tell_ends(e, self);
  LEV_DCHECK(self.aside.ended_pieces == 0 && self.draining == nullptr);
  self.told = self.counters.completed.read();
  tell_barrier(e);
}

void settle_again(engine& e, participant& self) noexcept {
  tell_ends(e, self);
  if (self.told != self.counters.completed.read()) settle(e, self);
}

void wake_another(engine& e, participant& self) noexcept {
  const bool was_last = self.aside.was_last_poller;
  self.aside.was_last_poller = false;
  if (!was_last || looks_idle(e, self)) return;
  wake_worker(e, self);
  // Each wakes two while there is that much: all are awake after a few such steps.
  if (e.sched.ready().size() + self.inbox.size() > 1 && e.doorbell.someone_sleeps())
    e.crew->queued(self);
}

}  // namespace lev
