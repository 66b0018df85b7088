// line_turn: the steps in the turn of a remote worker's line (remote_line.hpp). Tenders take them
// (tend.cpp, collect.cpp, post.cpp), the service when it checks time limits and ends tasks
// (attend.cpp), and the burial of a worker (bury.cpp).
#pragma once

#include "base/numbers.hpp"
#include "remote/remote_crew.hpp"
#include "worker/write_back.hpp"

#include <exception>

namespace lev {

inline void hold(remote_line& line) noexcept {
  while (!line.turn.try_hold()) real_env::pause();
}

// True: another thread asked for the turn meanwhile, and has left its work to the caller.
inline bool end_turn(remote_line& line) noexcept {
  return line.turn.end_hold();
}

inline void free_room(remote_crew& r, std::uint32_t worker, job& j) noexcept {
  if ((j.flags & task_staged) != 0) release_room(r.e, r.e.participants[worker], j);
}

// Keeps the message of a task that has failed.
inline void keep_text(remote_crew& r, const job& j, const char* text) noexcept try {
  if (text[0] == 0) return;
  r.e.task_slots.keep_exception(j.task, std::make_exception_ptr(error(j.result, -1, text)));
} catch (...) {  // no memory for the text: the status says enough
}

// ask_back() asks a worker not to begin a task; it may have been asked before. If the worker is
// certain not to begin it, the task leaves the line, and ask_back() hands it to the caller.
// Otherwise it returns no_slot, and the task's end will tell. take_back() also puts the task into
// the ready queue: at once (true), or when its end comes.
std::uint32_t ask_back(remote_crew& r, std::uint32_t worker, std::uint32_t n) noexcept;
bool take_back(remote_crew& r, std::uint32_t worker, std::uint32_t n) noexcept;

// The state of the task that a ticket may name: the one in the line, or the whole of which it is a
// piece. Both keep their slots while the task is in the line, so a request in the word is for this
// task.
inline std::uint64_t word_of_whole(remote_crew& r, const job& j) noexcept {
  return r.e.task_slots.at((j.flags & task_is_piece) != 0 ? j.parent : j.task).state.word();
}

// Whether the task must end even if it runs.
inline bool is_to_end(remote_crew& r, const job& j) noexcept {
  if (r.ends_all.load(memory_order_relaxed) != 0) return true;
  const std::uint64_t w = word_of_whole(r, j);
  return (w & state_bits::end_asked) == state_bits::end_asked &&
         state_bits::phase(w) == state_bits::live;
}

// The limits of its own that the task, or the whole of which it is a piece, was given; null: only
// the runtime's hold.
inline const slot_extra* limits_of(remote_crew& r, std::uint32_t task) noexcept {
  if (r.least_limit_ns.load(memory_order_relaxed) == no_deadline) return nullptr;
  const slot& s = r.e.task_slots.at(task);
  const std::uint32_t whole = whole_of(s, task);
  const slot_extra& extra = r.e.task_slots.extra(whole);
  return extra.limits_of == r.e.task_slots.at(whole).state.generation() ? &extra : nullptr;
}

// How long a task may run; 0: for ever.
inline std::uint64_t time_limit_of(remote_crew& r, std::uint32_t task) noexcept {
  const slot_extra* own = limits_of(r, task);
  const std::uint64_t limit =
      own != nullptr && own->task_ns_max != 0 ? own->task_ns_max : r.settings().task_ns_max;
  return limit == no_time_limit ? 0 : limit;
}

inline std::uint32_t attempts_max_of(remote_crew& r, std::uint32_t task) noexcept {
  const slot_extra* own = limits_of(r, task);
  return own != nullptr && own->max_attempts != 0 ? own->max_attempts : r.settings().max_attempts;
}

// Whether the end of a task in a line was requested.
inline bool is_unwanted(remote_crew& r, const job& j) noexcept {
  if (r.e.cancelling.load(memory_order_relaxed) != 0) return true;
  const std::uint64_t w = word_of_whole(r, j);
  return (w & state_bits::cancel_asked) != 0 && state_bits::phase(w) == state_bits::live;
}

// How many more tasks a line of `load` should have. An only worker gets as many as its line takes.
// One of several gets a task to run and its share of the ready tasks, so that no task is stuck
// behind a long one while another worker is idle. Under filters a line gets as few as possible,
// because tasks in a line cannot be reordered.
inline std::uint32_t room_for(remote_crew& r, std::uint32_t load) noexcept {
  const engine& e = r.e;
  if (load >= e.depth) return 0;
  if (r.e.sched.has_filters()) return load == 0 ? 1 : 0;
  if (e.workers == 1) return e.depth - load;
  const std::uint32_t ready = r.e.sched.ready().first().size();
  if (load * e.workers > ready) return 0;
  return smaller(e.depth - load, 1 + (ready - load * e.workers) / (e.workers + 1));
}
inline bool has_room(remote_crew& r, std::uint32_t worker) noexcept {
  const remote_line& line = r.lines[worker];
  return !line.is(remote_line::full) && room_for(r, line.tasks()) != 0;
}
inline bool is_away(remote_crew& r, std::uint32_t worker) noexcept {
  return r.shares_workers && r.remote->is_away(worker);
}

// fill_line() posts as many ready tasks as the line has room for. In the line's turn. If a task
// must no longer run, its end is left in `over`, and nothing more is posted. True: it has posted.
bool fill_line(remote_crew& r, std::uint32_t worker, ending& over) noexcept;

// start_patrol(): the service begins to check whether lines move, and goes on as long as they have
// tasks.
[[gnu::cold, gnu::noinline]] void start_patrol(remote_crew& r) noexcept;

// What collect_ends() has found: a task that had nothing to notify and is complete; a task that
// went back to the queue.
struct taken_ends {
  bool is_one_told = false;
  bool is_one_back = false;
};
// collect_ends() takes the ends that are there, and completes those with nothing to notify, which
// takes no longer than leaving them for another turn. The first other one is kept in `over` until
// the turn has ended, because user code may run when it is told, and may wait for any other task.
taken_ends collect_ends(remote_crew& r, participant& self, std::uint32_t worker,
                        ending& over) noexcept;
// is_uneven() tells whether a worker has nothing to do, and could get a task of another.
bool is_uneven(remote_crew& r) noexcept;
// collect_written() takes the oldest end that the worker has written, of whatever kind, if there is
// one. False: there is none.
bool collect_written(remote_crew& r, std::uint32_t worker, ending& over) noexcept;

// leave_ended() leaves the end of a task that had to end, and is no longer in the line, for tend()
// to complete. In the line's turn.
void leave_ended(remote_crew& r, remote_line& line, std::uint32_t task) noexcept;

// bury() decides what becomes of the tasks of a dead worker. The service calls it.
void bury(remote_crew& r, participant& self, const remote_death& d) noexcept;

}  // namespace lev
