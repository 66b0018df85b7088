// Serving: a participant runs tasks until something is there. A worker serves all its life, a host
// during a wait. Waiting inside a task is in wait_in_task.cpp.
//
// What a participant owes others is told before it waits, leaves or looks elsewhere: ends, the end
// of everything, and that there is more work than it takes.
#include "worker/serve.hpp"

#include "worker/close_mailbox.hpp"
#include "worker/complete.hpp"
#include "worker/crew.hpp"
#include "worker/execute.hpp"
#include "worker/idle.hpp"
#include "worker/serving.hpp"
#include "worker/take.hpp"
#include "worker/worker.hpp"

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

void tell_of_leaving(engine& e) noexcept {
  // Pairs with await_shared::arm(), a change of the same word: the waiter sees that this host has
  // left, or is seen here. A plain load could pass the store that says so.
  e.space_wanted.fetch_add(0, memory_order_seq_cst);
  tell_all_for_space(e);
}

namespace {

// Gives other participants the tasks that this one has taken but will not run now.
void return_inbox(engine& e, participant& self) noexcept {
  std::uint32_t task = 0;
  while (self.inbox.try_pop(&task)) {
    push_ready(e, self, task);
    wake_worker(e, self);
  }
}

}  // namespace

bool help(engine& e, participant& self) noexcept {
  // The work around a task here, and the submits that find no slot, cost as much as a few short
  // tasks; one long task keeps the submitter away long enough.
  constexpr std::uint32_t tasks_max = 16;
  constexpr std::uint64_t short_ns = 2'000;
  const serving s(self);
  const std::uint32_t slots = smaller(tasks_max, self.free_slots.limit / 2);
  const std::uint64_t start_ns = e.machine->now_ns();
  std::uint32_t ran = 0;
  std::uint32_t look = 1;  // at the clock, after so many
  while (e.crew->run_one(self)) {
    take_turns(self);
    ++ran;
    if (ran >= tasks_max || self.free_slots.count() >= slots) break;
    if (ran != look) continue;
    if (e.machine->now_ns() - start_ns > short_ns) break;
    look *= 2;
  }
  return ran != 0;
}

void tell_of_help(engine& e, participant& self) noexcept {
  if (self.running != nullptr) return;
  if (owes_others(self)) return leave(e, self);
  tell_barrier(e);
}

void tell_meanwhile(engine& e, participant& self) noexcept {
  if (self.running != nullptr || !owes_ends(self)) return;
  const serving s(self);
  settle(e, self);
}

void leave(engine& e, participant& self) noexcept {
  if (self.running != nullptr) return;
  const serving s(self);
  do {
    while (has_other_contexts(self) || self.ahead_count != 0) {
      if (has_other_contexts(self)) finish_other_contexts(e, self);
      if (self.ahead_count != 0) run_staged(e, self);
    }
    settle(e, self);
  } while (owes_others(self));  // a callback has waited
  return_inbox(e, self);
  LEV_DCHECK(is_at_rest(self) && !has_other_contexts(self));
}

// One turn: tasks, if there are some, and a turn for the other contexts. False: there is nothing to
// do for either.
static bool serve_one(engine& e, participant& self, awaited* what, turn_of_work work) noexcept {
  const bool ran = work != nullptr && work(e, self, what);
  if (!has_other_contexts(self)) return ran;
  // Another context goes on with its task, for as long as that takes: no letter waits behind it.
  close_mailbox(e, self);
  take_turns(self);
  if (ran || !has_turns(self)) return ran;
  e.machine->relax();  // they poll, each in its turn
  return true;
}

bool serve_until(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 wait_policy how, turn_of_work work) noexcept {
  LEV_DCHECK(self.running == nullptr || self.running->task == no_slot);
  const serving s(self);
  self.told = participant::untold;
  tell_ends(e, self);  // a callback may wait, and tasks then run in other contexts
  // A waiter that runs nothing meanwhile must not keep the tasks it took before.
  if (how != wait_policy::help) leave(e, self);
  bool is_there = false;
  awaited* const only = deadline_ns == no_deadline ? &what : nullptr;
  while (!(is_there = what.is_there())) {
    const bool ran = serve_one(e, self, only, work);
    if (deadline_ns != no_deadline && e.machine->now_ns() >= deadline_ns) break;
    if (ran) continue;
    // Perhaps it has run the last piece of the bulk that it waits for, and needs its free slots.
    if (self.running == nullptr && owes_ends(self)) {
      tell_ends(e, self);
      continue;
    }
    whichever any(self, what);
    e.crew->idle(self, any, any.deadline_ns(deadline_ns), how);
    if (e.machine->is_stuck()) break;
  }
  close_mailbox(e, self);
  leave(e, self);
  wake_another(e, self);
  return is_there;
}

}  // namespace lev
