// Posts ready tasks to the worker of a line, in the line's turn. Tasks that travel at the same time
// are written one by one and sent off together.
#include <leveret/shared.hpp>

#include "remote/line_turn.hpp"
#include "remote/strip.hpp"
#include "worker/complete.hpp"
#include "worker/enqueue.hpp"
#include "worker/stage.hpp"
#include "worker/take.hpp"

#include <utility>

namespace lev {

void start_patrol(remote_crew& r) noexcept {
  if (r.is_patrolled.exchange(1, memory_order_relaxed) == 0) r.remote->notify_service();
}

namespace {

// Why a ready task will not run after all; ok when it will.
status refused(remote_crew& r, const job& j) noexcept {
  // Pairs with go_down(): the task gets its text.
  if (r.is_down.load(memory_order_acquire) != 0) return status::pool_down;
  if (is_cancelled(r.e, j)) return status::cancelled;
  // Such a task had to be split to find the element that kills its worker, and no tickets were free
  // for the pieces.
  const slot_extra& extra = r.e.task_slots.extra(j.task);
  const bool is_poison = (j.flags & task_too_big) != 0 &&
                         extra.attempts >= attempts_max_of(r, j.task) &&
                         extra.attempts_of == r.e.task_slots.at(j.task).state.generation();
  return is_poison ? status::poison : status::ok;
}

void start_timing(remote_crew& r) noexcept {
  // Pairs with service_deadline(): the post was counted before.
  if (r.is_timing.load(memory_order_seq_cst) == 0 &&
      r.is_timing.exchange(1, memory_order_seq_cst) == 0)  // Pairs with service_deadline() too
    r.remote->notify_service();
}

// The number of the attempt at the task, from 1. Nothing is looked up until some task of the
// runtime has been run again.
std::uint16_t attempt_of(remote_crew& r, const job& j) noexcept {
  if (r.has_rerun.load(memory_order_relaxed) == 0) return 1;
  const slot_extra& extra = r.e.task_slots.extra(j.task);
  const bool is_told = extra.attempts_of == r.e.task_slots.at(j.task).state.generation();
  return static_cast<std::uint16_t>(1 + (is_told ? extra.attempts : 0));
}

// Notes the limit of job `n`, which has none noted yet, before the line's load is raised.
void note_limit(remote_crew& r, remote_line& line, std::uint32_t n,
                std::uint64_t limit_ns) noexcept {
  LEV_DCHECK(!line.is_limited(n));
  if (limit_ns == 0) return;
  line.limited |= remote_line::bit_of(n);
  line.limit_ns[n % line_jobs_max] = limit_ns;
  // Pairs with service_deadline(). Sequentially consistent: the look at is_timing comes after it.
  line.limits_posted.fetch_add(1, memory_order_seq_cst);
  start_timing(r);
}

enum class prepared { good, ended, without_room };

// Stages a part that fits of a task that is larger than the store.
prepared stage_strip(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  if (!cut_strip(r, j)) {
    j.result = status::out_of_memory;
    keep_text(
        r, j,
        "no tickets were free for the pieces of a task that is larger than the local store of "
        "a confined worker; raise config.tickets or config.local_store_bytes");
    return prepared::ended;
  }
  return stage(r.e, r.e.participants[worker], j, false) ? prepared::good : prepared::without_room;
}

// Stages a task. One that is larger than the store, because there were no tickets to split it, gets
// shared memory, or travels in parts if its worker cannot write there.
prepared stage_job(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  const bool is_too_big = (j.flags & task_too_big) != 0;
  if (is_too_big && r.settings().isolation == isolation::confined) return stage_strip(r, worker, j);
  if (stage(r.e, r.e.participants[worker], j, is_too_big)) return prepared::good;
  if (!is_too_big) return prepared::without_room;
  j.result = status::out_of_memory;
  keep_text(r, j, shared_shortage());
  return prepared::ended;
}

// Writes job `n` of a line for the worker, if the store has room for it: `ahead` places behind the
// last one that was sent off. The worker does not see it yet.
[[gnu::always_inline]] inline prepared write_down(remote_crew& r, std::uint32_t worker,
                                                  remote_line& line, std::uint32_t n,
                                                  std::uint32_t ahead, job& j) noexcept {
  LEV_DCHECK(line.turn.is_held() && !line.was_asked(n) && n - line.collected < line_jobs_max);
  if ((j.flags & task_staged) != 0) {
    if (const prepared how = stage_job(r, worker, j); how != prepared::good) return how;
  }
  LEV_DCHECK(line.is_up());
  note_limit(r, line, n, time_limit_of(r, j.task));
  r.remote->write(worker, ahead,
                  {j.procedure, j.argument_count, (j.flags & task_timed) != 0, attempt_of(r, j), 0,
                   j.body.arguments});
  return prepared::good;
}

// Writes down a task that may have been cancelled or given up.
prepared prepare(remote_crew& r, std::uint32_t worker, std::uint32_t n,
                 std::uint32_t task) noexcept {
  remote_line& line = r.lines[worker];
  job& j = line.job_at(n);
  load_job(r.e, j, task);
  j.result = refused(r, j);
  if (j.result == status::ok) {
    const prepared how = write_down(r, worker, line, n, n - line.posted, j);
    // For the trace: it is staged by now.
    if (r.e.participants[worker].events.is_open()) j.posted_ns = r.e.machine->now_ns();
    return how;
  }
  // The report of a death is for a task that is given up (bury.cpp).
  if (j.result == status::cancelled || j.result == status::pool_down)
    r.e.task_slots.extra(task).exception = nullptr;
  if (j.result == status::pool_down) keep_text(r, j, r.why_down);
  return prepared::ended;
}

// Sends off what was prepared.
[[gnu::always_inline]] inline void send_off(remote_crew& r, std::uint32_t worker,
                                            std::uint32_t count) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && line.is_up() && count != 0);
  line.add(count);  // the load must be right before an end can be there
  r.remote->post(worker, count);
  // The service's side has the heavy fence, see patrol().
  if (r.is_patrolled.load(memory_order_relaxed) == 0) [[unlikely]]
    start_patrol(r);
}

// Notes a task that prepare() has refused.
void note_refused(remote_crew& r, std::uint32_t worker, std::uint32_t n, prepared how,
                  ending& over) noexcept {
  remote_line& line = r.lines[worker];
  const job& j = line.job_at(n);
  if (how == prepared::ended) {
    over = j;
  } else {  // the store is full of the tasks before it
    if (n != line.collected) line.mark(remote_line::full);
    push_ready(r.e, j.task);
  }
}

}  // namespace

bool fill_line(remote_crew& r, std::uint32_t worker, ending& over) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && r.e.depth <= line_jobs_max);
  if (is_there(over) || line.left != 0) return false;
  if (r.e.sched.ready().first().looks_empty()) return false;
  if (!line.is_up() && r.is_down.load(memory_order_relaxed) == 0) return false;
  const std::uint32_t room = room_for(r, line.posted - line.collected);
  std::uint32_t tasks[line_jobs_max];
  const std::uint32_t taken = room == 0 ? 0 : r.e.sched.ready().first().try_pop_some(tasks, room);
  std::uint32_t good = 0;
  for (std::uint32_t i = 0; i != taken; ++i) {
    const prepared how = prepare(r, worker, line.posted + good, tasks[i]);
    if (how == prepared::good) {
      ++good;
      continue;
    }
    note_refused(r, worker, line.posted + good, how, over);
    while (++i != taken) push_ready(r.e, tasks[i]);
    break;
  }
  if (good != 0) send_off(r, worker, good);
  return good != 0;
}

// The rest of a turn in which a task was not written down.
[[gnu::noinline]] static void end_refused(remote_crew& r, participant& self, std::uint32_t worker,
                                          prepared how) noexcept {
  remote_line& line = r.lines[worker];
  ending over = no_ending;
  note_refused(r, worker, line.posted, how, over);
  const bool was_asked = end_turn(line);
  if (is_there(over)) {
    complete_any(r.e, self, over);
    tell_barrier(r.e);
  }
  if (is_there(over) || was_asked) tend_all(r, self);
}

// Posts a task to a worker without a queue, if no other task is ready before it. It polls for no
// end: waiters do, and submitters that find the line full, and the service when a worker with
// nothing to do has rung. (A traced end gets its time when it is taken, so traced tasks are queued,
// and their ends are polled for: those of all hosts, whose own lanes may not be traced.) False: the
// task must be queued.
static bool send_straight(remote_crew& r, participant& self, std::uint32_t task) noexcept {
  engine& e = r.e;
  if (self.calls.is_tending || self.calls.comes_back || e.sched.has_waiting() ||
      !e.sched.ready().first().looks_empty() || e.cancelling.load(memory_order_relaxed) != 0 ||
      r.is_traced)
    return false;
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    remote_line& line = r.lines[w];
    if (!has_room(r, w) || is_away(r, w) || !line.turn.try_hold()) continue;
    const bool has_place = line.is_up() && line.left == 0 && line.posted - line.collected < e.depth;
    if (has_place) {
      // Only its submitter knows of the task, so it was not cancelled.
      job& j = line.job_at(line.posted);
      load_job(e, j, task);
      const prepared how = write_down(r, w, line, line.posted, 0, j);
      if (how != prepared::good) [[unlikely]]
        return end_refused(r, self, w, how), true;
      send_off(r, w, 1);
    }
    if (end_turn(line)) tend_all(r, self);
    return has_place;
  }
  return false;
}

void remote_crew::send(participant& self, std::uint32_t task) noexcept {
  LEV_DCHECK(self.running == nullptr && !self.is_telling);
  if (e.sched.has_filters()) [[unlikely]]
    return enqueue(e, self, task);
  if (send_straight(*this, self, task)) return;
  push_ready(e, task);
  queued(self);
}

// Posts ready tasks and takes no ends, for a callback: it is part of a task's end itself, and may
// take long.
static void send_ready(remote_crew& r) noexcept {
  for (std::uint32_t w = 0; w < r.e.workers && !r.e.sched.ready().first().looks_empty(); ++w) {
    if (!has_room(r, w)) continue;
    remote_line& line = r.lines[w];
    ending over = no_ending;
    hold(line);
    fill_line(r, w, over);
    if (is_there(over)) line.leave(over);
    // The thread that asked for the turn may be gone, and may have left ends.
    if (end_turn(line)) r.remote->notify_service();
  }
}

// The participant that has queued a task sends it off if a worker has room: at once in or below a
// callback, otherwise when it has finished telling or tending.
void remote_crew::queued(participant& self) noexcept {
  if (self.running != nullptr || self.calls.comes_back) {
    send_ready(*this);
  } else if (self.is_telling) {
    self.queues_late = true;
  } else if (!self.calls.is_tending) {
    tend_all(*this, self);
  }
}

}  // namespace lev
