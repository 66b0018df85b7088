// Tending the lines of workers in other processes.
#include "remote/line_turn.hpp"
#include "worker/complete.hpp"
#include "worker/stage.hpp"
#include "worker/take.hpp"
#include "worker/write_back.hpp"

#include <utility>

namespace lev {

namespace {

void keep_text(remote_crew& r, const job& j, const char* text) noexcept try {
  if (text[0] == 0) return;
  r.e.task_slots.extra(j.task).exception = std::make_exception_ptr(error(j.result, -1, text));
} catch (...) {  // no memory for the text: the status says enough
}

void trace_end(remote_crew& r, participant& stand_in, remote_line& line, const job& j) noexcept {
  if (!stand_in.events.is_open()) return;
  const std::uint64_t now = r.e.machine->now_ns();
  const std::uint64_t begin = larger(j.posted_ns, line.last_end_ns);
  line.last_end_ns = now;
  stand_in.events.record({begin, now, j.task, own_procedure(r.e, j.task), step::execute});
  stand_in.counters.busy_ns.add(now - begin);
}

// Whether somebody has asked for the end of a task in a line.
bool is_unwanted(remote_crew& r, const job& j) noexcept {
  if (r.e.cancelling.load(memory_order_relaxed) != 0) return true;
  const std::uint64_t w = word_of_whole(r, j);
  return (w & state_bits::cancel_asked) != 0 && state_bits::phase(w) == state_bits::live;
}

// What the worker did not begin, as it was asked, is somebody else's, or cancelled. One that did
// not begin a task though nobody asked lies.
bool is_returned(remote_crew& r, const job& j, bool was_asked, remote_end& how) noexcept {
  if (how.result != status::cancelled) return false;
  if (!was_asked) how.result = status::task_failed;
  return was_asked && !is_unwanted(r, j);
}

// Writes back what a piece of columns has done before it stopped, and frees its room. True: what is
// behind goes on as a task of its own.
[[gnu::noinline]] bool goes_on(remote_crew& r, std::uint32_t worker, job& j, const remote_end& how,
                               bool is_returned) noexcept {
  engine& e = r.e;
  stop_at(e, j.task, how.stopped_at);
  j.result = how.result;
  write_back(e, j,
             [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
  free_room(r, worker, j);
  j.flags &= static_cast<std::uint8_t>(~task_staged);  // it is done
  e.task_slots.extra(j.task).attempts = 0;             // those were of a task before
  if (is_returned) {
    go_on_at(e, j.task);
  } else if (how.result != status::task_failed || !go_on_behind(e, j.task)) {
    return false;
  } else {
    j.task_code = how.task_code;
    keep_text(r, j, how.text);
    fail_part(e, e.people[worker], j);
  }
  push_ready(e, j.task);
  return true;
}

// Takes the oldest end that the worker has written, if there is one. In the line's turn.
bool collect_written(remote_crew& r, std::uint32_t worker, ending& over) noexcept {
  engine& e = r.e;
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && !is_there(over));
  remote_end how;
  if (line.posted == line.collected || !r.remote->collect(worker, &how)) return false;
  participant& stand_in = e.people[worker];
  const bool was_asked = line.was_asked(line.collected);
  line.asked &= ~remote_line::bit_of(line.collected);
  line.limited &= ~remote_line::bit_of(line.collected);
  job& j = line.job_at(line.collected++);
  line.load.store(line.posted - line.collected, memory_order_relaxed);
  line.is_full.store(0, memory_order_relaxed);
  line.note_spare();
  if (j.task == no_slot) return true;
  const bool is_back = is_returned(r, j, was_asked, how);
  if (how.result != status::ok && is_of_columns(j.procedure)) {
    if (goes_on(r, worker, j, how, is_back)) return true;
  } else if (is_back) {
    free_room(r, worker, j);
    push_ready(e, j.task);
    return true;
  }
  LEV_DCHECK(how.result != status::pending);
  j.result = how.result;
  j.task_code = how.task_code;
  if (j.result != status::ok) keep_text(r, j, how.text);
  trace_end(r, stand_in, line, j);
  if ((j.flags & task_staged) != 0) {
    write_back(e, j,
               [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
    release_room(e, stand_in, j);
  }
  stand_in.counters.executed.add(1);
  over = j;
  return true;
}

// The same, of those that a dead worker has left as well.
bool collect_end(remote_crew& r, std::uint32_t worker, ending& over) noexcept {
  remote_line& line = r.lines[worker];
  const std::uint32_t left = line.left.load(memory_order_relaxed);
  if (left == 0) return collect_written(r, worker, over);
  over = line.left_ends[left - 1];
  line.left.store(left - 1, memory_order_relaxed);
  return true;
}

// How many tasks a line should have: the one that runs, and its share of those that are ready, so
// that none is stuck behind a long one while another worker is idle. Filters want as few as can be:
// what is in a line cannot be put into another order.
std::uint32_t line_target(remote_crew& r) noexcept {
  engine& e = r.e;
  if (e.sched.has_filters()) return 1;
  const std::uint32_t ready = e.sched.ready().size();
  return smaller(e.depth, 1 + (e.workers == 1 ? ready : ready / e.workers));
}

// Why a task that is ready will not run after all; ok when it will.
status refused(remote_crew& r, const job& j) noexcept {
  if (r.is_down.load(memory_order_relaxed) != 0) return status::pool_down;
  if (is_cancelled(r.e, j)) return status::cancelled;
  // It was to be split, to find the element that kills its worker, and no tickets were free for the
  // pieces.
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

// The service begins to look whether lines move, and goes on as long as they have tasks.
[[gnu::cold, gnu::noinline]] void start_patrol(remote_crew& r) noexcept {
  if (r.is_patrolled.exchange(1, memory_order_relaxed) == 0) r.remote->notify_service();
}

// At the task, from 1. As long as no task of the runtime was run again, nothing is looked up.
std::uint16_t attempt_of(remote_crew& r, const job& j) noexcept {
  if (r.has_rerun.load(memory_order_relaxed) == 0) return 1;
  const slot_extra& extra = r.e.task_slots.extra(j.task);
  const bool is_told = extra.attempts_of == r.e.task_slots.at(j.task).state.generation();
  return static_cast<std::uint16_t>(1 + (is_told ? extra.attempts : 0));
}

// Before the line's load is raised.
void note_limit(remote_crew& r, remote_line& line, std::uint64_t limit_ns) noexcept {
  const std::uint32_t bit = remote_line::bit_of(line.posted);
  line.limited = limit_ns == 0 ? line.limited & ~bit : line.limited | bit;
  if (limit_ns == 0) return;
  line.limit_ns[line.posted % line_jobs_max] = limit_ns;
  // Pairs with service_deadline(). Sequentially consistent: the look at is_timing comes after it.
  line.limits_posted.fetch_add(1, memory_order_seq_cst);
  start_timing(r);
}

void post_job(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  engine& e = r.e;
  remote_line& line = r.lines[worker];
  if (e.people[worker].events.is_open()) j.posted_ns = e.machine->now_ns();
  LEV_DCHECK(line.turn.is_held() && line.is_up && !line.was_asked(line.posted));
  LEV_DCHECK(line.posted - line.collected < line_jobs_max && &j == &line.job_at(line.posted));
  note_limit(r, line, time_limit_of(r, j.task));
  ++line.posted;
  line.load.store(line.posted - line.collected, memory_order_relaxed);
  line.note_spare();
  r.remote->post(worker, {j.procedure, j.argument_count, j.views, attempt_of(r, j)});
  // The service's side has the heavy fence, see patrol().
  if (r.is_patrolled.load(memory_order_relaxed) == 0) [[unlikely]]
    start_patrol(r);
}

// One that is larger than the store, as there were no tickets to split it, gets shared memory.
bool stage_job(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  return (j.flags & task_staged) == 0 ||
         stage(r.e, r.e.people[worker], j, (j.flags & task_too_big) != 0);
}

// Posts ready tasks while the line has room. In the line's turn. One that is not to run any more
// ends here, and the turn with it.
bool fill_line(remote_crew& r, std::uint32_t worker, ending& over) noexcept {
  engine& e = r.e;
  remote_line& line = r.lines[worker];
  bool has_posted = false;
  LEV_DCHECK(line.turn.is_held() && e.depth <= line_jobs_max);
  if (line.left.load(memory_order_relaxed) != 0) return false;
  while (!is_there(over) && line.posted - line.collected < line_target(r)) {
    const bool is_down = r.is_down.load(memory_order_relaxed) != 0;
    std::uint32_t task = no_slot;
    if ((!line.is_up && !is_down) || e.sched.ready().try_pop_some(&task, 1) == 0) break;
    job& j = line.job_at(line.posted);
    load_job(e, j, task);
    j.result = refused(r, j);
    if (j.result != status::ok) {
      over = j;
    } else if (!stage_job(r, worker, j)) {
      if ((j.flags & task_too_big) == 0) {
        line.is_full.store(line.posted != line.collected, memory_order_relaxed);
        push_ready(e, task);  // the store is full of the tasks before it
        break;
      }
      j.result = status::out_of_memory;
      over = j;
    } else {
      post_job(r, worker, j);
      has_posted = true;
    }
  }
  return has_posted;
}

bool has_room(remote_crew& r, std::uint32_t worker) noexcept {
  const remote_line& line = r.lines[worker];
  return line.is_full.load(memory_order_relaxed) == 0 &&
         line.load.load(memory_order_relaxed) < line_target(r);
}

// What a turn of a line came to. Tasks that have ended with nobody to be told make none ready.
enum class turn_result { nothing, posted, ended, more };

// Takes the ends that are there, and completes those with nobody to be told, which takes no longer
// than to leave them for another turn. The first other one is kept: user code may run when it is
// told, and may wait for any other, so the turn must be over. True: a task was put back.
bool collect_ends(remote_crew& r, participant& self, std::uint32_t worker, ending& over,
                  turn_result& found) noexcept {
  bool is_one_back = false;
  while (!is_there(over) && collect_end(r, worker, over)) {
    if (!is_there(over)) {
      is_one_back = true;
    } else if (try_complete_plainly(r.e, self, over)) {
      over = no_ending;
      found = turn_result::ended;
    }
  }
  return is_one_back;
}

// One line, one turn: ends are taken, and the line filled. With an end in hand another round would
// do nothing: there will be another turn when it is told.
turn_result tend_line(remote_crew& r, participant& self, std::uint32_t worker) noexcept {
  ending over = no_ending;
  turn_result found = turn_result::nothing;
  bool is_one_back = false;
  r.lines[worker].turn.run_while([&]() noexcept {
    is_one_back |= collect_ends(r, self, worker, over, found);
    if (fill_line(r, worker, over)) found = larger(found, turn_result::posted);
    return !is_there(over);
  });
  if (is_there(over)) complete_any(r.e, self, over);
  return is_there(over) || is_one_back ? turn_result::more : found;
}

bool line_wants(remote_crew& r, std::uint32_t worker) noexcept {
  const bool is_loaded = r.lines[worker].load.load(memory_order_relaxed) != 0;
  return r.lines[worker].left.load(memory_order_relaxed) != 0 ||
         (is_loaded && r.remote->has_end(worker)) ||
         (!r.e.sched.ready().looks_empty() && has_room(r, worker));
}

bool is_away(remote_crew& r, std::uint32_t worker) noexcept {
  return r.shares_workers && r.remote->is_away(worker);
}

// Whether a worker has nothing to do, for nobody.
bool is_one_idle(remote_crew& r) noexcept {
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    if (r.lines[w].load.load(memory_order_relaxed) == 0 && !is_away(r, w)) return true;
  }
  return false;
}

// The worker with the most tasks that an idle one could run; none when there is no such pair, or
// tasks are ready.
constexpr std::uint32_t none = 0xffffffffu;
std::uint32_t find_uneven(remote_crew& r) noexcept {
  engine& e = r.e;
  if (e.workers < 2) return none;
  std::uint32_t most = 0;
  std::uint32_t found = none;
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    const remote_line& line = r.lines[w];
    if (line.spare.load(memory_order_relaxed) == 0) continue;
    const std::uint32_t spare = line.spare_tasks(is_away(r, w));
    if (spare <= most) continue;
    most = spare;
    found = w;
  }
  return found != none && e.sched.ready().looks_empty() && is_one_idle(r) ? found : none;
}

// Takes half of its spare tasks back from the worker that has the most, the last ones first, when
// another has none. False: nothing to do.
bool level(remote_crew& r) noexcept {
  const std::uint32_t worker = find_uneven(r);
  if (worker == none) return false;
  remote_line& line = r.lines[worker];
  if (!line.turn.try_hold()) return true;  // whoever holds it looks for the same
  LEV_DCHECK(line.spare_tasks(true) <= line.posted - line.collected);
  const bool has_oldest = is_away(r, worker);
  bool has_asked = false;
  std::uint32_t wanted = (line.spare_tasks(has_oldest) + 1) / 2;
  for (std::uint32_t n = line.posted; wanted != 0 && n-- != line.collected;) {
    const bool was_asked = line.was_asked(n);
    const bool is_again = has_oldest && n == line.collected && line.job_at(n).task != no_slot;
    if (was_asked && !is_again) continue;
    has_asked |= take_back(r, worker, n) || !was_asked;
    --wanted;
  }
  end_turn(line);  // the next turn serves the participant that asked meanwhile
  return has_asked;
}

}  // namespace

bool has_remote_work(remote_crew& r) noexcept {
  engine& e = r.e;
  if (e.sched.has_waiting() && e.sched.ready().size() < e.takers) return true;
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    if (line_wants(r, w)) return true;
  }
  return find_uneven(r) != none;
}

std::uint32_t ask_back(remote_crew& r, std::uint32_t worker, std::uint32_t n) noexcept {
  remote_line& line = r.lines[worker];
  job& j = line.job_at(n);
  LEV_DCHECK(line.turn.is_held() && j.task != no_slot);
  LEV_DCHECK(n - line.collected < line.posted - line.collected);
  std::uint32_t task = no_slot;
  line.asked |= remote_line::bit_of(n);
  if (r.remote->take_back(worker, n - line.collected)) {
    free_room(r, worker, j);
    line.limited &= ~remote_line::bit_of(n);
    line.is_full.store(0, memory_order_relaxed);
    task = std::exchange(j.task, no_slot);
  }
  line.note_spare();
  return task;
}

bool take_back(remote_crew& r, std::uint32_t worker, std::uint32_t n) noexcept {
  const std::uint32_t task = ask_back(r, worker, n);
  if (task != no_slot) push_ready(r.e, task);
  return task != no_slot;
}

// They end as cancelled when they are taken from the ready queue.
void remote_crew::recall(participant& self) noexcept {
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    remote_line& line = lines[w];
    hold(line);
    for (std::uint32_t n = line.collected; n != line.posted; ++n) {
      if (!line.was_asked(n) && is_unwanted(*this, line.job_at(n))) take_back(*this, w, n);
    }
    end_turn(line);  // tend_all() serves whoever asked meanwhile
  }
  tend_all(*this, self);
}

// Posts what is ready, and takes no ends: for a callback, which is itself the end of a task, and
// may take long.
static void send_ready(remote_crew& r) noexcept {
  for (std::uint32_t w = 0; w < r.e.workers && !r.e.sched.ready().looks_empty(); ++w) {
    if (!has_room(r, w)) continue;
    remote_line& line = r.lines[w];
    ending over = no_ending;
    hold(line);
    fill_line(r, w, over);
    if (is_there(over)) line.leave(over);
    // Whoever asked meanwhile may be gone; there may be ends.
    if (end_turn(line)) r.remote->notify_service();
  }
}

// The participant that has queued a task sends it off, if a worker has room: at once, in a
// callback; else when all that it is about to tell, or to tend, is done.
void remote_crew::queued(participant& self) noexcept {
  if (self.running != nullptr) {
    send_ready(*this);
  } else if (self.is_telling) {
    self.queues_late = true;
  } else if (!tender_of(self).is_tending) {
    tend_all(*this, self);
  }
}

void keep_ends(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && !line.is_up);
  ending over = no_ending;
  while (collect_written(r, worker, over)) {
    if (is_there(over)) line.leave(std::exchange(over, no_ending));
  }
}

void leave_ended(remote_crew& r, remote_line& line, std::uint32_t task) noexcept {
  const slot& s = r.e.task_slots.at(task);
  line.leave({task, 0, s.state.word(), status::cancelled, s.flags});
}

namespace {

turn_result tend_once(remote_crew& r, participant& self) noexcept {
  engine& e = r.e;
  bool& is_tending = r.tender_of(self).is_tending;
  const bool was_tending = std::exchange(is_tending, true);
  if (e.sched.has_waiting() && e.sched.ready().size() < e.takers) run_pass(e, self);
  turn_result found = turn_result::nothing;
  bool is_one_away = false;
  for (std::uint32_t i = 0; i < e.workers; ++i) {
    if (!line_wants(r, i)) continue;
    if (is_away(r, i)) {
      is_one_away = true;
    } else {
      found = larger(found, tend_line(r, self, i));
    }
  }
  // A worker that is busy for another host process gets what the others have no room for.
  for (std::uint32_t i = 0; is_one_away && i < e.workers; ++i) {
    if (line_wants(r, i)) found = larger(found, tend_line(r, self, i));
  }
  if (found != turn_result::more && level(r)) found = turn_result::more;
  is_tending = was_tending;
  return found;
}

}  // namespace

// After a round that has only posted, or ended tasks with nobody to be told, nothing is to be done
// unless a pass has more: an end that has come meanwhile is for whoever watches, or the worker has
// rung.
void tend_all(remote_crew& r, participant& self) noexcept {
  engine& e = r.e;
  for (;;) {
    const std::uint64_t before = self.counters.completed.read();
    turn_result found;
    bool makes_ready = false;
    do {
      found = tend_once(r, self);
      makes_ready |= found == turn_result::more;
    } while (found == turn_result::more ||
             (found != turn_result::nothing && e.sched.has_waiting()));
    if (self.counters.completed.read() == before) return;
    makes_ready |= self.notice_count != 0;
    // What that makes ready is sent off by the next turn of the loop, not by a call within a call.
    bool& is_tending = r.tender_of(self).is_tending;
    const bool was_tending = std::exchange(is_tending, true);
    flush_notices(e, self);
    is_tending = was_tending;
    tell_barrier(e);
    if (!makes_ready) return;
  }
}

bool tend(remote_crew& r, participant& self) noexcept {
  return tend_once(r, self) != turn_result::nothing;
}

}  // namespace lev
