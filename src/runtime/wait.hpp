// Waiting for everything.
#pragma once

#include "runtime/runtime_state.hpp"
#include "worker/wake.hpp"

namespace lev::detail {

// A point in time `timeout_ns` from now.
std::uint64_t deadline_after(runtime_state& c, std::int64_t timeout_ns) noexcept;

// A host that has waited may send its next tasks to workers that poll, and queues its posts.
inline void note_wait(const engine& e, participant& self) noexcept {
  self.letters_left = e.mailboxes;
  self.posts_at_once = 0;
}

// wait_long() is wait_or_throw() for what straight_wait.cpp leaves to it.
[[gnu::noinline]] void wait_long(runtime_state* c, std::uint64_t& id, wait_policy how);

// collect_success() consumes a ticket whose task has succeeded. False: it is no such ticket.
// collect_one() leaves the note of the wait to its caller.
inline bool collect_one(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  const std::uint32_t task = static_cast<std::uint32_t>(id) - 1;  // beyond all slots if it is none
  if (task >= c.task_slots.count()) return false;
  slot& s = c.task_slots.at(task);
  if (!s.state.try_collect_success(ticket_generation(id))) return false;
  LEV_DCHECK((s.flags & (task_detached | task_is_piece)) == 0);
  give_slot(c, self.free_slots, s, task);
  return true;
}
inline bool collect_success(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  if (!collect_one(c, self, id)) return false;
  note_wait(c, self);
  return true;
}

// collect_ended() consumes the last tickets of a set while they are of tasks that have succeeded;
// returns how many are left.
[[gnu::noinline]] inline std::size_t collect_ended(runtime_state& c, participant& self,
                                                   ticket* tickets, std::size_t count) noexcept {
  const std::size_t before = count;
  while (count != 0 && tickets[count - 1].home() == &c &&
         collect_one(c, self, tickets[count - 1].id()))
    tickets[--count].forget();
  if (count != before) note_wait(c, self);  // a poll that finds nothing is no wait
  return count;
}

// Whether tasks in other processes may end now, and any ticket of this set, whose last one is
// `last`, be consumed with them (remote/straight_take.hpp): only that crew is to be asked
// (engine::asks_crew), and the last one is waited for.
inline bool may_take_awaited(const runtime_state& c, const participant& self,
                             const ticket& last) noexcept {
  LEV_DCHECK(c.asks_crew && last.home() == &c);
  const std::uint32_t task = static_cast<std::uint32_t>(last.id()) - 1;  // of none: beyond all
  return task < c.task_slots.count() &&
         c.task_slots.at(task).state.is_pending(ticket_generation(last.id())) &&
         self.batches == nullptr;
}

// Every wait begins with await(): for `what`, as `how` says, inside tasks of this or another
// runtime and outside. False: the deadline passed first, or waiting on is in vain.
bool await(runtime_state& c, participant& self, awaited& what, std::uint64_t deadline_ns,
           wait_policy how, giving_up when = giving_up::when_all_wait) noexcept;
// is_guest() tells whether the caller is in a task of another runtime, and so runs none of this
// one.
bool is_guest(const runtime_state& c, const participant& self) noexcept;
// poster_of() is the participant that runs the task in which the caller posts: the caller itself,
// or for a guest one of the other runtime. Null: the caller is in no task.
const participant* poster_of(const runtime_state& c, const participant& self) noexcept;

// is_in_task_or_bulk() tells whether the caller is in a task of `c` or its callback, perhaps below
// one of another runtime, in the function that makes the tasks of a bulk, or in a filter or hook: a
// wait for everything would be one for itself.
bool is_in_task_or_bulk(const runtime_state& c, const participant& self) noexcept;

// wait_quiescent() waits until every task is complete and no submit phase is open. False: the
// deadline passed.
bool wait_quiescent(runtime_state& c, participant& self, std::uint64_t deadline_ns) noexcept;

// Whether tickets of the caller, the only host thread bound now, hold every slot, and nothing runs:
// a submitter that waits for a slot then waits for ever.
bool is_held_by_caller(runtime_state& c, const participant& self) noexcept;

// Whether all slots are held by tickets that hosts have not collected, and nothing runs.
bool is_stranded(runtime_state& c) noexcept;

// Whether a host that waits until it can submit will be refused: the runtime is closing. A bulk
// that was let in goes on as long as a task runs that may give its slot back.
inline bool is_shut_out(runtime_state& c, const participant& self) noexcept {
  return self.running == nullptr &&
         c.closing.load(memory_order_seq_cst) != 0 &&  // Pairs with close_within()
         (self.open_joins == 0 || is_stranded(c));
}

// wait_space() waits until a task slot and `edges` edges between tasks may be free, or
// is_held_by_caller(), or is_shut_out(); not beyond `until_ns`.
void wait_space(runtime_state& c, participant& self, bool helps, std::uint32_t edges,
                std::uint64_t until_ns) noexcept;
// wait_join() waits until fewer than `joins_max` bulks are being submitted, or is_shut_out().
void wait_join(runtime_state& c, participant& self, std::uint32_t joins_max) noexcept;
// wait_space_inside() is that for a task or a callback. False: no participant has run anything for
// 10 ms, so none will free a slot.
bool wait_space_inside(runtime_state& c, participant& self, std::uint32_t edges) noexcept;

// wait_surely() waits for a task that uses the caller's frame: it returns the outcome, and no
// refusal.
outcome wait_surely(runtime_state* c, std::uint64_t id) noexcept;

}  // namespace lev::detail

namespace lev {

// wait_all_any_way() is wait_all() for what straight_wait.cpp leaves to it, which may have looked
// for ends.
[[gnu::noinline]] outcome wait_all_any_way(ticket* tickets, std::size_t count,
                                           std::int64_t timeout_ns, wait_policy how,
                                           bool has_looked) noexcept;

}  // namespace lev
