// worker: the pipeline, from taking a task to its end. A participant that serves is serve.hpp, a
// task that waits wait_in_task.hpp.
#ifndef LEVERET_WORKER_WORKER_HPP
#define LEVERET_WORKER_WORKER_HPP

#include "worker/engine.hpp"

namespace lev {

// run_one() takes one task to its end, where somebody serves already and no task runs below.
bool run_one(engine& e, participant& self) noexcept;
// run_on_top() runs a task that the caller has taken from a queue on top of the one that waits.
void run_on_top(engine& e, participant& self, std::uint32_t task) noexcept;
// run_if_last() does that with `task`, which the task that calls waits for, if it is the youngest
// of the own inbox: fork and join, where nobody has taken it yet. False: it is not.
bool run_if_last(engine& e, participant& self, std::uint32_t task) noexcept;
// drain() completes the task whose outputs are on their way, if there is one; tell_ends() leaves
// nothing untold that has ended here, and settle() nothing that others wait for. give_back_ahead()
// lets others have what is staged here.
bool drain(engine& e, participant& self) noexcept;
inline bool owes_failures(const participant& self) noexcept {
  return self.failing != no_slot && !self.is_telling;
}
inline bool owes_ends(const participant& self) noexcept {
  return self.notice_count != 0 || self.draining != nullptr || owes_failures(self);
}
void tell_ends(engine& e, participant& self) noexcept;
// has_tail() tells whether a callback waits for the end of a task that is in hand, or of that of
// which it is a piece.
inline bool has_callback(engine& e, std::uint32_t task) noexcept {
  // A task that comes after it may fail with it, and have one.
  return (e.task_slots.at(task).state.word() &
          (state_bits::called_back | state_bits::depended_on)) != 0;
}
bool has_tail(engine& e, const job& j) noexcept;
void settle(engine& e, participant& self) noexcept;
void give_back_ahead(engine& e, participant& self) noexcept;
// pass_watch() is for one that looked for work as the last of all: it wakes another if there is
// more.
void pass_watch(engine& e, participant& self) noexcept;

}  // namespace lev

#endif
