// berth: which host a worker of a shared pool serves, and how a host that dies, leaves or takes a
// task back is kept apart from the others.
//
// README.md beside this file says what members and keepers are. A worker of a shared pool serves
// one lane of each member, in turn, and learns of them by notes from the keeper. Confined workers
// of the same number, each of one member, take turns by the word `serving`.
//
// A member that dies is taken out of all workers: none begins a task of that member from then on. A
// worker that is in one is killed, because no host wants the outcome; that counts as no attempt of
// another member's task. A worker names the member that it serves from its first task on until it
// serves another. It also names a new member while it maps that member's memory, so that a death is
// charged to it.
//
//   keeper                                     worker
//   note: detach                               serving: another, or 0 -> member; fails? then it
//   notes + 1                                    waits for the kill
//   serving: member -> member, doomed          looks at notes: changed? then it reads them first
//   succeeds? then kill                        runs tasks of the member's
//
// A body of the member runs only while `serving` says so, and both sides change that word by
// compare-exchange: so a worker that is killed for a member serves no other, and begins nothing for
// another. Both sides store and then look: a worker that the keeper did not find serving the member
// sees the note before it begins.
//
// A member may take back a task that it has posted, if its worker serves another one:
//
//   member                                     worker
//   the task's `skip`                          serving: another -> member
//   serving: another? and the same process?    skip: set? then it passes the task by
//   the task's end: none? then it is back      runs it, publishes its end
//                                              serving: member -> another
//
// A worker that runs the task has looked at `skip` before it was set, so it still serves the member
// or has published the end. If it has died in the task, its successor may serve another member; so
// the number of the process is compared.
//
// A confined worker serves one member only, and `serving` is that member while it has its turn. It
// may have died in the task, and the keeper have ended its turn. So the member looks whether it had
// claimed the task, which it does in its turn, before it looks at `skip`.
#pragma once

#include "machines/processes/alarm.hpp"
#include "machines/processes/zygote.hpp"

#include <string>
#include <vector>

namespace lev::processes {

constexpr std::uint32_t members_max = 64;
constexpr std::size_t berth_bytes = 4096;  // a page each: a confined worker has its own only

// The places of a member's files in its introduction, and in a note, which brings the lane's, too.
// The host of a private pool sends the first ones only.
struct file_of {
  enum : int {
    heap,
    board,
    bell,
    own_count,
    output = own_count,
    error,
    member_count,
    lane = member_count,
    note_count
  };
};

// berth: the state of a worker of a shared pool, in memory that members see read-only.
template <class Env = real_env>
struct alignas(berth_bytes) berth {
  using word = typename Env::template atomic<std::uint32_t>;
  static constexpr std::uint32_t doomed = 1u << 31;
  static constexpr std::uint32_t wanted = 1u << 30;
  static_assert(members_max < wanted);

  // The worker's part. turn() replaces the number of the member that it serves (plus 1; 0: none).
  // False: the worker is doomed, or a body has overwritten the word; it must run no other task.
  [[nodiscard]] bool turn(std::uint32_t from, std::uint32_t to) noexcept {
    LEV_DCHECK(from <= members_max && to <= members_max);
    // Pairs with doom(). Sequentially consistent: the look at the notes comes after it.
    return serving.compare_exchange_strong(from, to, memory_order_seq_cst);
  }
  // names() tells whether the berth still has what the worker has written. is_doomed() tells, when
  // turn() has failed, whether the keeper has claimed the worker, which served `from`: any other
  // number there is a body's.
  bool names(std::uint32_t served) const noexcept {
    return serving.load(memory_order_relaxed) == served;
  }
  bool is_doomed(std::uint32_t from) const noexcept {
    const std::uint32_t now = serving.load(memory_order_relaxed);
    const std::uint32_t member = now & ~doomed;
    return (now & doomed) != 0 && member != 0 && member <= members_max &&
           (from == 0 || member == from);
  }
  // restore() writes once more what a body has overwritten: the worker's death is charged to the
  // member that it served. Pairs with served(), for a keeper that learns of the death later.
  void restore(std::uint32_t served) noexcept {
    has_worked.store(1, memory_order_relaxed);
    serving.store(served, memory_order_seq_cst);
  }
  bool has_news(std::uint32_t notes_seen) const noexcept {
    // Pairs with announce_note(): a worker that was not found serving the member sees the note.
    return notes.load(memory_order_seq_cst) != notes_seen;
  }
  // The keeper's part. announce_note() publishes a note that was sent.
  void announce_note() noexcept {
    notes.fetch_add(1, memory_order_seq_cst);  // Pairs with has_news()
  }
  // doom() claims the right to kill the worker if it is in a task of the member.
  [[nodiscard]] bool doom(std::uint32_t member) noexcept {
    LEV_DCHECK(member < members_max);
    std::uint32_t expected = member + 1;
    // Pairs with turn().
    return serving.compare_exchange_strong(expected, expected | doomed, memory_order_seq_cst);
  }
  // doom_free() claims it if the worker is in no task, and charges its death to the member.
  [[nodiscard]] bool doom_free(std::uint32_t member) noexcept {
    LEV_DCHECK(member < members_max);
    std::uint32_t nobody = 0;
    // Pairs with turn().
    return serving.compare_exchange_strong(nobody, (member + 1) | doomed, memory_order_seq_cst);
  }
  // The part of a worker that shares the berth with others in turns: try_take() when it has a task,
  // then leave(). A worker that finds the berth taken says that it wants it, and waits until
  // `serving` changes from the value seen (0: it is free). leave() returns whether a worker waits.
  [[nodiscard]] bool try_take(std::uint32_t member, bool others_wait) noexcept {
    std::uint32_t now = 0;
    // Pairs with leave(): the work of the turn before is seen. If the berth names the caller, which
    // has no turn, a body of another host has written that, and the caller takes it at its word.
    return serving.compare_exchange_strong(now, (member + 1) | (others_wait ? wanted : 0),
                                           memory_order_seq_cst) ||
           (now & ~wanted) == member + 1;
  }
  std::uint32_t want() noexcept {
    std::uint32_t now = serving.load(memory_order_relaxed);
    // Pairs with leave(), which sees it or is seen.
    while (now != 0 && (now & wanted) == 0 &&
           !serving.compare_exchange_strong(now, now | wanted, memory_order_seq_cst)) {
    }
    return now == 0 ? 0 : now | wanted;
  }
  bool is_free() const noexcept { return serving.load(memory_order_relaxed) == 0; }
  bool is_wanted() const noexcept { return (serving.load(memory_order_relaxed) & wanted) != 0; }
  bool leave() noexcept {
    return (serving.exchange(0, memory_order_seq_cst) & wanted) != 0;  // Pairs with try_take()
  }
  // holder() is whose turn it is, plus 1; 0: nobody's. Bodies can write any number there.
  std::uint32_t holder() const noexcept { return serving.load(memory_order_relaxed) & ~wanted; }
  // leave_for() ends the turn of a member that has no worker here: it has died in it, or a body has
  // named that member. One of those that wait must then be woken, whether there was a turn or not.
  void leave_for(std::uint32_t member) noexcept {
    if (holder() == member + 1) leave();
  }
  // leave_for_nobody() does so where a body has written that a turn is wanted which nobody has.
  void leave_for_nobody() noexcept {
    std::uint32_t now = wanted;
    serving.compare_exchange_strong(now, 0, memory_order_seq_cst);  // Pairs with try_take()
  }

  // served(), for any process: the member that the worker serves, plus 1; 0: none.
  std::uint32_t served() const noexcept {
    // Pairs with turn(). Sequentially consistent: a member that takes a task back looks after it
    // has said so, and the worker looks at what is to be skipped when it has turned.
    return serving.load(memory_order_seq_cst) & ~(doomed | wanted);
  }
  bool is_away_from(std::uint32_t member) const noexcept {
    const std::uint32_t now = served();
    return now != 0 && now != member + 1;
  }
  // is_away_from(): whether that worker process serves another member. The process number is read
  // last, because it was written first.
  bool is_away_from(std::uint32_t member, std::uint32_t worker_process) const noexcept {
    return is_away_from(member) && process.load(memory_order_relaxed) == worker_process;
  }
  // The worker's first act.
  void tell_process(std::uint32_t number) noexcept { process.store(number, memory_order_relaxed); }

  // Written by the worker (the member it serves, plus 1; 0: none), the keeper (doomed) and workers
  // that wait for their turn (wanted), read by all of them, and by members. Publishes what tasks of
  // the member served before have written, and the process that this word belongs to.
  alignas(line_pair_bytes) word serving{0};
  // Written by the worker before its first turn, read by members after a look at `serving`, which
  // publishes it: the number of its process.
  word process{0};
  // Written by the worker, 1 when it begins its first task or restores it, and by the keeper before
  // it starts one; read by the keeper after its death. Publishes nothing.
  word has_worked{0};
  // Written by the keeper, read by the worker: the number of notes sent. Publishes that they have
  // come.
  alignas(line_pair_bytes) word notes{0};
};

// The files that a keeper's `ready` brings. Members read the first, and write to the second.
struct pool_alarms {
  alarm<> of[workers_max];
};
struct pool_page {
  // Written by the keeper, read by members: how many there are. Publishes nothing.
  alignas(line_pair_bytes) atomic<std::uint32_t> members{0};
  berth<> berths[workers_max];
};

// note: from the keeper to a worker. A member comes (attach) or goes, or the worker must end
// because a member has given it up. An attach brings six files: those of the introduction, and the
// lane.
struct note {
  enum : std::uint32_t { attach = 0, detach = 1, end = 2 };
  std::uint32_t what = attach;
  std::uint32_t member = 0;
  std::uint64_t lane_begin = 0;
  introduction about;
};
static_assert(std::is_trivially_copyable_v<note> && sizeof(note) != sizeof(report));

// serve_members() is the main function of a worker that learns of its members by `notes`.
[[noreturn]] void serve_members(berth<>& place, const alarm<>& wakes, int notes) noexcept;

// serve_one() is that of a worker with one member, whose files are those of an attach. It has
// `turns` when other members have workers of its number, and `known`, the verdicts on the book's
// libraries, if it is confined.
struct own_start {
  berth<>* turns;
  const note* about;
  int* files;
  const std::vector<std::string>* known;
};
[[noreturn]] void serve_one(const own_start& start) noexcept;

}  // namespace lev::processes
