// straight: a task from its taker to its end in one straight line. What is not asked of each task,
// and why it need not be:
//
//   no trace, no cancellation of all, no copies,    engine::runs_plainly
//   none in flight
//   no flags, near arguments                        the slot's head
//   no waiter, callback, dependant or request to    the slot's word, at the start and at the end
//   end it; its ticket is held
//   no ended pieces, no failures to be told,        asides, before the body: none of them comes
//   no open mailbox, no sleeper left alone,         while it runs but by its own waits, which see
//   the usual floating-point mode                   to them
//
// Whatever else the body leaves behind is end_otherwise()'s.
#pragma once

#include "base/anew.hpp"
#include "worker/complete.hpp"
#include "worker/execute.hpp"
#include "worker/take.hpp"
#include "worker/wait_in_task.hpp"
#include "worker/worker.hpp"

namespace lev {

// The flags of a task, and the number of its arguments if these should lie in its slot, for one
// comparison.
constexpr std::uint32_t shape_of(std::uint32_t flags, std::uint32_t arguments) noexcept {
  return flags << 8 | arguments;
}

// Whether the engine, and the slot of a task that its caller has taken, allow the straight path.
inline bool runs_straight(const engine& e) noexcept {
  return e.runs_plainly.load(memory_order_relaxed) != 0;
}
inline bool is_straight(const slot& s) noexcept {
  static_assert((near_arguments & (near_arguments + 1)) == 0);  // all bits of what is below
  return (shape_of(s.flags, s.argument_count) & ~shape_of(0, near_arguments)) == 0;
}

// Runs the body. False: it has ended the task otherwise.
[[gnu::always_inline]] inline bool run_body_straight(engine& e, participant& self,
                                                     job& j) noexcept {
  const int code = call_body(e, self, j, procedure_at(j.procedure).info);
  if (code != 0 || has_more_to_end(j)) [[unlikely]]
    return end_otherwise(e, self, j, code), false;
  if (!keeps_plain_mode(self)) [[unlikely]]
    restore_own_mode(self);
  end_body(self, j);
  return true;
}

// run_straight() runs a task that the caller has taken from a queue.
[[gnu::always_inline]] inline void run_straight(engine& e, participant& self, slot& s,
                                                std::uint32_t task, std::uint64_t seen) noexcept {
  job j{job::to_be_taken{}};
  read_job(s, j, task, seen);
  if (!run_body_straight(e, self, j)) return;
  if (anew(s).state.try_finish_plainly(j.seen)) [[likely]] {
    self.counters.completed.add(1);
  } else {
    complete_any(e, self, j);
  }
}

// run_child() runs one on top of the task that awaits it if it is the youngest of self's inbox:
// fork and join, if no participant has taken it yet. The ticket of one that succeeds, and of which
// nobody else awaits the end, is consumed with that end. False: the ticket is not consumed.
//
// The awaiting task may have changed its floating-point mode.
[[gnu::always_inline]] inline bool run_child(engine& e, participant& self, child one) noexcept {
  if (!self.inbox.ends_with(one.task())) return false;
  slot& s = e.task_slots.at(one.task());
  if (s.state.word() != task_state<>::pending_word(one.generation()) || !runs_straight(e) ||
      is_any_due(self.aside)) [[unlikely]]
    return run_child_with_care(e, self, one);
  if (!self.inbox.try_pop_last()) return false;
  if (!is_straight(s) || !keeps_plain_mode(self)) [[unlikely]]
    return run_taken_child(e, self, one);
  LEV_DCHECK(self.running != nullptr && self.running->task != one.task());
  job j{job::to_be_taken{}};
  read_job(s, j, one.task(), task_state<>::pending_word(one.generation()));
  if (!run_body_straight(e, self, j)) return false;
  if (!anew(s).state.try_finish_collected(j.seen, one.generation())) [[unlikely]]
    return complete_any(e, self, j), false;
  give_slot(e, self.free_slots, s, j.task);
  self.counters.completed.add(1);
  return true;
}

}  // namespace lev
