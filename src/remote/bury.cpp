// After the death of a worker process: its finished tasks are kept, and tasks that it has not begun
// go to other workers. The task in which it died is run again, split or reported, unless that task
// had to end anyway.
#include "base/decimal.hpp"
#include "remote/line_turn.hpp"
#include "remote/strip.hpp"
#include "share/shortage.hpp"
#include "sync/hook_call.hpp"
#include "task/arguments.hpp"
#include "task/slice.hpp"
#include "worker/columns.hpp"
#include "worker/complete.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

namespace lev {

namespace {

// Deaths that are further apart than this are no loop; nor are late deaths beyond late_budget_ns.
constexpr std::uint64_t budget_ns = 5'000'000'000;
constexpr std::uint64_t late_budget_ns = 60'000'000'000;
constexpr std::uint64_t shortage_ns_max = 1'000'000'000;

// The index at which a piece of columns goes on.
std::uint32_t first_index(remote_crew& r, std::uint32_t task) noexcept {
  const unsigned count = r.e.task_slots.at(task).argument_count;
  return static_cast<std::uint32_t>(r.e.task_slots.argument_at(task, count - 1).address);
}

// The elements of the whole call that a piece covers: " at elements
// [17, 18)"; empty when it is not sliced.
void describe_elements(remote_crew& r, std::uint32_t task, char* text, std::size_t size) noexcept {
  const slot& s = r.e.task_slots.at(task);
  if (is_of_columns(s.procedure)) {
    std::snprintf(text, size, ", task %u of the bulk,", first_index(r, task));
    return;
  }
  const std::uint32_t whole = whole_of(s, task);
  text[0] = 0;
  for (unsigned i = 0; i < s.argument_count && i < r.e.task_slots.at(whole).argument_count; ++i) {
    const argument& a = r.e.task_slots.argument_at(task, i);
    const argument& from = r.e.task_slots.argument_at(whole, i);
    if ((a.flags & argument_sliced) == 0 || (from.flags & argument_sliced) == 0) continue;
    const bool by_rows = from.rows > 1 || (from.flags & argument_rows) != 0;
    const std::int64_t step = by_rows ? from.stride_bytes : std::int64_t{from.unit_bytes};
    std::uint64_t begin = a.address;  // of a range
    if (a.what != kind::range) {
      const auto bytes = static_cast<std::int64_t>(a.address - from.address);
      begin = items_gone(r, whole) + (step == 0 ? 0 : static_cast<std::uint64_t>(bytes / step));
    }
    std::snprintf(text, size, " at elements [%llu, %llu)", static_cast<unsigned long long>(begin),
                  static_cast<unsigned long long>(begin + slice_items(a)));
    return;
  }
}

// Whether an attempt may have changed what the next one would read: it has an argument that is read
// and written in place (staging::in_place).
bool changes_its_inputs(remote_crew& r, std::uint32_t task) noexcept {
  for (unsigned i = 0; i < r.e.task_slots.at(task).argument_count; ++i) {
    const argument& a = r.e.task_slots.argument_at(task, i);
    if (a.what == kind::inout && !is_empty(a) && !needs_copy(a, r.e.copies)) return true;
  }
  return false;
}

const char* why_given_up(remote_crew& r, std::uint32_t task, status code) noexcept {
  if (code != status::worker_died) return "; given up";
  if (!procedure_at(own_procedure(r.e, task)).info.may_rerun) return "; it must not be run again";
  return "; not run again, as it may have changed its inout in place";
}

// Keeps the report of a task's last death; `end` says what becomes of the task.
void keep_report(remote_crew& r, std::uint32_t task, status code, std::uint32_t attempts,
                 const remote_death& d, const char* end) noexcept {
  char where[64];
  char text[255];
  describe_elements(r, task, where, sizeof where);
  const char* name = procedure_name(own_procedure(r.e, task));
  if (code == status::overran) {
    std::snprintf(text, sizeof text,
                  "procedure '%s'%s ran longer than its task_ns_max of %s s, and its worker was "
                  "killed",
                  name, where,
                  decimal_text(static_cast<double>(time_limit_of(r, task)) / 1e9, 9).c_str());
  } else {
    std::snprintf(text, sizeof text, "procedure '%s'%s ended its worker process: %s, attempt %u%s",
                  name, where, d.text, attempts, end);
  }
  try {
    r.e.task_slots.keep_exception(task, std::make_exception_ptr(error(code, -1, text)));
  } catch (...) {  // no memory for the text: the status says enough
  }
}

void fail_victim(remote_crew& r, participant& self, std::uint32_t task, status code,
                 std::uint32_t attempts, const remote_death& d) noexcept {
  LEV_DCHECK(code != status::ok && attempts != 0);
  const slot& s = r.e.task_slots.at(task);
  keep_report(r, task, code, attempts, d, why_given_up(r, task, code));
  ending how = ending_of(s, task, code);
  how.task_code = d.task_code;
  if (is_of_columns(s.procedure)) r.e.task_slots.extra(task).stopped_at = first_index(r, task);
  if (is_of_columns(s.procedure) && go_on_behind(r.e, task)) {
    fail_part(r.e, self, how);
    history_of(r, task).attempts = 0;  // they belonged to the failed task
    return push_ready(r.e, task);
  }
  complete(r.e, self, how);
}

// Whether too many workers have died while this task was next. Each said that it had not begun the
// task, but a body that hides its begin would be run again for ever. (Each worker may leave a task
// once for a library that it has not loaded.) Two kinds of deaths do not count: those of a shared
// worker in tasks of other hosts, and those of workers that were never ordered to work.
bool is_suspect(remote_crew& r, std::uint32_t task, const remote_death& d) noexcept {
  if (d.was_away || d.is_late || d.start_code != 0) return false;
  constexpr std::uint32_t coincidences_max = 8;
  return ++history_of(r, task).suspected >
         coincidences_max * r.settings().max_attempts + r.e.workers;
}

bool can_split(remote_crew& r, std::uint32_t task) noexcept {
  descriptor whole;
  read_descriptor(r.e.task_slots, task, whole);
  return r.e.task_slots.at(task).dice_depth < dice_depth_max && !is_of_columns(whole.procedure) &&
         procedure_at(whole.procedure).info.dice == nullptr && task_items(whole) >= 2;
}

// Sends the task to the staged path, which must split it: the deaths of workers in its pieces find
// the element at fault. The report is used if there are no tickets for pieces (post.cpp).
void split_victim(remote_crew& r, participant& self, std::uint32_t task, std::uint32_t attempts,
                  const remote_death& d) noexcept {
  slot& s = r.e.task_slots.at(task);
  keep_report(r, task, status::poison, attempts, d, "; no tickets were free to split the task");
  s.grain = 1;
  s.flags |= task_diceable | task_too_big;
  r.e.sched.post(task);
  run_pass(r.e, self);
}

void judge(remote_crew& r, participant& self, std::uint32_t task, const remote_death& d,
           bool has_overrun) noexcept {
  const std::uint32_t attempts = ++history_of(r, task).attempts;
  if (has_overrun) return fail_victim(r, self, task, status::overran, attempts, d);
  if (d.is_violation) return fail_victim(r, self, task, status::poison, attempts, d);
  if (!procedure_at(own_procedure(r.e, task)).info.may_rerun || changes_its_inputs(r, task))
    return fail_victim(r, self, task, status::worker_died, attempts, d);
  if (attempts < attempts_max_of(r, task)) {
    r.e.participants[d.worker].counters.reruns.add(1);
    r.has_rerun.store(1, memory_order_relaxed);
    return push_ready(r.e, task);
  }
  if (can_split(r, task)) return split_victim(r, self, task, attempts, d);
  fail_victim(r, self, task, status::poison, attempts, d);
}

// Whether workers die before they do anything. Workers that the host killed or that served another
// host do not count, and all that end with their parent count as one. A worker that hung as it
// started counts more. A worker that the system could not start for a shortage counts only when the
// shortage has lasted for a while.
bool is_loop(remote_crew& r, const remote_death& d) noexcept {
  constexpr std::uint32_t late_max = 2;
  const std::uint64_t now_ns = r.e.machine->now_ns();
  if (is_shortage(d.start_code)) {
    if (now_ns - r.last_shortage_ns > shortage_ns_max) r.first_shortage_ns = now_ns;
    r.last_shortage_ns = now_ns;
    return now_ns - r.first_shortage_ns > shortage_ns_max;
  }
  r.last_shortage_ns = 0;  // this one was started
  if (d.is_late) {
    if (now_ns - r.late_death_ns > late_budget_ns) r.late_deaths = 0;
    r.late_death_ns = now_ns;
    return ++r.late_deaths > late_max;
  }
  r.late_deaths = 0;
  if (d.was_away) return false;
  if ((d.was_ordered || d.is_further) && !d.had_work) return false;
  if (d.had_work || r.idle_deaths == 0 || now_ns - r.first_idle_death_ns > budget_ns) {
    r.idle_deaths = 0;
    r.first_idle_death_ns = now_ns;
  }
  if (!d.had_work) ++r.idle_deaths;
  return r.idle_deaths > r.settings().restarts_max;
}

// Writes back the finished tasks of a piece of columns whose worker has died; the rest begins with
// the task in which the worker died. Called before the piece's room is freed.
void keep_done(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  engine& e = r.e;
  stop_at(e, j, r.remote->index_begun(worker));
  if (e.task_slots.extra(j.task).stopped_at == first_index(r, j.task)) return;
  j.result = status::worker_died;
  if ((j.flags & task_staged) != 0)
    write_back(e, j,
               [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
  go_on_at(e, j.task);
  history_of(r, j.task).attempts = 0;  // they belonged to another task
}

// Empties a dead worker's line. Returns the task in which the worker died, or no_slot. In the
// line's turn.
std::uint32_t empty_line(remote_crew& r, const remote_death& d, bool is_timed) noexcept {
  const std::uint32_t worker = d.worker;
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && !line.is_up());  // no tender posts to it meanwhile
  const bool was_begun = is_timed || r.remote->was_begun(worker);
  std::uint32_t victim = no_slot;
  for (bool is_first = true; line.collected != line.posted; is_first = false) {
    job& j = line.job_at(line.collected);
    line.shorten(1);
    if (j.task == no_slot) continue;  // it was taken back
    if (is_first && is_of_columns(j.procedure)) keep_done(r, worker, j);
    free_room(r, worker, j);
    if (is_to_end(r, j)) {
      leave_ended(r, line, j.task);
    } else if (is_first && (was_begun || is_suspect(r, j.task, d))) {
      victim = j.task;
    } else {
      push_ready(r.e, j.task);
    }
  }
  LEV_DCHECK(r.e.participants[worker].store_map.blocks() == 0);
  line.asked = line.limited = 0;
  line.note_spare();
  return victim;
}

// `why`: why the workers' parent cannot be replaced; empty if the workers are at fault.
void go_down(remote_crew& r, const remote_death& d, const char* why) noexcept {
  if (r.is_down.load(memory_order_relaxed) != 0) return;
  char loop[128];
  std::snprintf(loop, sizeof loop, "worker processes die as soon as they start (%s)", d.text);
  const char* what = loop;
  const char* step = "; see what they print";
  if (why[0] != 0) {
    what = "the workers' parent process cannot be replaced: ";
    step = "";
  } else if (d.is_late) {
    what = "worker processes hang as they start (in a fork handler?)";
    step = "";
  } else if (d.start_code != 0) {
    what = "worker processes cannot be started: ";
    why = std::strerror(d.start_code);
    step = next_step(d.start_code);
  } else if (r.settings().worker_bytes_max != 0) {
    step = "; see what they print; is config.processes.worker_bytes_max too small?";
  }
  std::snprintf(r.why_down, sizeof r.why_down, "%s%s%s", what, why, step);
  // Pairs with can_do(): publishes the text.
  r.is_down.store(1, memory_order_release);
  r.e.sends_straight.store(0, memory_order_relaxed);
}

// No ticket can take what the hook throws.
void tell_death(engine& e, const death_hook& told, int worker, int how) noexcept {
  if (told.call == nullptr) return;
  try {
    const hook_call here(&e.sched);
    told.call(told.context, worker, how);
    end_if_forked(e);
  } catch (...) {
    end_if_forked(e, true);
    keep_failure(e, {status::task_failed, 0, 1, std::current_exception()});
  }
}

}  // namespace

void bury(remote_crew& r, participant& self, const remote_death& d) noexcept {
  LEV_DCHECK(r.is_service(self) && d.worker < r.e.workers);
  remote_line& line = r.lines[d.worker];
  hold(line);
  line.mark(remote_line::down);
  line.is_ending = false;
  const bool is_overdue = std::exchange(line.is_overdue, false);
  // Its finished tasks are completed when it has a successor, because a callback may wait for a
  // task.
  keep_ends(r, d.worker);
  end_turn(line);
  if (d.was_there) tell_death(r.e, r.settings().on_death, static_cast<int>(d.worker), d.how);
  hold(line);
  // A worker that was killed because it was silent has made an attempt, like others.
  const bool is_timed = d.was_ordered && is_overdue && line.is_limited(line.collected) &&
                        line.timed == line.collected + 1;
  const std::uint32_t victim = empty_line(r, d, is_timed);
  own_counters& told = r.e.participants[d.worker].counters;
  if (d.was_there) told.deaths.add(1);
  if (d.step < static_cast<std::uint32_t>(chaos_step::count)) told.chaos[d.step].add(1);
  if (is_loop(r, d)) {
    go_down(r, d, "");
  } else if (!r.remote->replace(d.worker)) {
    go_down(r, d, r.e.machine->why_not());
  } else {
    line.unmark(remote_line::down);
  }
  // The verdict comes last, and no line is tended before it: code that runs then may wait for this
  // task.
  const bool was_begun = is_timed && line.timed_is_begun;
  end_turn(line);
  if (victim != no_slot) judge(r, self, victim, d, was_begun);
}

}  // namespace lev
