// The service's part in tending worker processes: deaths, time limits, and running tasks that must
// end. A body that runs in another process ends only with that process:
//
//   1. In the line's turn, everything else that was posted to the worker is taken back. If the
//      task has ended by then, nothing more happens.
//   2. The line is closed, and the worker killed. It can be in no other task of this host,
//      because it finds none that it may begin.
//   3. Its death is confirmed, and the task completed (bury.cpp). A new worker takes its place.
//
// A worker that serves several host processes is killed only while it serves this one. Otherwise it
// is spared and its line is opened again, because the task was over or not begun.
//
// Workers do not tell when a task begins. So the service checks time limits now and then until it
// has seen all tasks with limits running; from then on it looks when the first limit is over.
#include "base/numbers.hpp"
#include "remote/line_turn.hpp"

#include <utility>

namespace lev {

namespace {

// A worker that does not begin its next task for this long beyond the time limit, or after it was
// asked not to, hides that it has begun.
constexpr std::uint64_t silence_ns_max = 2'000'000'000;
constexpr std::uint64_t hush_ns_max = 100'000'000;

// How often the service looks while begin times are not known. (Bench time-out: overrun_ms.)
constexpr std::uint64_t tick_ns_max = 5'000'000;

// How often the service checks whether lines move. A worker that was woken once more has that long
// to begin its task. A check of 64 lines takes 20 us.
constexpr std::uint64_t patrol_ns = 500'000'000;

// Kills the worker in its oldest task, unless that task has ended. `is_lost`: the worker takes no
// tasks, so it may be before its oldest one. In the line's turn.
void kill_in_task(remote_crew& r, std::uint32_t worker, bool is_lost = false) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && line.posted != line.collected);
  if (line.is_ending || !line.is_up()) return;
  for (std::uint32_t n = line.posted; --n != line.collected;) {
    if (!line.was_asked(n)) take_back(r, worker, n);
  }
  // The worker publishes an end before it checks whether it may begin the next task. So if there is
  // no end by now, it sees all requests.
  if (r.remote->has_end(worker) || !r.remote->kill(worker, is_lost)) return;
  line.mark(remote_line::down);
  line.is_ending = true;
}

// Kills the worker whose task has been running for too long, and says when to look again.
void check_time(remote_crew& r, std::uint32_t worker, std::uint64_t now) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held());
  line.limits_seen = line.limits_posted.load(memory_order_relaxed);
  line.look_ns = no_deadline;
  if (line.limited == 0 || line.is_ending) return;
  line.look_ns = 0;
  if (!line.is_limited(line.collected)) return;
  const bool was_begun = r.remote->was_begun(worker);
  // The task's time starts when the task is next, and anew when the worker says that it begins. In
  // between it stands still while the worker starts or serves another host.
  const bool is_away = !was_begun && (r.remote->has_begun_none(worker) ||
                                      (r.shares_workers && r.remote->is_away(worker)));
  if (line.timed != line.collected + 1 || (was_begun && !line.timed_is_begun) || is_away) {
    line.timed = line.collected + 1;
    line.timed_is_begun = was_begun;
    line.timed_since_ns = now;
  }
  std::uint64_t due = no_deadline;
  const std::uint64_t limit = line.limit_ns[line.collected % line_jobs_max];
  const std::uint64_t silence = line.timed_is_begun ? 0 : silence_ns_max;
  if (!checked_add(line.timed_since_ns, limit, &due) || !checked_add(due, silence, &due))
    due = no_deadline;
  if (now > due && !r.remote->has_end(worker)) {
    kill_in_task(r, worker);
    line.is_overdue = line.is_ending;
    return;
  }
  const bool is_only = line.limited == remote_line::bit_of(line.collected);
  if (is_only && line.timed_is_begun) line.look_ns = due;
}

// Whether the worker may be in a task that it was asked not to begin and that has no end yet. A
// worker that sleeps or serves another host has yet to see the request.
bool may_be_in_it(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  if (r.remote->was_begun(worker) || r.remote->is_away(worker)) return true;
  const std::uint64_t now = r.e.machine->now_ns();
  if (line.hushed != line.collected + 1) {
    line.hushed = line.collected + 1;
    line.hushed_since_ns = now;
  }
  return now - line.hushed_since_ns > hush_ns_max;
}

// Ends the tasks of a line that must end: tasks that were not begun leave the line, and the worker
// of one that was begun is killed. True: one of them still needs attention.
bool end_in_line(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  bool is_one_left = false;
  hold(line);
  for (std::uint32_t n = line.posted; n-- != line.collected;) {
    job& j = line.job_at(n);
    if (j.task == no_slot || !is_to_end(r, j)) continue;
    const std::uint32_t back = line.was_asked(n) ? no_slot : ask_back(r, worker, n);
    if (back != no_slot) {
      leave_ended(r, line, back);
      continue;
    }
    is_one_left = true;
    if (n == line.collected && may_be_in_it(r, worker)) kill_in_task(r, worker);
  }
  is_one_left = is_one_left && !line.is_ending;
  end_turn(line);
  return is_one_left;
}

void end_tasks(remote_crew& r) noexcept {
  // Pairs with end_running(): this thread sees the tickets that ask for an end.
  if (r.is_ending.exchange(0, memory_order_acq_rel) == 0) return;
  bool is_one_left = false;
  for (std::uint32_t w = 0; w < r.e.workers; ++w) is_one_left |= end_in_line(r, w);
  if (is_one_left) r.is_ending.store(1, memory_order_relaxed);
}

// The worker was in none of this host's tasks when the keeper wanted to kill it. A task that had to
// end was asked back before that, so it will not begin. One that was to be killed for its time may
// have begun since, and been asked back only then: the service looks at it once more.
void reopen(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  hold(line);
  LEV_DCHECK(line.is_ending && !line.is_up());
  line.unmark(remote_line::down);
  line.is_ending = false;
  const bool was_to_end = !std::exchange(line.is_overdue, false);
  line.timed = line.collected;  // no task: the oldest one's time begins anew
  job& oldest = line.job_at(line.collected);
  const bool is_here = line.posted != line.collected && oldest.task != no_slot;
  if (is_here && line.was_asked(line.collected) && is_to_end(r, oldest)) {
    if (!was_to_end) {
      r.is_ending.store(1, memory_order_relaxed);  // for this thread, as in end_tasks()
    } else if (!r.remote->has_end(worker)) {
      free_room(r, worker, oldest);
      line.limited &= ~remote_line::bit_of(line.collected);
      line.unmark(remote_line::full);
      leave_ended(r, line, std::exchange(oldest.task, no_slot));
      line.note_spare();
    }
  }
  end_turn(line);
}

// Ends a worker that no longer takes tasks: it has overwritten the words by which it and the host
// tell each other of them (machines/processes/README.md, rule 6). True: the line has tasks, or had
// some since the last look.
bool patrol_line(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  if (!line.turn.try_hold()) return true;  // a tender moves it
  const bool has_moved =
      line.posted != line.patrolled_posted || line.collected != line.patrolled_collected;
  const bool is_stuck = line.posted != line.collected &&
                        line.collected == line.patrolled_collected &&
                        line.patrolled_posted != line.collected;
  line.patrolled_posted = line.posted;
  line.patrolled_collected = line.collected;
  const bool has_tasks = line.posted != line.collected;
  if (is_stuck && line.is_up() && !r.remote->revisit(worker)) kill_in_task(r, worker, true);
  end_turn(line);
  return has_moved || has_tasks;
}

void patrol(remote_crew& r) noexcept {
  if (r.is_patrolled.load(memory_order_relaxed) == 0) return;
  const std::uint64_t now = r.e.machine->now_ns();
  if (now < r.patrol_ns) return;
  r.patrol_ns = now + patrol_ns;
  r.remote->rouse_parent();
  bool goes_on = false;
  for (std::uint32_t w = 0; w < r.e.workers; ++w) goes_on |= patrol_line(r, w);
  if (goes_on) return;
  r.is_patrolled.store(0, memory_order_relaxed);
  // Pairs with send_off(): a post that finds the patrol still on is seen here. (Where the kernel
  // has no such fence, the next post starts the patrol.)
  real_env::heavy_fence();
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    if (r.lines[w].tasks() != 0) r.is_patrolled.store(1, memory_order_relaxed);
  }
}

bool has_limits(remote_crew& r) noexcept {
  return r.settings().task_ns_max != 0 ||
         r.least_limit_ns.load(memory_order_relaxed) != no_deadline;
}

// When the service must look at limits again.
std::uint64_t next_look(remote_crew& r) noexcept {
  // Pairs with start_timing(), where a task is posted before the flag is read. Here the flag is
  // cleared before the posts are read, so one of the two sees the other.
  r.is_timing.store(0, memory_order_seq_cst);
  std::uint64_t next = no_deadline;
  bool is_one_unknown = false;
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    const remote_line& line = r.lines[w];
    // Pairs with note_limit(), as above.
    const bool is_new = line.limits_posted.load(memory_order_seq_cst) != line.limits_seen;
    is_one_unknown |= is_new || line.look_ns == 0;
    next = smaller(next, line.look_ns);
  }
  if (!is_one_unknown) return next;
  r.is_timing.store(1, memory_order_relaxed);
  const std::uint64_t own = r.settings().task_ns_max == 0 ? no_deadline : r.settings().task_ns_max;
  const std::uint64_t least = smaller(own, r.least_limit_ns.load(memory_order_relaxed));
  return r.e.machine->now_ns() + smaller(least / 4 + 1, tick_ns_max);
}

void attend_all(remote_crew& r, participant& self) noexcept {
  remote_death d;
  while (r.remote->next_death(&d)) {
    bury(r, self, d);
    while (tend(r, self)) {
    }
  }
  for (std::uint32_t w = 0; r.shares_workers && w < r.e.workers; ++w) {
    if (r.lines[w].is_ending && r.remote->spared(w)) reopen(r, w);
  }
  end_tasks(r);
  patrol(r);
  if (!has_limits(r)) return;
  const std::uint64_t now = r.e.machine->now_ns();
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    remote_line& line = r.lines[w];
    line.look_ns = 0;
    if (!line.turn.try_hold()) continue;
    check_time(r, w, now);
    if (end_turn(line)) tend(r, self);
  }
}

}  // namespace

bool remote_crew::end_running(bool all) noexcept {
  if (all) ends_all.store(1, memory_order_relaxed);
  // Pairs with end_tasks(): publishes the request in the ticket.
  is_ending.store(1, memory_order_release);
  remote->notify_service();
  return true;
}

void attend(remote_crew& r, participant& self) noexcept {
  LEV_DCHECK(r.is_service(self) && runs_here(self));
  // The caller tends the lines afterwards.
  const bool was_tending = std::exchange(self.calls.is_tending, true);
  attend_all(r, self);
  self.calls.is_tending = was_tending;
}

std::uint64_t service_deadline(remote_crew& r) noexcept {
  std::uint64_t look = has_limits(r) ? next_look(r) : no_deadline;
  if (r.is_patrolled.load(memory_order_relaxed) != 0) look = smaller(look, r.patrol_ns);
  if (r.is_ending.load(memory_order_relaxed) == 0) return look;
  constexpr std::uint64_t again_ns = 1'000'000;
  return smaller(look, r.e.machine->now_ns() + again_ns);
}

}  // namespace lev
