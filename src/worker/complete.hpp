// complete: the outcome of a task reaches all its waiters.
#pragma once

#include "worker/enqueue.hpp"

#include <cstddef>
#include <cstring>

namespace lev {

// complete() ends a task: outcome to ticket, join, dependants, callback and mutexes. The slot may
// belong to another task when this returns.
void complete_any(engine& e, participant& self, const ending& how) noexcept;

// Whether a task has succeeded and has no flags, as most: one comparison of two neighbours. (GCC
// reads each by itself as well if it is asked for both.)
inline bool has_plain_end(const ending& how) noexcept {
  static_assert(offsetof(ending, result) == offsetof(ending, flags) + 1 && sizeof(status) == 1);
  std::uint16_t both = 0;
  std::memcpy(&both, reinterpret_cast<const char*>(&how) + offsetof(ending, flags), sizeof both);
  return both == 0;
}

// try_complete_plainly() ends a task that succeeded and has nothing to notify, as most; it calls no
// user code. False: complete_any() must end it; `seen` is the word as it is now. `s` is the task's
// slot.
inline bool try_complete_plainly(engine& e, participant& self, slot& s, ending& how) noexcept {
  constexpr std::uint8_t rare = task_has_locks | task_is_piece | task_is_join;
  LEV_DCHECK(&s == &e.task_slots.at(how.task));
  LEV_DCHECK(state_bits::phase(how.seen) == state_bits::live && how.result != status::pending);
  LEV_DCHECK_LOOK(s.state.generation() == state_bits::generation(how.seen));
  if (has_plain_end(how)) [[likely]] {
    if (!s.state.try_finish_alone(how.seen)) return false;
  } else if (how.result != status::ok || (how.flags & rare) != 0) {
    return false;
  } else if ((how.flags & task_detached) != 0) {
    s.state.retire();
    give_slot(e, self.free_slots, s, how.task);
  } else if (!s.state.try_finish_alone(how.seen)) {
    return false;
  }
  self.counters.completed.add(1);
  return true;
}

inline bool try_complete_plainly(engine& e, participant& self, ending& how) noexcept {
  return try_complete_plainly(e, self, e.task_slots.at(how.task), how);
}

// try_complete_collected() also consumes the task's ticket, of that generation, which the caller
// holds. False: complete() must end it.
inline bool try_complete_collected(engine& e, participant& self, slot& s, ending& how,
                                   std::uint32_t generation) noexcept {
  LEV_DCHECK(state_bits::generation(how.seen) == generation);
  if (!has_plain_end(how) || !s.state.try_finish_collected(how.seen, generation)) return false;
  give_slot(e, self.free_slots, s, how.task);
  self.counters.completed.add(1);
  return true;
}

// try_end_piece() ends a piece that succeeded behind another one of its join, which is noted here:
// then it is only counted. False: complete_any() must end it.
inline bool try_end_piece(engine& e, participant& self, slot& s, const ending& how) noexcept {
  if ((how.flags & ~task_detached) != task_is_piece || how.result != status::ok ||
      self.ended_pieces_join != s.parent)
    return false;
  LEV_DCHECK(self.aside.ended_pieces != 0);
  s.state.retire();
  give_slot(e, self.free_slots, s, how.task);
  ++self.aside.ended_pieces;
  self.counters.completed.add(1);
  return true;
}

inline void complete(engine& e, participant& self, slot& s, ending& how) noexcept {
  if (!try_complete_plainly(e, self, s, how) && !try_end_piece(e, self, s, how))
    complete_any(e, self, how);
}
inline void complete(engine& e, participant& self, ending& how) noexcept {
  complete(e, self, e.task_slots.at(how.task), how);
}

// count_ended_pieces() counts the pieces that were completed here at their join. Called before
// anything that may wait or take long.
void count_ended_pieces(engine& e, participant& self) noexcept;

// fail_part() counts a failure of a piece that is not over: tasks of a bulk behind the one that
// failed are still to be run.
void fail_part(engine& e, participant& self, const ending& piece) noexcept;

// end_bulk() lets go of a join for the submitter, which held it open while it added pieces.
void end_bulk(engine& e, participant& self, std::uint32_t join) noexcept;

// start() queues a task whose predecessors are complete, unless a mutex keeps it. Also fails it if
// a predecessor failed, and frees one whose submit was refused.
void start(engine& e, participant& self, std::uint32_t task) noexcept;

// fail_unrun() fails a task that will not run: now, or, while an end is told, afterwards.
void fail_unrun(engine& e, participant& self, std::uint32_t task, status code) noexcept;

// fail_rest() completes the tasks that are still to be failed here.
void fail_rest(engine& e, participant& self) noexcept;

// serve_dependants() tells the tasks in a list that a predecessor ended.
void serve_dependants(engine& e, participant& self, std::uint32_t list, status outcome) noexcept;

// take_outcome() returns the details of a failed task's outcome; the first caller takes them.
outcome take_outcome(engine& e, std::uint32_t task, status result) noexcept;

// keep_failure() keeps a failure that no ticket will report for wait_for_completion();
// fail_unclaimed() does so for a task. If one was kept before, both return the new exception: its
// destructor may use the runtime, so the caller destroys it when it has nothing half done.
std::exception_ptr keep_failure(engine& e, outcome how) noexcept;
std::exception_ptr fail_unclaimed(engine& e, std::uint32_t task, status result) noexcept;

// call_back() runs a ticket's callback. Its exception is such a failure, too.
void call_back(engine& e, void (*run)(void*), void* context) noexcept;

// is_quiescent(): every submitted task is complete, except for this many joins that submitters hold
// open, and that wait for these.
bool is_quiescent(engine& e, std::uint32_t open_joins = 0) noexcept;

// tell_barrier() wakes waiters for quiescence if the runtime is quiescent but for open joins.
// Called after completing tasks, before idling or leaving.
void tell_barrier(engine& e) noexcept;

}  // namespace lev
