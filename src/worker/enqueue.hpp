// enqueue: a task that may start goes to where workers find it.
//
//   own inbox     a child of the task that runs here: its worker runs it soonest, others may steal
//                 it; a task that can be split, in pieces
//   ready, cut    a task whose items are alike: a piece for each taker, who cuts it further
//   staged path   a filter is in force, or a hook or the size of a store decides how a task is cut:
//                 prefilter, then a pass
//   ready         everything else
//
// The direct path, straight into an idle worker's mailbox, is tried before by submit
// (runtime/submit.cpp).
#pragma once

#include "task/arguments.hpp"
#include "worker/wake.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace lev {

// fail_undivided() fails the tasks of a chain, which a pass could not dice.
void fail_undivided(engine& e, participant& self, std::uint32_t chain) noexcept;

// Follows a pass: adds up its counts, and fails the tasks it could not dice.
inline void end_pass(engine& e, participant& self, const pass_report& r) noexcept {
  if (r.passes == 0) return;
  end_if_forked(e);  // in a filter or a hook
  self.counters.passes.add(r.passes);
  if (r.has_freed) tell_space(e);
  if (r.diced != 0) self.counters.diced.add(r.diced);
  if (r.failed != no_slot) fail_undivided(e, self, r.failed);
  if (r.bad_filters != 0) self.counters.bad_filters.add(r.bad_filters);
}

inline void run_pass(engine& e, participant& self) noexcept {
  pass_report report(self.counters.submitted);
  const std::uint64_t begin_ns = self.events.is_open() ? e.machine->now_ns() : 0;
  e.sched.pass(self.free_slots, report);
  if (self.events.is_open() && report.passes != 0)
    self.events.record({begin_ns, e.machine->now_ns(), no_slot, 0, step::pass});
  end_pass(e, self, report);
}

// Without the bits of far arguments. Inlined, so that a push calls nothing.
[[gnu::always_inline]] inline std::uint32_t leave_out_far(const slot& s,
                                                          std::uint32_t which) noexcept {
  for (std::uint32_t rest = which; rest != 0; rest &= rest - 1) {
    if (is_far(s.arguments[std::countr_zero(rest)])) which &= ~(rest & -rest);
  }
  return which;
}
// Notes places without a look at which of them are wanted. What lies in the slot's second line is
// left there unless it is.
inline void note_places(const slot& s, task_hint& h, std::uint32_t which) noexcept {
  static_assert(near_arguments == 3);
  // One copy of 16 bytes for each.
  static_assert(offsetof(argument, address) == 0 && offsetof(argument, row_bytes) == 8 &&
                sizeof(row_place) == 16);
  const auto place_of = [&](unsigned i) noexcept {
    row_place at;
    std::memcpy(&at, &s.arguments[i], sizeof at);
    return at;
  };
  std::uint32_t flags = s.arguments[0].flags;
  h.places[0] = place_of(0);
  if (which > 1) {
    h.places[1] = place_of(1);
    h.places[2] = place_of(2);
    flags |= s.arguments[1].flags | std::uint32_t{s.arguments[2].flags};
  }
  if ((flags & argument_far) != 0) [[unlikely]]
    which = leave_out_far(s, which);
  h.which = which;
}

// Notes where the data is of a task of procedure `p` that goes to this place of self's inbox. Most
// tasks declare no memory. `below` is hints_below before and after.
inline void note_hint(engine& e, participant& self, std::uint32_t task, const procedure_entry& p,
                      std::uint32_t place, std::uint32_t& below) noexcept {
  const std::uint32_t which = p.memory & ((1u << near_arguments) - 1);
  if (which == 0 && place >= below) return;
  below = larger(below, place + 1);
  note_places(e.task_slots.at(task), self.hints[place & (hint_count - 1)], which);
}
inline void note_hint(engine& e, participant& self, std::uint32_t task, const procedure_entry& p,
                      std::uint32_t place) noexcept {
  note_hint(e, self, task, p, place, self.hints_below);
}

// Puts tasks whose hints are noted into self's inbox.
inline bool push_noted(engine& e, participant& self, const std::uint32_t* tasks,
                       std::uint32_t count) noexcept {
  const bool heard = e.doorbell.someone_sleeps();
  if (!self.inbox.try_push_all(tasks, count, heard || !e.has_heavy_fence)) return false;
  // A worker fell asleep meanwhile: the push must be visible before the look at the doorbell.
  if (!heard && e.doorbell.someone_sleeps()) self.inbox.confirm();
  return true;
}

// push_all_own() puts tasks into the participant's own inbox, so that the first one is popped
// first; false when there is no room for all. push_own() is for one, and for one of procedure `p`.
inline bool push_all_own(engine& e, participant& self, const std::uint32_t* tasks,
                         std::uint32_t count) noexcept {
  LEV_DCHECK(runs_here(self));
  if (e.depth > 1) {
    const std::uint32_t bottom = self.inbox.bottom();
    std::uint32_t below = self.hints_below;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t task = tasks[count - 1 - i];
      note_hint(e, self, task, procedure_at(e.task_slots.at(task).procedure), bottom + i, below);
    }
    self.hints_below = below;
  }
  return push_noted(e, self, tasks, count);
}
inline bool push_own(engine& e, participant& self, std::uint32_t task) noexcept {
  return push_all_own(e, self, &task, 1);
}
inline bool push_own(engine& e, participant& self, std::uint32_t task,
                     const procedure_entry& p) noexcept {
  LEV_DCHECK(runs_here(self));
  if (e.depth > 1) note_hint(e, self, task, p, self.inbox.bottom());
  return push_noted(e, self, &task, 1);
}

inline void push_ready(engine& e, index_ring<>& ring, std::uint32_t task) noexcept {
  LEV_DCHECK_LOOK(e.task_slots.at(task).state.is_live());
  // As many cells as slots: full only while a taker is halfway through a pop.
  while (!ring.try_push(task)) real_env::pause();
}
inline void push_ready(engine& e, participant& self, std::uint32_t task) noexcept {
  push_ready(e, *self.ready.home, task);
}
// A task that comes back from another process.
inline void push_ready(engine& e, std::uint32_t task) noexcept {
  push_ready(e, e.sched.ready().first(), task);
}

// Whether the task that runs here submitted this one, or the whole of which it is a piece. A task
// that became ready by the end of another could not be run on top of it. Precondition: a task runs
// here.
inline bool is_own_child(engine& e, const participant& self, const slot& s) noexcept {
  return is_child(*self.running, (s.flags & task_is_piece) != 0 ? e.task_slots.at(s.parent) : s);
}

// cut_here() cuts a task that is in no queue into up to `share` pieces. False: it is to be run as a
// whole.
inline bool cut_here(engine& e, participant& self, std::uint32_t task, std::uint32_t share,
                     scheduler::cut_result& p) noexcept {
  pass_report report(self.counters.submitted);
  const bool is_cut =
      e.sched.cut(task, share, self.free_slots, report, p) == scheduler::split_result::done;
  end_if_forked(e);  // in a hook
  if (report.has_freed) tell_space(e);
  if (is_cut) self.counters.diced.add(report.diced);
  return is_cut;
}

// dice_own() puts pieces of a task into self's inbox in place of the task; the first one is run
// first.
inline bool dice_own(engine& e, participant& self, std::uint32_t task,
                     std::uint32_t share) noexcept {
  scheduler::cut_result p;
  if (!cut_here(e, self, task, share, p)) return false;
  if (push_all_own(e, self, p.slots, p.made)) return true;
  for (std::uint32_t i = 0; i < p.made; ++i) push_ready(e, self, p.slots[i]);
  return true;
}

// Whether those who take the task cut it, each as it finds work for others: its items are alike,
// its memory is where it is, and no filter is to see its pieces.
inline bool is_cut_by_takers(engine& e, const slot& s) noexcept {
  constexpr std::uint8_t how = task_diceable | task_too_big | task_staged;
  return (s.flags & how) == task_diceable && e.is_straight && !e.sched.has_filters() &&
         procedure_at(s.procedure).info.dice == nullptr;
}

// The time that a sliced task will take, about; 0: not known.
inline std::uint64_t time_of(engine& e, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  const argument* const before =
      s.argument_count < 2 ? nullptr : &e.task_slots.argument_at(task, s.argument_count - 2u);
  return e.costs.time_ns(item_costs::place_of(s.procedure, before), e.task_slots.items_of(task));
}

// share_out() queues such a task: a piece for each taker, all at once. A sleeper that is woken
// wakes the next one, which takes long where there are many: for so much work all are woken here.
inline void share_out(engine& e, participant& self, std::uint32_t task) noexcept {
  constexpr std::uint64_t worth_waking_ns = 25'000;
  const std::uint64_t wakes = time_of(e, task) / worth_waking_ns;
  scheduler::cut_result p;
  const std::uint32_t share = e.sched.threshold() == 0 ? 0 : e.takers;
  if (!cut_here(e, self, task, share, p)) return push_ready(e, self, task);
  const std::uint32_t made = p.made;
  e.pieces_ready.store(made, memory_order_relaxed);
  while (!self.ready.home->try_push_all(p.slots, made)) real_env::pause();
  for (std::uint64_t i = smaller<std::uint64_t>(wakes, made - 1);
       i > 1 && e.doorbell.someone_sleeps(); --i)
    e.crew->queued(self);
}

// Into self's inbox, whole or in pieces. False: it belongs elsewhere.
inline bool enqueue_own(engine& e, participant& self, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  if ((s.flags & task_too_big) != 0 || e.sched.has_filters() || !is_own_child(e, self, s))
    return false;
  return ((s.flags & task_diceable) != 0 &&
          dice_own(e, self, task, e.sched.threshold() * e.takers)) ||
         push_own(e, self, task);
}

inline void enqueue(engine& e, participant& self, std::uint32_t task) noexcept {
  const std::uint8_t flags = e.task_slots.at(task).flags;
  if (self.running == nullptr || !enqueue_own(e, self, task)) {
    if (is_cut_by_takers(e, e.task_slots.at(task))) {
      share_out(e, self, task);
    } else if ((flags & (task_diceable | task_too_big)) != 0 || e.sched.has_filters()) {
      e.sched.post(task);
      run_pass(e, self);
    } else {
      push_ready(e, self, task);
    }
  }
  wake_worker(e, self);
}

}  // namespace lev
