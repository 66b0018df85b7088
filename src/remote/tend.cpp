// Tending the lines of workers in other processes.
#include "remote/line_turn.hpp"
#include "worker/complete.hpp"

#include <utility>

namespace lev {

namespace {

// The result of a turn of a line. Tasks that have ended with nothing to notify make none ready.
enum class turn_result { nothing, posted, ended, more };

// Takes one line's turn: collects ends, and fills the line. With an end in hand another round would
// do nothing; the turn after it is told goes on.
turn_result tend_line(remote_crew& r, participant& self, std::uint32_t worker) noexcept {
  ending over = no_ending;
  turn_result found = turn_result::nothing;
  bool is_one_back = false;
  r.lines[worker].turn.run_while([&]() noexcept {
    const taken_ends ends = collect_ends(r, self, worker, over);
    is_one_back |= ends.is_one_back;
    if (ends.is_one_told) found = turn_result::ended;
    if (!r.e.sched.ready().first().looks_empty() && fill_line(r, worker, over))
      found = larger(found, turn_result::posted);
    return !is_there(over);
  });
  if (is_there(over)) complete_any(r.e, self, over);
  return is_there(over) || is_one_back ? turn_result::more : found;
}

bool line_wants(remote_crew& r, std::uint32_t worker) noexcept {
  const remote_line& line = r.lines[worker];
  return line.is(remote_line::has_left) || (line.tasks() != 0 && r.remote->has_end(worker)) ||
         (!r.e.sched.ready().first().looks_empty() && has_room(r, worker));
}

// Whether a worker has nothing to do for any host.
bool is_one_idle(remote_crew& r) noexcept {
  for (std::uint32_t w = 0; w < r.e.workers; ++w) {
    if (r.lines[w].tasks() == 0 && !is_away(r, w)) return true;
  }
  return false;
}

// The worker with the most tasks that an idle worker could run; none if no worker is idle, none has
// such tasks, or tasks are ready.
constexpr std::uint32_t none = 0xffffffffu;
std::uint32_t find_uneven(remote_crew& r) noexcept {
  engine& e = r.e;
  if (e.workers < 2) return none;
  std::uint32_t most = 0;
  std::uint32_t found = none;
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    const remote_line& line = r.lines[w];
    if (line.tasks() == 0) continue;
    const std::uint32_t spare = line.spare_tasks(is_away(r, w));
    if (spare <= most) continue;
    most = spare;
    found = w;
  }
  return found != none && e.sched.ready().first().looks_empty() && is_one_idle(r) ? found : none;
}

// When a worker has none, takes back half of the spare tasks of the worker that has the most, the
// last ones first. False: there was nothing to do.
bool level(remote_crew& r) noexcept {
  const std::uint32_t worker = find_uneven(r);
  if (worker == none) return false;
  remote_line& line = r.lines[worker];
  if (!line.turn.try_hold()) return true;  // the holder does the same
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
  // A participant that asked meanwhile has left it to this one, which goes on.
  return end_turn(line) || has_asked;
}

}  // namespace

bool is_uneven(remote_crew& r) noexcept {
  return find_uneven(r) != none;
}

bool has_remote_work(remote_crew& r) noexcept {
  engine& e = r.e;
  if (e.sched.has_waiting() && e.sched.ready().first().size() < e.takers) return true;
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    if (line_wants(r, w)) return true;
  }
  return is_uneven(r);
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
    line.unmark(remote_line::full);
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

// The tasks that are taken back end as cancelled when they leave the ready queue.
void remote_crew::recall(participant& self) noexcept {
  for (std::uint32_t w = 0; w < e.workers; ++w) {
    remote_line& line = lines[w];
    hold(line);
    for (std::uint32_t n = line.collected; n != line.posted; ++n) {
      if (!line.was_asked(n) && is_unwanted(*this, line.job_at(n))) take_back(*this, w, n);
    }
    end_turn(line);  // tend_all() serves those that asked meanwhile
  }
  tend_all(*this, self);
}

namespace {

turn_result tend_once(remote_crew& r, participant& self) noexcept {
  engine& e = r.e;
  const bool was_tending = std::exchange(self.calls.is_tending, true);
  if (e.sched.has_waiting() && e.sched.ready().first().size() < e.takers) run_pass(e, self);
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
  // A worker that is busy for another host process gets only tasks for which the others have no
  // room.
  for (std::uint32_t i = 0; is_one_away && i < e.workers; ++i) {
    if (line_wants(r, i)) found = larger(found, tend_line(r, self, i));
  }
  if (found != turn_result::more && e.workers > 1 && level(r)) found = turn_result::more;
  self.calls.is_tending = was_tending;
  return found;
}

}  // namespace

// A round that has only posted, or ended tasks with nothing to notify, is the last one unless a
// pass has more tasks. An end that has come meanwhile is left to a watcher, or its worker has rung.
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
    makes_ready |= self.aside.ended_pieces != 0;
    // A task that this makes ready is sent off by the next turn of the loop, not by a nested call.
    const bool was_tending = std::exchange(self.calls.is_tending, true);
    if (self.aside.ended_pieces != 0) count_ended_pieces(e, self);
    self.calls.is_tending = was_tending;
    tell_barrier(e);
    if (!makes_ready) return;
  }
}

bool tend(remote_crew& r, participant& self) noexcept {
  return tend_once(r, self) != turn_result::nothing;
}

}  // namespace lev
