// remote_line: the tasks on their way to and from one worker in another process, as the host keeps
// them. The tender of a line (tend.cpp) has its turn; memory that the worker process can write to
// belongs to the machine, and none of it is trusted here.
#pragma once

#include "sync/pass_lock.hpp"
#include "worker/participant.hpp"

#include <bit>

namespace lev {

constexpr std::uint32_t line_jobs_max = 16;
static_assert((line_jobs_max & (line_jobs_max - 1)) == 0);  // numbers of jobs wrap at 2^32
static_assert(line_jobs_max <= 32);                         // bits of remote_line::asked

// An ending is kept from the turn of a line until complete(), where user code may run and may wait;
// no_ending where there is none.
constexpr bool is_there(const ending& over) noexcept {
  return over.task != no_slot;
}

struct alignas(line_pair_bytes) remote_line {
  // Held by the participant that tends the line; protects all that follows.
  pass_lock<> turn;
  std::uint32_t posted = 0;     // tasks sent, ever
  std::uint32_t collected = 0;  // tasks that came back, ever
  // One bit a job: the worker was asked not to begin it. If it was certain at once that the worker
  // will not, the task has left the line, and job::task is no_slot. If not, the end will tell.
  std::uint32_t asked = 0;
  bool is_up = true;  // false from a worker's death, or the order to kill it, to its successor
  // The worker has been ordered killed in its oldest task; the report of its death, or that it was
  // spared, is still to come.
  bool is_ending = false;
  bool is_overdue = false;  // and it was ordered because the time of that task is over
  // The time limit of each job whose bit is set.
  std::uint32_t limited = 0;
  std::uint64_t limit_ns[line_jobs_max] = {};
  // Which task is timed, whether it was seen running, and since when.
  std::uint32_t timed = 0;
  bool timed_is_begun = false;
  std::uint64_t timed_since_ns = 0;
  // The task that the worker was asked not to begin, and has not reported to begin, and since when.
  std::uint32_t hushed = 0;
  std::uint64_t hushed_since_ns = 0;
  // For the service: how many posts of limited tasks it has seen, and when it must look again; 0:
  // now and then.
  std::uint32_t limits_seen = 0;
  std::uint64_t look_ns = no_deadline;
  // For the service: the numbers posted and collected when it last checked whether the line moves.
  std::uint32_t patrolled_posted = 0;
  std::uint32_t patrolled_collected = 0;
  std::uint64_t last_end_ns = 0;  // for the trace
  // Written by the turn's holder, read by tenders that look for room: tasks in the line. Publishes
  // nothing.
  atomic<std::uint32_t> load{0};
  // Written by the turn's holder, read by the service: posts of tasks with a time limit, ever.
  // Publishes nothing.
  atomic<std::uint32_t> limits_posted{0};
  // Written by the turn's holder, read by tenders that look for room: 1 while the store has none
  // for the next task, until an end frees some. Publishes nothing.
  atomic<std::uint32_t> is_full{0};
  // Written by the turn's holder, read by tenders that look for work for an idle worker: twice the
  // number of tasks, behind the oldest, that the worker was not asked to leave; plus 1 if the
  // oldest can be asked for. Publishes nothing.
  atomic<std::uint32_t> spare{0};
  // Written by the turn's holder, read by tenders that look for ends: how many ends are in
  // left_ends: those of tasks that a dead worker had finished, and of tasks that had to end.
  // Nothing is posted until all are taken, so there is room for all of the line's tasks. Publishes
  // nothing.
  atomic<std::uint32_t> left{0};
  ending left_ends[line_jobs_max];
  job jobs[line_jobs_max];

  job& job_at(std::uint32_t n) noexcept { return jobs[n % line_jobs_max]; }
  static constexpr std::uint32_t bit_of(std::uint32_t n) noexcept {
    return 1u << (n % line_jobs_max);
  }
  bool was_asked(std::uint32_t n) const noexcept { return (asked & bit_of(n)) != 0; }
  bool is_limited(std::uint32_t n) const noexcept { return (limited & bit_of(n)) != 0; }

  // note_spare() is called by the turn's holder after each change of the three numbers above, and
  // note_load() where tasks were sent, or have left.
  [[gnu::always_inline]] void note_spare() noexcept { note_spare(posted - collected); }
  [[gnu::always_inline]] void note_load() noexcept {
    const std::uint32_t tasks = posted - collected;
    load.store(tasks, memory_order_relaxed);
    note_spare(tasks);
  }
  // leave() keeps the end of a task that was in the line for the next tender. Tenders take such
  // ends one by one, because the callback of each may wait for any of the others.
  void leave(const ending& over) noexcept {
    const std::uint32_t before = left.load(memory_order_relaxed);
    LEV_DCHECK(turn.is_held() && is_there(over) && before < line_jobs_max);
    left_ends[before] = over;
    left.store(before + 1, memory_order_relaxed);
  }
  // How many tasks another worker could run, as far as is known. The worker is at the oldest,
  // unless it is away.
  std::uint32_t spare_tasks(bool is_away) const noexcept {
    const std::uint32_t now = spare.load(memory_order_relaxed);
    return now / 2 + (is_away ? now % 2 : 0);
  }

 private:
  [[gnu::always_inline]] void note_spare(std::uint32_t tasks) noexcept {
    LEV_DCHECK(turn.is_held() && tasks <= line_jobs_max && tasks == posted - collected);
    if (asked != 0) [[unlikely]]
      return note_unasked();
    // All have their task.
    spare.store(tasks != 0 ? 2 * tasks - 1 : 0, memory_order_relaxed);
  }
  [[gnu::cold, gnu::noinline]] void note_unasked() noexcept {
    const auto count = static_cast<std::uint32_t>(std::popcount(asked));
    LEV_DCHECK(count <= posted - collected);
    const bool is_empty = posted == collected;
    const std::uint32_t unasked = posted - collected - count;
    const std::uint32_t behind = unasked - (is_empty || was_asked(collected) ? 0 : 1);
    // The oldest counts even if the worker was asked to leave it: if that was not certain, it can
    // be asked for once more.
    const std::uint32_t oldest = is_empty || job_at(collected).task == no_slot ? 0 : 1;
    spare.store(behind * 2 + oldest, memory_order_relaxed);
  }
};

}  // namespace lev
