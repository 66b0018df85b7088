// straight: from its submit to a worker's line, in one straight line, for a plain task. It is the
// way of send() in post.cpp, without what that asks of each task. What is taken for granted, and
// where that is seen to:
//
//   no trace; the runtime gives tasks no time limit     remote_crew::sends_straight, at its opening
//   no limits of its own, no cancellation, attempt 1    the task has no options, and was submitted
//                                                       just now: only its submitter knows it
//   its arguments lie in its slot; it is not staged,    submit_elsewhere() (runtime/elsewhere.cpp)
//   timed or diced; a host thread submits it
#pragma once

#include "remote/line_turn.hpp"
#include "worker/take.hpp"

namespace lev {

// Whether a plain task of this submitter may go to a worker without a queue: it is not in the
// middle of other ends, and no other task is ready before it.
inline bool may_send_straight(remote_crew& r, const participant& self) noexcept {
  engine& e = r.e;
  return r.sends_straight && !r.tender_of(self).is_tending && !self.comes_back &&
         !e.sched.has_filters() && !e.sched.has_waiting() &&
         e.sched.ready().first().looks_empty() && e.cancelling.load(memory_order_relaxed) == 0;
}

// In the line's turn: writes the task, of that state, and sends it off.
[[gnu::always_inline]] inline void send_in_turn(remote_crew& r, std::uint32_t worker,
                                                remote_line& line, std::uint32_t task,
                                                std::uint64_t seen) noexcept {
  const slot& s = r.e.task_slots.at(task);
  const std::uint32_t n = line.posted;
  LEV_DCHECK(line.turn.is_held() && line.is_up && !line.was_asked(n) && !line.is_limited(n));
  LEV_DCHECK((s.flags & (task_staged | task_timed | task_too_big)) == 0);
  LEV_DCHECK(s.argument_count <= near_arguments);
  LEV_DCHECK(s.state.generation() == state_bits::generation(seen));
  read_job(s, line.job_at(n), task, seen);
  line.posted = n + 1;
  // The load must be right before an end can be there.
  line.note_load();
  r.remote->send(worker, {s.procedure, s.argument_count, false, 1, 0, s.arguments});
  // The service's side has the heavy fence, see patrol().
  if (r.is_patrolled.load(memory_order_relaxed) == 0) [[unlikely]]
    start_patrol(r);
}

// False: the task must be queued.
[[gnu::always_inline]] inline bool send_plainly(remote_crew& r, participant& self,
                                                std::uint32_t task, std::uint64_t seen) noexcept {
  if (!may_send_straight(r, self)) [[unlikely]]
    return false;
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    remote_line& line = r.lines[w];
    if (line.is_full.load(memory_order_relaxed) != 0 ||
        line.load.load(memory_order_relaxed) >= r.straight_max || is_away(r, w) ||
        !line.turn.try_hold())
      continue;
    const bool has_place = line.is_up && line.left.load(memory_order_relaxed) == 0 &&
                           line.posted - line.collected < r.e.depth;
    if (has_place) send_in_turn(r, w, line, task, seen);
    if (end_turn(line)) [[unlikely]]
      tend_all(r, self);
    return has_place;
  }
  return false;
}

}  // namespace lev
