// wake: telling others that there is something to do. Every queue is followed by one of these
// calls.
#pragma once

#include "worker/crew.hpp"
#include "worker/engine.hpp"
#include "worker/guest.hpp"

#include <utility>

namespace lev {

inline void unpark(engine& e, std::uint32_t who) noexcept {
  LEV_DCHECK(who < e.participant_count);
  participant& p = e.participants[who];
  p.park.unpark(*e.machine);
  if (p.guest.waits.load(memory_order_relaxed) != 0) [[unlikely]]
    unpark_outer(p);
}

// unpark_for_work() wakes a worker for a waker that goes on working: the two are to run side by
// side.
inline void unpark_for_work(engine& e, std::uint32_t who) noexcept {
  LEV_DCHECK(who < e.participant_count);
  participant& p = e.participants[who];
  e.machine->begin_wake(p.sleeper);
  unpark(e, who);
  e.machine->end_wake(p.sleeper);
}

// wake_one_waiter() tells participant `who`, which announced itself at a task, that the task is
// complete: it is woken, or named to the host that polls on its core.
inline void wake_one_waiter(engine& e, std::uint32_t who) noexcept {
  LEV_DCHECK(who < e.participant_count);
  const std::uint32_t core = e.participants[who].directed_core.load(memory_order_relaxed);
  if (core == 0) return unpark(e, who);
  e.hosts_by_core.of(core - 1).name(who, [&](std::uint32_t host) { unpark(e, host); });
}

// wake_worker() makes sure that a worker looks for work; call it after a task was queued.
inline void wake_worker(engine& e, participant& self) noexcept {
  if (e.doorbell.someone_needed()) e.crew->queued(self);
}

// wake_wanting() wakes every participant that sleeps for `want`.
inline void wake_wanting(engine& e, std::uint32_t want) noexcept {
  for (const participant& p : e.in_use()) {
    if ((p.wants.load(memory_order_relaxed) & want) != 0) unpark(e, p.index);
  }
}

// wake_for_slot() wakes one of the participants that sleep for a slot, each in its turn. If all
// were woken, all but one would fall asleep again: 64 hosts that submitted through 64 tickets took
// 64 to 270 us for a task of nothing, on a busy machine. A participant that was woken calls this
// itself while there is a slot, before it takes one.
[[gnu::cold, gnu::noinline]] inline void wake_for_slot(engine& e) noexcept {
  const std::uint32_t used = e.participants_used.load(memory_order_relaxed);
  const std::uint32_t first = e.next_for_slot.load(memory_order_relaxed);
  for (std::uint32_t n = 0; n < used; ++n) {
    const std::uint32_t who = (first + n) % used;
    // Pairs with await_space::disarm(). Sequentially consistent: a participant that is still found
    // here sees the slot, which was there before, when it has taken its wish back.
    if ((e.participants[who].wants.load(memory_order_seq_cst) & want_slot) == 0) continue;
    e.next_for_slot.store(who + 1, memory_order_relaxed);
    return unpark(e, who);
  }
}

// Whether a task of the backlog can have a slot.
inline bool has_backlog(const engine& e) noexcept {
  if (e.backlog.looks_empty()) return false;
  const auto has = [&e](bool with_locks) noexcept {
    return e.backlog.has(with_locks) && !e.task_slots.looks_exhausted_for_backlog(with_locks);
  };
  return has(false) || has(true);
}

// Wakes a participant that looks for work, and has found no slot for a task of the backlog.
[[gnu::cold, gnu::noinline]] inline void wake_for_backlog(engine& e) noexcept {
  if (!e.doorbell.someone_needed()) return;
  const std::uint32_t who = e.doorbell.wake_one(0);
  if (who != no_one) unpark(e, who);
}

// Call after slots, or edges, went back to where others see them.
inline void tell_space(engine& e) noexcept {
  // Pairs with sleeping for space: the pool's push and this load are one side of a store-then-load
  // handshake, so sequentially consistent.
  if (e.space_wanted.load(memory_order_seq_cst) != 0) {
    wake_wanting(e, want_space);
    wake_for_slot(e);
  }
  if (!e.backlog.looks_empty()) [[unlikely]]
    wake_for_backlog(e);
}

// Call after anything else that may end a wait for space, or show that it is in vain.
inline void tell_all_for_space(engine& e) noexcept {
  // Pairs with sleeping for space, as above.
  if (e.space_wanted.load(memory_order_seq_cst) != 0) wake_wanting(e, want_space | want_slot);
  if (!e.backlog.looks_empty()) wake_for_backlog(e);
}

// give_slot() ends a slot that no other thread knows any more, and the lease of the mailbox that
// its task went through.
[[gnu::always_inline]] inline void give_slot(engine& e, index_cache& cache, slot& s,
                                             std::uint32_t task) noexcept {
  LEV_DCHECK(&s == &e.task_slots.at(task));
  if (const unsigned worker = s.mailbox.load(memory_order_relaxed); worker != 0) {
    LEV_DCHECK(worker <= e.workers);
    s.mailbox.store(0, memory_order_relaxed);
    e.participants[worker - 1].mailbox.release_lease();
  }
  if (e.task_slots.give(cache, task)) tell_space(e);
}
inline void give_slot(engine& e, index_cache& cache, std::uint32_t task) noexcept {
  give_slot(e, cache, e.task_slots.at(task), task);
}
inline void give_slot(engine& e, participant& self, std::uint32_t task) noexcept {
  give_slot(e, self.free_slots, task);
}

// try_bind() makes the calling thread the participant's; false: it is another thread's.
inline bool try_bind(engine& e, participant& self) noexcept {
  if (self.is_bound.load(memory_order_relaxed) != 0) return false;
  const spin_guard guard(e.hosts_lock);
  // Pairs with the release of the thread that was bound before.
  if (self.is_bound.load(memory_order_acquire) != 0) return false;
  self.is_bound.store(1, memory_order_relaxed);
  return true;
}

// unbind() ends a thread's binding. Slots come back, and there may be only one host left.
inline void unbind(engine& e, participant& self) noexcept {
  LEV_DCHECK(!self.is_worker && is_at_rest(self));
  LEV_DCHECK_LOOK(self.is_bound.load(memory_order_relaxed) == 1);
  e.task_slots.flush(self.free_slots);
  e.edges.flush(self.free_edges);
  // Pairs with bind(): the next thread finds the participant as this one left it. And with
  // is_held_by_caller(), sequentially consistent: the look at the sleepers for space comes after
  // it.
  self.is_bound.store(0, memory_order_seq_cst);
  tell_all_for_space(e);
}

inline void give_edge(engine& e, participant& self, std::uint32_t node) noexcept {
  if (e.edges.give(self.free_edges, node)) tell_space(e);
}

}  // namespace lev
