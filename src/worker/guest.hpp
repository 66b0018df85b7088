// guest: a host thread that waits in a task of another runtime. It runs no task of this one; its
// wait counts as one of the task, whose worker goes on in another context (README.md,
// runtime/guest.cpp).
//
// A callback of tasks in other processes is called by a thread that tends them, and may wait
// elsewhere. If the thread is the service, the service waits, and goes on with the duties that no
// other thread has. If it is a worker that waits or submits in its task, that task waits
// (serves_in). Calls below the callback then come as another participant, which calls no callbacks
// itself: they would pile up on the thread's stacks (comes_back).
//
// If the thread then sleeps, it sleeps as the other runtime's participant. The waker of a guest
// wakes that participant, under the lock: the other runtime exists as long as its task waits.
#pragma once

#include "worker/engine.hpp"
#include "worker/participant.hpp"

namespace lev {

// enter_as_guest() and leave_as_guest() enclose a wait of `self` in a task that `outer` runs.
// Several contexts of `outer` may wait at the same time, all of this thread.
inline void enter_as_guest(participant& self, participant& outer) noexcept {
  const spin_guard<> held(self.guest.lock);
  LEV_DCHECK(self.guest.outer == nullptr || self.guest.outer == &outer);
  self.guest.outer = &outer;
  self.guest.waits.store(self.guest.waits.load(memory_order_relaxed) + 1, memory_order_relaxed);
  outer.engine->guests_waiting.fetch_add(1, memory_order_relaxed);
}
inline void leave_as_guest(participant& self) noexcept {
  const spin_guard<> held(self.guest.lock);
  const std::uint32_t waits = self.guest.waits.load(memory_order_relaxed) - 1;
  self.guest.outer->engine->guests_waiting.fetch_sub(1, memory_order_relaxed);
  self.guest.waits.store(waits, memory_order_relaxed);
  if (waits == 0) self.guest.outer = nullptr;
}

[[gnu::cold, gnu::noinline]] inline void unpark_outer(participant& guest) noexcept {
  const spin_guard<> held(guest.guest.lock);
  if (participant* outer = guest.guest.outer; outer != nullptr)
    outer->park.unpark(*outer->engine->machine);
}

}  // namespace lev
