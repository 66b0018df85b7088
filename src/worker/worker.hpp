// worker: the pipeline, from taking a task to its end. Serving is in serve.hpp, waiting inside a
// task in wait_in_task.hpp.
#pragma once

#include "worker/awaited.hpp"
#include "worker/engine.hpp"

namespace lev {

// help_itself() runs a task of the calling host that is in no queue, in the middle of something
// else.
void help_itself(engine& e, participant& self, std::uint32_t task) noexcept;

// run_one() takes one task to its end, on a participant that serves and has no task below.
// run_some() is for one that waits for `what`: it goes on with the tasks of its own inbox until
// that is there, or there is something else to look at; null: one task.
bool run_one(engine& e, participant& self) noexcept;
bool run_some(engine& e, participant& self, awaited* what) noexcept;
// run_staged() is that for the oldest task staged here, and takes no more: for one that leaves.
void run_staged(engine& e, participant& self) noexcept;
// A task for which the calling task waits, by its ticket's number. That of an empty ticket, 0,
// gives no_slot.
struct child {
  std::uint64_t id = 0;
  std::uint32_t task() const noexcept { return static_cast<std::uint32_t>(id) - 1; }
  std::uint32_t generation() const noexcept { return static_cast<std::uint32_t>(id >> 32); }
};
// run_plainly() runs a task that was taken from a queue, of that word, which is not for the
// straight line (straight.hpp). `by`, if not null, holds its ticket. True: the ticket is consumed.
[[gnu::noinline]] bool run_plainly(engine& e, participant& self, slot& s, std::uint32_t task,
                                   std::uint64_t seen, const child* by) noexcept;
// end_otherwise() brings a task to its end that has not simply succeeded there.
[[gnu::noinline]] void end_otherwise(engine& e, participant& self, job& j, int code) noexcept;
// drain() completes the task whose outputs are in flight, if there is one. give_back_ahead() gives
// the tasks staged here to others.
bool drain(engine& e, participant& self) noexcept;
void give_back_ahead(engine& e, participant& self) noexcept;
inline bool owes_failures(const participant& self) noexcept {
  return self.failing != no_slot && !self.is_telling;
}
inline bool owes_ends(const participant& self) noexcept {
  return self.aside.ended_pieces != 0 || self.draining != nullptr || owes_failures(self);
}
// has_callback() tells whether a callback waits for the end of a task in hand, or of the whole of
// which it is a piece.
inline bool has_callback(engine& e, std::uint32_t task) noexcept {
  // A dependant, too, may fail with it and have a callback.
  return (e.task_slots.at(task).state.word() &
          (state_bits::called_back | state_bits::depended_on)) != 0;
}
bool has_tail(engine& e, const job& j) noexcept;

}  // namespace lev
