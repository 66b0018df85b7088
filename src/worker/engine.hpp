// engine: everything the participants of one runtime share.
#pragma once

#include <leveret/this_task.hpp>

#include "flow/backlog.hpp"
#include "flow/dependants.hpp"
#include "flow/item_costs.hpp"
#include "flow/mutex_table.hpp"
#include "flow/scheduler.hpp"
#include "machine/machine.hpp"
#include "sync/core_list.hpp"
#include "task/procedure_table.hpp"
#include "worker/awaited.hpp"
#include "worker/participant.hpp"

#include <unistd.h>

#include <span>

namespace lev {

class crew;

// The core lists. Cores whose numbers differ by a multiple of the number of lists share one.
class core_lists {
 public:
  void open(std::uint32_t hosts) noexcept {
    for (core_list<>& l : lists_) l.open(hosts);
  }
  core_list<>& of(std::uint32_t core) noexcept { return lists_[core % count]; }

 private:
  static constexpr std::uint32_t count = 64;
  core_list<> lists_[count];
};

// The number of a runtime that was never open: no thread notes it.
constexpr std::uint64_t never_open = ~std::uint64_t{0};

struct engine {
  config settings;
  lev::machine* machine = nullptr;
  capability caps{};
  // Why this process has no part in the runtime, a sentence; null: it has. Written while there is
  // one thread: by a fork(), in the child, and before the runtime exists.
  const char* why_absent = nullptr;
  std::uint32_t workers = 0;
  std::uint32_t participant_count = 0;  // workers, other actors of the machine, then host threads
  std::uint32_t takers = 1;             // workers, plus one if hosts help
  std::uint32_t cores = 1;              // that this process may use
  std::uint32_t depth = 1;
  std::uint32_t mailboxes = 0;  // workers that a submitter may send a task to
  bool has_contexts = false;    // tasks run here, and another goes on when one waits
  bool asks_crew = false;       // of each task, whether it can be done
  copy_rule copies;
  std::uint32_t first_actor = 0;  // of the participants that the machine runs
  std::uint32_t first_host = 0;   // of the participants that host threads are bound to
  bool has_heavy_fence = false;   // see sync/fence.hpp
  // Tasks run in this process, with their memory in place, in real time: so a plain one may take
  // the straight path. That path checks for filters, which come and go.
  bool is_straight = false;
  // The procedures whose typed calls take it: all, where there is a heavy fence, or none.
  std::uint32_t straight_procedures = 0;
  std::uint32_t turns_per_look = 1;  // idle polling: turns between looks at the shared queues
  std::uint64_t id = never_open;     // unique in the process

  slot_pool task_slots;
  scheduler sched;
  lev::backlog backlog;  // tasks without a slot
  dependants edges;
  mutex_table mutexes;
  item_costs costs;
  lev::doorbell<> doorbell;
  core_lists hosts_by_core;
  participant* participants = nullptr;
  lev::crew* crew = nullptr;

  // Written at the opening, and by the service once worker processes cannot be kept alive; read by
  // submitters: whether a plain task may go straight to a worker in another process
  // (remote/straight.hpp). Publishes nothing.
  atomic<std::uint32_t> sends_straight{0};
  // Written by host threads that bind for the first time, read by thieves and wakers: participants
  // in use. Publishes nothing: participants are ready from the start.
  alignas(line_pair_bytes) atomic<std::uint32_t> participants_used{0};
  std::span<participant> in_use() const noexcept {
    return {participants, participants_used.load(memory_order_relaxed)};
  }
  // Written by sleepers, read by completers and by those that free slots: how many participants
  // want each thing.
  atomic<std::uint32_t> space_wanted{0};
  // Written and read by those that wake a host for a slot: where the next search begins, so that
  // all have their turn. Publishes nothing.
  atomic<std::uint32_t> next_for_slot{0};
  // Held by a thread that becomes a host, and by one that asks whether there are others.
  spin_lock<> hosts_lock;
  // Written by begin_submit() and end_submit(), read by barrier waiters: 1 between the two.
  // Publishes nothing.
  atomic<std::uint32_t> phase_open{0};
  // Written by close(), read by submitters: 1 once new tasks are refused. Publishes nothing, but
  // its order with the count of submissions decides which sees the other (count_in() in
  // runtime/admit.hpp).
  atomic<std::uint32_t> closing{0};
  // Written by close(), read by workers: 1 when waiting tasks are to be cancelled. Publishes
  // nothing.
  atomic<std::uint32_t> cancelling{0};
  // Written by open() and close(), read by those who run tasks: 1 while plain tasks are run by the
  // straight path. There is no trace then, and `cancelling` is 0. Publishes nothing.
  atomic<std::uint32_t> runs_plainly{0};
  // Written by close(), read by workers: 1 when they are to return. Publishes nothing.
  atomic<std::uint32_t> stopping{0};

  // Written by barrier waiters, read by those that run out of work: how many wait. Publishes
  // nothing.
  alignas(line_pair_bytes) atomic<std::uint32_t> barrier_wanted{0};
  // Written by bulk submits, read by those that run out of work: joins that are held open by their
  // submitters. Publishes nothing.
  atomic<std::uint32_t> open_joins{0};

  // Written by those who queue and take tasks, read by takers: not 0 soon after pieces that will be
  // cut were put into the ready queue. Publishes nothing.
  alignas(line_pair_bytes) atomic<std::uint32_t> pieces_ready{0};

  // Written by tasks that wait in another runtime, read by those that ask whether anything goes on
  // here: how many. Publishes nothing.
  atomic<std::uint32_t> guests_waiting{0};
  // Whether any participant but `but`, of any runtime of this process, runs something; or, for one
  // that gives up when all wait, may go on by itself, as do threads in their own programs, and
  // time-outs. And how many tasks have ended in all of them. Waiters beside such tasks call it.
  // Null until the runtime is announced.
  bool (*does_anybody_go_on)(const participant& but, giving_up how,
                             std::uint64_t* completed) noexcept = nullptr;

  // Failures of tasks without a ticket, for wait_for_completion(). Protected by failure_lock.
  spin_lock<> failure_lock;
  outcome failure;
};

// How many tasks have ended, by the counts of all participants.
inline std::uint64_t count_ends(const engine& e) noexcept {
  std::uint64_t ends = 0;
  for (const participant& p : e.in_use()) ends += p.counters.completed.read();
  return ends;
}

// A process that was forked in a body, a callback or a hook has this participant's stack, but none
// of the threads and lines that go with it: it must not come back to them. It ends as by _exit().
inline void end_if_forked(const engine& e, bool has_failed = false) noexcept {
  if (e.why_absent != nullptr) [[unlikely]]
    _exit(has_failed ? 1 : 0);
}

// Frames of one participant: those staged ahead, the one that drains, and one for each context that
// has a task under way.
constexpr std::uint32_t frames_of(const engine& e) noexcept {
  return e.depth + contexts_max;
}
static_assert(frames_max >= ahead_max + contexts_max);

}  // namespace lev
