// straight: from its submit to a worker's line, in one straight line, for a plain task. It is the
// way of send() in post.cpp, without what that asks of each task. What is taken for granted, and
// where that is seen to:
//
//   no trace; the runtime gives tasks no time limit;    engine::sends_straight
//   workers can be kept alive
//   no limits of its own, no cancellation, attempt 1    the task has no options, and was submitted
//                                                       just now: only its submitter knows it
//   its arguments lie in its slot; it is not staged,    submit_elsewhere() (runtime/elsewhere.cpp)
//   timed or diced; a host thread submits it
#pragma once

#include "base/anew.hpp"
#include "remote/line_turn.hpp"
#include "worker/take.hpp"

namespace lev {

// Whether a plain task of this submitter may go to a worker without a queue: it is not in the
// middle of other ends, and no other task is ready before it.
inline bool may_send_straight(engine& e, const participant& self) noexcept {
  return !self.calls.is_any() && !e.sched.has_filters() && !e.sched.has_waiting() &&
         e.sched.ready().first().looks_empty();
}

// The turn of the first line that has room for another plain task.
struct straight_line {
  remote_line* line = nullptr;  // null: there is none
  std::uint32_t worker = 0;
};
template <bool shares_workers>
[[gnu::always_inline]] inline straight_line hold_straight(remote_crew& r) noexcept {
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    remote_line& line = r.lines[w];
    if (line.has_straight_room(r.straight_max) && !(shares_workers && is_away(r, w)) &&
        line.turn.try_hold())
      return {&line, w};
  }
  return {};
}

// In the line's turn: whether it still may have the task. A runtime that cancels its tasks looks at
// each line in its turn, behind the request: it finds the task, or the submitter sees the request.
inline bool is_open_to(const remote_crew& r, const remote_line& line) noexcept {
  return line.has_straight_room(r.straight_max) && r.e.cancelling.load(memory_order_relaxed) == 0;
}

// In the line's turn: writes the task, of that state, and sends it off.
[[gnu::always_inline]] inline void send_in_turn(remote_crew& r, const straight_line& to,
                                                std::uint32_t task, std::uint64_t seen) noexcept {
  remote_line& line = *to.line;
  const slot& s = r.e.task_slots.at(task);
  const std::uint32_t n = line.posted;
  LEV_DCHECK(line.is_up() && !line.was_asked(n) && !line.is_limited(n));
  LEV_DCHECK((s.flags & (task_staged | task_timed | task_too_big)) == 0);
  LEV_DCHECK(s.argument_count <= near_arguments && n - line.collected < r.e.depth);
  LEV_DCHECK(s.state.generation() == state_bits::generation(seen));
  read_job(s, line.job_at(n), task, seen);
  line.add(1);  // the load must be right before an end can be there
  r.remote->send(to.worker, {s.procedure, s.argument_count, false, 1, 0, s.arguments});
}

// The service's side has the heavy fence, see patrol().
inline bool needs_patrol(const remote_crew& r) noexcept {
  return r.is_patrolled.load(memory_order_relaxed) == 0;
}

}  // namespace lev
