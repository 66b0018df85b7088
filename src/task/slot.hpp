// slot: where one task in flight lives, from its submit until its outcome is collected. Slots are
// recycled; a ticket is the slot's number and the generation it was handed out with.
//
// A slot is spread over three arrays, so that a task with one argument touches one cache line, and
// one with three, which are read where they lie, two that travel together:
//   slot        128 bytes  state word, fixed part, the first three arguments
//   slot_rest   the other 15 arguments
//   slot_extra  fields that only some tasks need: waiting for others, being waited for, failing,
//               mutexes, pieces
//
// All of it is zero before a task comes: a runtime for millions of tasks is opened without writing
// to any slot (base/zeroed_array.hpp).
//
// task_state.hpp has the state word, and the owner of the slot in each state.
#pragma once

#include <leveret/status.hpp>
#include <leveret/task.hpp>

#include "sync/env.hpp"
#include "sync/spin_lock.hpp"
#include "task/task_state.hpp"

#include <exception>

namespace lev {

constexpr std::uint32_t no_slot = 0xffffffffu;
constexpr std::uint32_t no_index = 0xffffffffu;  // of a bulk

// Flags of a task, fixed before it is queued, but for task_is_join: a task that runs becomes a join
// when it is cut, or counts failures of its own (runtime/made_range.hpp).
enum : std::uint8_t {
  task_detached = 1,    // no ticket was ever made
  task_diceable = 2,    // the dicer may split it
  task_is_piece = 4,    // `parent` counts it
  task_is_join = 8,     // complete when its pieces are; no longer in a queue
  task_has_locks = 16,  // extra.locks is in use
  task_staged = 32,     // some argument needs the local store
  task_too_big = 64,    // does not fit the local store: must be diced before it may run
  task_timed = 128,     // sliced: the grain of the next one follows from the time this takes
};

// The arguments of a task that lie in the slot itself. A wide task has more.
constexpr unsigned near_arguments = 3;

// `flags` are those above.
struct alignas(line_pair_bytes) slot : detail::task_head {
  task_state<> state;
  // For a piece, the join that counts it; for others, the task that submitted it, if one did, with
  // half of its generation.
  std::uint32_t parent = 0;
  std::uint16_t parent_generation = 0;
  std::uint8_t dice_depth = 0;  // how often it has been split
  // Direct path: 1 + worker whose mailbox the ticket's owner holds. Written by the owner, read by
  // other waiters as a guess. Publishes nothing.
  atomic<std::uint8_t> mailbox{0};
  argument arguments[near_arguments];
};
static_assert(sizeof(slot) == line_pair_bytes);

// whole_of() is the task to which a piece belongs; for other tasks, the task itself.
inline std::uint32_t whole_of(const slot& s, std::uint32_t task) noexcept {
  if ((s.flags & task_is_piece) == 0) return task;
  return s.parent;
}

struct slot_rest {
  argument arguments[argument_count_max - near_arguments];
};

// A task that depends on another: a node of slot_extra::dependants.
struct dependant {
  std::uint32_t next;
  std::uint32_t slot;
};

struct alignas(line_pair_bytes) slot_extra {
  // Join: pieces without outcome. Written by completers and the dicer, read by completers:
  // publishes the pieces' outputs.
  atomic<std::uint32_t> pieces{0};
  // Of a host's own slot: 1 while a task has it. Written by the host and the task's completer, read
  // by the host: publishes that the completer has done with the slot.
  atomic<std::uint32_t> is_taken{0};
  // Join: failed pieces. Written by completers, read by the collector after done.
  atomic<std::uint32_t> failures{0};
  // Predecessors without outcome, plus one while the submit is under way. Written by completers and
  // the submitter; the thread that brings it to 0 reads it as leave to queue the task: publishes
  // the predecessors' outputs.
  atomic<std::uint32_t> predecessors{0};
  // First failure of a piece, or of a predecessor, as a status; 0 none. Written by the completer of
  // the first that fails, read by the completer of this task.
  atomic<std::uint32_t> first_failure{0};

  // The data announced in the state word: the list of dependants (first node + 1, 0 empty) and the
  // callback. An announcer takes the lock, announces, and writes only if the task was still live;
  // the completer reads the data under the lock. So no announcer writes into the slot's next task,
  // however late it comes.
  spin_lock<> telling;
  std::uint32_t dependants = 0;
  void (*callback)(void*) = nullptr;
  void* callback_context = nullptr;
  // Written by the submitter before it lets go of the task, read by the last thread to let go: the
  // submit was refused after all, and no thread knows the task.
  bool is_withdrawn = false;

  int task_code = 0;
  std::exception_ptr exception;
  std::uint16_t locks[4] = {};
  std::uint8_t lock_count = 0;
  std::uint8_t locks_held = 0;
  std::uint32_t lock_next = 0;     // next in a mutex's queue
  std::uint32_t next_failing = 0;  // next of those that fail without having run
  // The index at which a failed piece of columns has stopped (worker/columns.hpp); no_index: it has
  // not. Only its participant uses it.
  std::uint32_t stopped_at = 0;
  // How often the task's worker process died in it, and how often it died when the task was next,
  // for the generation `attempts_of` of the slot. Only the task's holder uses them: the service,
  // the holder of its line's turn, the pass that cuts it.
  std::uint32_t attempts = 0;
  std::uint32_t suspected = 0;
  std::uint32_t attempts_of = 0;
  // For the same generation: how many items of the task are done and no longer in its slot
  // (remote/strip.hpp).
  std::uint64_t items_gone = 0;
  // The limits that the submit asked for, for the generation `limits_of` of the slot; 0: the
  // runtime's.
  std::uint32_t limits_of = 0;
  std::uint32_t max_attempts = 0;
  std::uint64_t task_ns_max = 0;
};

}  // namespace lev
