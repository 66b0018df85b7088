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
  // The load is the number of tasks in the line, and above it bits that say why it gets no others.
  enum : std::uint32_t {
    tasks_mask = 0xff,
    full = 0x100,      // the store has no room for the next task, until an end frees some
    down = 0x200,      // from the worker's death, or the order to kill it, to its successor
    has_left = 0x400,  // there are ends in left_ends
  };
  // Written by the turn's holder, read by tenders that look for room or for ends. Publishes
  // nothing.
  atomic<std::uint32_t> load{0};
  // Written by the turn's holder, read by the service: posts of tasks with a time limit, ever.
  // Publishes nothing.
  atomic<std::uint32_t> limits_posted{0};
  // Written by the turn's holder, read by tenders that look for work for an idle worker: 0 while
  // the worker was asked to leave none of its tasks. If it was, 1, and twice the number of tasks,
  // behind the oldest, that it was not asked to leave, and 1 more if the oldest can be asked for.
  // Publishes nothing.
  atomic<std::uint32_t> spare{0};
  // The ends of tasks that a dead worker had finished, and of tasks that had to end. Nothing is
  // posted until all are taken, so there is room for all of the line's tasks.
  std::uint32_t left = 0;
  ending left_ends[line_jobs_max];
  job jobs[line_jobs_max];

  job& job_at(std::uint32_t n) noexcept { return jobs[n % line_jobs_max]; }
  static constexpr std::uint32_t bit_of(std::uint32_t n) noexcept {
    return 1u << (n % line_jobs_max);
  }
  bool was_asked(std::uint32_t n) const noexcept { return (asked & bit_of(n)) != 0; }
  bool is_limited(std::uint32_t n) const noexcept { return (limited & bit_of(n)) != 0; }

  // As the load says.
  std::uint32_t tasks() const noexcept { return load.load(memory_order_relaxed) & tasks_mask; }
  bool is(std::uint32_t bit) const noexcept { return (load.load(memory_order_relaxed) & bit) != 0; }
  bool is_up() const noexcept { return !is(down); }
  // Whether it may get a task, and has fewer than `tasks_max`.
  bool has_straight_room(std::uint32_t tasks_max) const noexcept {
    LEV_DCHECK(tasks_max <= tasks_mask);
    return load.load(memory_order_relaxed) < tasks_max;  // each bit is more
  }

  // The others are for the turn's holder. mark() and unmark() are for a bit of the load.
  // note_spare() is called after each change of `asked`.
  void mark(std::uint32_t bit) noexcept { set_load(load.load(memory_order_relaxed) | bit); }
  void unmark(std::uint32_t bit) noexcept { set_load(load.load(memory_order_relaxed) & ~bit); }
  void note_spare() noexcept {
    LEV_DCHECK(turn.is_held());
    spare.store(asked != 0 ? 1 + count_unasked() : 0, memory_order_relaxed);
  }
  // add() counts `count` tasks that are sent now, and shorten() the oldest ones, which have left.
  [[gnu::always_inline]] void add(std::uint32_t count) noexcept {
    LEV_DCHECK(count <= line_jobs_max - (posted - collected));
    posted += count;
    set_load(load.load(memory_order_relaxed) + count);
    if (asked != 0) [[unlikely]]
      note_spare();
  }
  [[gnu::always_inline]] void shorten(std::uint32_t count) noexcept {
    LEV_DCHECK(count <= posted - collected);
    collected += count;
    set_load((load.load(memory_order_relaxed) - count) & ~std::uint32_t{full});
    if ((asked | limited) != 0) [[unlikely]]
      forget_requests(count);
  }
  // leave() keeps the end of a task that was in the line for the next tender. Tenders take such
  // ends one by one, because the callback of each may wait for any of the others.
  void leave(const ending& over) noexcept {
    LEV_DCHECK(turn.is_held() && is_there(over) && left < line_jobs_max);
    left_ends[left++] = over;
    mark(has_left);
  }
  ending take_left() noexcept {
    LEV_DCHECK(turn.is_held() && left != 0);
    if (--left == 0) unmark(has_left);
    return left_ends[left];
  }
  // How many tasks another worker could run, as far as is known. The worker is at the oldest,
  // unless it is away.
  std::uint32_t spare_tasks(bool is_away) const noexcept {
    std::uint32_t now = spare.load(memory_order_relaxed);
    if (now == 0) now = 2 * tasks();  // all have their task
    return now == 0 ? 0 : (now - 1) / 2 + (is_away ? (now - 1) % 2 : 0);
  }

 private:
  void set_load(std::uint32_t now) noexcept {
    LEV_DCHECK(turn.is_held() && (now & tasks_mask) == posted - collected);
    load.store(now, memory_order_relaxed);
  }
  [[gnu::cold, gnu::noinline]] void forget_requests(std::uint32_t count) noexcept {
    for (std::uint32_t n = collected - count; n != collected; ++n) {
      asked &= ~bit_of(n);
      limited &= ~bit_of(n);
    }
    note_spare();
  }
  [[gnu::cold, gnu::noinline]] std::uint32_t count_unasked() const noexcept {
    const auto count = static_cast<std::uint32_t>(std::popcount(asked));
    LEV_DCHECK(count <= posted - collected);
    const bool is_empty = posted == collected;
    const std::uint32_t unasked = posted - collected - count;
    const std::uint32_t behind = unasked - (is_empty || was_asked(collected) ? 0 : 1);
    // The oldest counts even if the worker was asked to leave it: if that was not certain, it can
    // be asked for once more.
    const std::uint32_t oldest =
        is_empty || jobs[collected % line_jobs_max].task == no_slot ? 0 : 1;
    return behind * 2 + oldest;
  }
};

}  // namespace lev
