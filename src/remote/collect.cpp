// Collects ends from the worker of a line, in the line's turn. The ends of successful tasks are
// taken together, any other end by itself.
#include "remote/line_turn.hpp"
#include "remote/straight_take.hpp"
#include "remote/strip.hpp"
#include "task/slice.hpp"
#include "worker/serve.hpp"
#include "worker/write_back.hpp"

#include <utility>

namespace lev {

namespace {

void trace_end(remote_crew& r, participant& p, remote_line& line, const job& j) noexcept {
  if (!p.events.is_open()) return;
  const std::uint64_t now = r.e.machine->now_ns();
  const std::uint64_t begin = larger(j.posted_ns, line.last_end_ns);
  line.last_end_ns = now;
  p.events.record({begin, now, j.task, own_procedure(r.e, j.task), step::execute});
  p.counters.busy_ns.add(now - begin);
}

// A task that the worker was asked not to begin, and did not, goes to another worker or is
// cancelled. A worker that was not asked, and claims not to have begun its task, lies.
bool is_returned(remote_crew& r, const job& j, bool was_asked, remote_end& how) noexcept {
  if (how.result != status::cancelled) return false;
  if (!was_asked) how.result = status::task_failed;
  return was_asked && !is_unwanted(r, j);
}

// Writes back the tasks that a piece of columns has done before it stopped, and frees its room.
// True: the rest goes on as a task of its own.
[[gnu::noinline]] bool goes_on(remote_crew& r, std::uint32_t worker, job& j, const remote_end& how,
                               bool is_returned) noexcept {
  engine& e = r.e;
  stop_at(e, j, how.stopped_at);
  j.result = how.result;
  write_back(e, j,
             [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
  free_room(r, worker, j);
  j.flags &= static_cast<std::uint8_t>(~task_staged);  // it is done
  e.task_slots.extra(j.task).attempts = 0;             // they belonged to an earlier task
  if (is_returned) {
    go_on_at(e, j.task);
  } else if (how.result != status::task_failed || !go_on_behind(e, j.task)) {
    return false;
  } else {
    j.task_code = how.task_code;
    keep_text(r, j, how.text);
    fail_part(e, e.participants[worker], j);
  }
  push_ready(e, j.task);
  return true;
}

// The end of a part of a task (remote/strip.hpp). True: it was the last one.
[[gnu::noinline]] bool finish_strip(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  write_back(r.e, j, [&](unsigned i) { return strip_at(r, j, i); });
  release_room(r.e, r.e.participants[worker], j);
  const bool is_last = j.result != status::ok || !go_on_with_rest(r, j);
  if (!is_last) push_ready(r.e, j.task);
  return is_last;
}

[[gnu::noinline]] bool finish_with_care(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  engine& e = r.e;
  participant& p = e.participants[worker];
  trace_end(r, p, r.lines[worker], j);
  const bool is_staged = (j.flags & task_staged) != 0;
  const bool is_strip = is_staged && (j.flags & task_too_big) != 0;
  if (is_strip && !finish_strip(r, worker, j)) return false;
  p.counters.executed.add(1);
  if (!is_staged || is_strip) return true;
  write_back(e, j,
             [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
  release_room(e, p, j);
  return true;
}

// Does what must follow a task's end before it is told. False: it was the end of a part, and the
// rest is ready.
inline bool finish_job(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  participant& p = r.e.participants[worker];
  if ((j.flags & task_staged) != 0 || p.events.is_open()) return finish_with_care(r, worker, j);
  p.counters.executed.add(1);
  return true;
}

}  // namespace

bool collect_written(remote_crew& r, std::uint32_t worker, ending& over) noexcept {
  engine& e = r.e;
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && !is_there(over));
  remote_end how;
  if (line.posted == line.collected || !r.remote->collect(worker, &how)) return false;
  const bool was_asked = line.was_asked(line.collected);
  job& j = line.job_at(line.collected);
  line.shorten(1);
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
  if (finish_job(r, worker, j)) over = j;
  return true;
}

namespace {

// Notes the time of the task for the grain of the procedure's next one, as execute_timed() does.
// The worker's word is an estimate like any other: a lie costs time.
[[gnu::noinline]] void note_spent(remote_crew& r, std::uint32_t worker, std::uint32_t n,
                                  const job& j) noexcept {
  const std::uint64_t items = items_of(std::span(j.body.arguments, j.argument_count));
  if (items == 0) return;
  const std::uint32_t place = item_costs::place_of(j.procedure, j.body.arguments, j.argument_count);
  r.e.costs.note(place, items, r.remote->spent_ns(worker, n));
}

// Ends the others of them behind the first `taken`, as long as they have no flags: returns how many
// have then ended. The first one that is to be told is the last, and kept in `over`. A task whose
// ticket is the next awaited one is collected in the same step. Precondition: there is no trace.
std::uint32_t end_plain_ones(engine& e, participant& self, std::uint32_t worker, remote_line& line,
                             std::uint32_t taken, std::uint32_t count, ending& over,
                             awaited_tickets& awaited) noexcept {
  owned_counter& executed = e.participants[worker].counters.executed;
  std::uint32_t told = 0;
  while (taken != count) {
    job& j = line.job_at(line.collected + taken);
    if (j.task == no_slot || !has_plain_end(j)) break;
    ++taken;
    executed.add(1);  // before a waiter sees its end
    slot& s = e.task_slots.at(j.task);
    awaited.skip_empty();
    const std::uint32_t generation = state_bits::generation(j.seen);
    const bool is_awaited = awaited.is_next(j.task, generation);
    if (!(is_awaited ? s.state.try_finish_collected(j.seen, generation)
                     : s.state.try_finish_alone(j.seen))) [[unlikely]] {
      over = j;
      break;
    }
    ++told;
    if (!is_awaited) continue;
    give_slot(e, self.free_slots, s, j.task);
    awaited.next++->forget();
  }
  self.counters.completed.add(told);
  return taken;
}

// Ends the others of them, from the one behind the first `taken`.
[[gnu::noinline]] std::uint32_t end_with_care(remote_crew& r, participant& self,
                                              std::uint32_t worker, std::uint32_t taken,
                                              std::uint32_t count, ending& over,
                                              taken_ends& found) noexcept {
  remote_line& line = r.lines[worker];
  while (taken != count && !is_there(over)) {
    job& j = line.job_at(line.collected + taken++);
    if (j.task == no_slot) continue;  // it was taken back
    if ((j.flags & task_timed) != 0) [[unlikely]]
      note_spent(r, worker, taken - 1, j);
    if (!finish_job(r, worker, j)) {
      found.is_one_back = true;
    } else if (try_complete_plainly(r.e, self, j)) {
      found.is_one_told = true;
    } else {
      over = j;
    }
  }
  return taken;
}

// Takes the ends of `count` tasks that succeeded, of which the first `taken` are complete, and
// completes those with nothing to notify. The first other one is kept in `over`, and those behind
// it are left for another turn.
void collect_successes(remote_crew& r, participant& self, std::uint32_t worker, remote_line& line,
                       std::uint32_t taken, std::uint32_t count, ending& over, taken_ends& found,
                       awaited_tickets& awaited) noexcept {
  LEV_DCHECK(line.turn.is_held() && !is_there(over) && count <= line.posted - line.collected);
  if (!r.is_traced) [[likely]]
    taken = end_plain_ones(r.e, self, worker, line, taken, count, over, awaited);
  found.is_one_told |= taken > (is_there(over) ? 1 : 0);
  if (taken != count && !is_there(over)) [[unlikely]]
    taken = end_with_care(r, self, worker, taken, count, over, found);
  r.remote->take_successes(worker, taken);
  line.shorten(taken);
}

// Takes an end of another kind, or one of any kind that a dead worker has left.
void end_other(remote_crew& r, participant& self, ending& over, taken_ends& found) noexcept {
  if (!is_there(over)) {
    found.is_one_back = true;
  } else if (try_complete_plainly(r.e, self, over)) {
    over = no_ending;
    found.is_one_told = true;
  }
}

}  // namespace

taken_ends collect_ends(remote_crew& r, participant& self, std::uint32_t worker,
                        ending& over) noexcept {
  remote_line& line = r.lines[worker];
  taken_ends found;
  awaited_tickets none;
  while (!is_there(over)) {
    if (line.left != 0) {
      over = line.take_left();
      end_other(r, self, over, found);
      continue;
    }
    if (line.posted == line.collected) break;
    const remote_ends there = r.remote->ends_of(worker);
    if (there.successes() != 0)
      collect_successes(r, self, worker, line, 0, there.successes(), over, found, none);
    if (is_there(over) || !there.has_other()) break;
    if (!collect_written(r, worker, over)) break;
    end_other(r, self, over, found);
  }
  return found;
}

unsigned end_turn_with_ends(remote_crew& r, participant& self, std::uint32_t worker,
                            std::uint32_t taken, remote_ends there,
                            awaited_tickets& awaited) noexcept {
  remote_line& line = r.lines[worker];
  ending over = no_ending;
  taken_ends found;
  r.e.participants[worker].counters.executed.add(taken);
  self.counters.completed.add(taken);
  if (there.successes() != 0)
    collect_successes(r, self, worker, line, taken, there.successes(), over, found, awaited);
  if (is_there(over)) line.leave(over);
  const bool was_asked = end_turn(line);
  const bool is_all = !is_there(over) && !there.has_other() && !found.is_one_back && !was_asked;
  return (found.is_one_told ? look_told : 0) | (is_all ? 0 : look_more);
}

bool owes_no_ends(remote_crew& r, participant& self) noexcept {
  if (self.running != nullptr || self.calls.is_tending) return false;
  if (owes_ends(self)) tell_ends(r.e, self);
  return true;
}

bool remote_crew::take_ends(participant& self) noexcept {
  if (is_service(self) || !may_take_ends(*this, self)) return false;
  awaited_tickets none;
  if (!take_plain_ends<false>(*this, self, none)) tend_all(*this, self);
  return true;
}

void keep_ends(remote_crew& r, std::uint32_t worker) noexcept {
  remote_line& line = r.lines[worker];
  LEV_DCHECK(line.turn.is_held() && !line.is_up());
  ending over = no_ending;
  while (collect_written(r, worker, over)) {
    if (is_there(over)) line.leave(std::exchange(over, no_ending));
  }
}

void leave_ended(remote_crew& r, remote_line& line, std::uint32_t task) noexcept {
  const slot& s = r.e.task_slots.at(task);
  line.leave(ending_of(s, task, status::cancelled));
}

}  // namespace lev
