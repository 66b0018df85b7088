// Children that the straight line does not run (straight.hpp): others have announced something, the
// server has something to see to first, or they are not plain.
#include "worker/close_mailbox.hpp"
#include "worker/serving.hpp"
#include "worker/straight.hpp"
#include "worker/wait_in_task.hpp"

namespace lev {

namespace {

bool run_above(engine& e, participant& self, std::uint32_t task, const child* by) noexcept {
  LEV_DCHECK(self.running != nullptr && self.running->task != task);
  turn_to_work(e, self, false);
  slot& s = e.task_slots.at(task);
  return run_plainly(e, self, s, task, s.state.word(), by);
}

// A callback may wait for the task, or for one that waits for its mutex: before it is in hand.
bool is_last_when_told(engine& e, participant& self, std::uint32_t task) noexcept {
  tell_before_wait(e, self);
  return self.inbox.ends_with(task);
}

// Takes a child out of the own inbox if it is the youngest there. One whose ticket was released may
// wait for what its parent does next, and the number of a ticket that was used up may be another
// task's by now.
bool take_child(engine& e, participant& self, child one) noexcept {
  if (!self.inbox.ends_with(one.task())) return false;
  if (owes_ends(self) && !is_last_when_told(e, self, one.task())) return false;
  return e.task_slots.at(one.task()).state.is_pending(one.generation()) &&
         self.inbox.try_pop_last();
}

}  // namespace

bool run_taken_child(engine& e, participant& self, child one) noexcept {
  const mode_of_waiter m(self);
  return run_above(e, self, one.task(), &one);
}

bool run_child_with_care(engine& e, participant& self, child one) noexcept {
  return take_child(e, self, one) && run_taken_child(e, self, one);
}

void run_on_top(engine& e, participant& self, std::uint32_t task) noexcept {
  run_above(e, self, task, nullptr);
}

}  // namespace lev
