// contexts: the flows of control that one participant holds, so that a task that waits gives way to
// another one of the same worker instead of leaving the worker idle (CellMT, section 3).
//
// Number 0 is the participant's own stack, as it was before; the others are opened when they are
// first needed, and kept. README.md says at which of three places one is (ring, waiting, free), and
// by which rules. All of this belongs to the thread that runs the participant; nothing is shared.
#pragma once

#include "context/context.hpp"
#include "sync/hook_call.hpp"
#include "worker/complete.hpp"

#include <leveret/this_task.hpp>

namespace lev {

struct contexts;

struct held_context {
  context own;  // of number 0: the participant's own stack
  contexts* owner = nullptr;
  held_context* next = nullptr;  // in the ring, or in the list of waiting or of free ones
  std::uint32_t number = 0;
  std::uint32_t nest = 0;  // the participant's, while this context is suspended
  job* running = nullptr;
  task_thread* thread = nullptr;  // what it runs instead of tasks
  bool took_one = false;          // and was started for that: see contexts::takes_one
  // The wait of its task, and when it ends: while it is at `waiting`.
  awaited* what = nullptr;
  std::uint64_t deadline_ns = no_deadline;
};

// One tag of a task: the transfer under it.
struct transfer {
  const char* next = nullptr;  // in place: lines still to be prefetched, to `end`
  const char* end = nullptr;
  char* buffer = nullptr;  // copied: where the data goes
  std::size_t buffer_bytes = 0;
  bool is_spill = false;  // the buffer found no room in the local store
};

// The tags of one task that gets or puts data itself, or whose stack is not left.
struct transfer_set {
  transfer tags[task_tags];
  bool stays = false;             // see stay_on_stack(): here, as plain tasks have no such set
  std::uint32_t pending = 0;      // one bit a tag
  std::uint32_t tag_base = 0;     // of the machine's tags
  transfer_set* below = nullptr;  // list of free ones
};

struct contexts {
  lev::engine* engine = nullptr;
  participant* self = nullptr;
  held_context* current = nullptr;
  std::uint32_t live = 1;           // in the ring
  std::uint32_t limit = 1;          // of those that may take tasks; see choose_limit()
  std::uint32_t limit_max = 1;      // config::contexts
  held_context* waiting = nullptr;  // the one that has waited longest, first
  held_context* last_waiting = nullptr;
  std::uint32_t waiting_count = 0;
  std::uint32_t timed_count = 0;  // of them have a deadline
  std::uint32_t looks_due = 0;    // of those that wait, before the participant may sleep
  bool is_automatic = true;
  bool is_leaving = false;  // no context but the first takes another task
  bool takes_one = false;   // but one that does, once
  bool copies = false;      // get() and put() copy; else they prefetch
  bool virtual_time = false;
  std::uint32_t yields = 0;     // yield(), ever
  std::uint32_t far_turns = 0;  // turns that found no task near
  // `limit` was chosen for these sizes: of a get(), and of its memory.
  std::size_t chosen_bytes = 0;
  std::size_t chosen_from_bytes = 0;
  held_context* free = nullptr;
  std::uint32_t lacking = 0;  // those for whose stacks there was no memory
  transfer_set* free_sets = nullptr;
  std::uint32_t sets = 0;
  held_context all[contexts_max];
};

// contexts_of() returns the participant's contexts, made at the first call; null if there is no
// memory for them, or tasks run elsewhere.
contexts* contexts_of(participant& self) noexcept;
void close_contexts(participant& self) noexcept;

// Whether tasks are under way on contexts other than the caller's.
inline bool has_other_contexts(const participant& self) noexcept {
  return self.aside.other_contexts != 0;
}

// Whether one of them would have the next turn.
inline bool has_turns(const participant& self) noexcept {
  return self.contexts != nullptr && self.contexts->live > 1;
}

// owes_others() tells whether a host that helped has completed or taken something that others wait
// for; tasks in its inbox they can steal.
inline bool owes_others(const participant& self) noexcept {
  return self.aside.ended_pieces != 0 || self.draining != nullptr || self.ahead_count != 0 ||
         has_other_contexts(self);
}

// switch_to() is for the functions below: it goes on with `to`, until another context switches
// back.
inline void switch_to(contexts& c, held_context& to) noexcept {
  held_context& from = *c.current;
  participant& self = *c.self;
  LEV_DCHECK(&to != &from && to.owner == &c && to.what == nullptr && runs_here(self));
  LEV_DCHECK(self.staying == 0);
  from.running = self.running;
  from.nest = self.nest;
  self.running = to.running;
  self.nest = to.nest;
  c.current = &to;
  if (self.calls_others) [[unlikely]]
    forget_last_runtime();
  const hook_call::aside hooks;
  context::switch_to(from.own, to.own);
}

// is_consistent() is for assertions: every context is in one of its three places, and the counts
// are right. `in_ring` is one that is in the ring.
bool is_consistent(const contexts& c, const held_context& in_ring) noexcept;

// pay_switch() passes the time of a switch where time is virtual.
void pay_switch(contexts& c) noexcept;

// start_another() starts another context if there seems to be a task for it.
void start_another(contexts& c) noexcept;
// start_tasks() starts a context that takes tasks; false when there is none.
bool start_tasks(contexts& c) noexcept;
// tell_ends_aside() is for a task that polls or waits: it tells ends on another stack, because a
// callback may wait for this task. If no context is left, it tells them on this stack.
void tell_ends_aside(contexts& c) noexcept;

// wake_waiters() puts contexts whose wait is over into the ring.
void wake_waiters(contexts& c) noexcept;
// revive() puts the context that has waited longest into the ring, to look. Precondition: there is
// one.
void revive(contexts& c) noexcept;
// suspend() takes the caller out of the ring until its wait is over or it is to look. Precondition:
// the ring has others.
void suspend(contexts& c, awaited& what, std::uint64_t deadline_ns) noexcept;

// let_others_run() lets all others in the ring run; give_way() first starts another one, if that
// may help. Both return when this context is next again; at once in a task whose stack is not left.
inline void let_others_run(contexts& c) noexcept {
  held_context& next = *c.current->next;
  if (&next == c.current || c.self->staying != 0) return;
  if (c.virtual_time) [[unlikely]]
    pay_switch(c);
  switch_to(c, next);
}
inline void give_way(contexts& c) noexcept {
  if (c.waiting != nullptr) [[unlikely]]
    wake_waiters(c);
  if (c.live < c.limit) start_another(c);
  let_others_run(c);
}

// take_turns() is for a context between two tasks: contexts whose wait is over, and those that
// yield, go on first.
inline void take_turns(participant& self) noexcept {
  if (self.contexts == nullptr) return;
  contexts& c = *self.contexts;
  if (c.waiting != nullptr) wake_waiters(c);
  // They may take long.
  if (c.live > 1 && self.aside.ended_pieces != 0) count_ended_pieces(*c.engine, self);
  let_others_run(c);
}

// start_thread() lets a context of this participant run `t`; false when all are in use.
bool start_thread(contexts& c, task_thread& t) noexcept;

// finish_other_contexts() runs them until they have ended their tasks. It takes no other task,
// unless nobody does.
void finish_other_contexts(engine& e, participant& self) noexcept;

// start_prefetch() asks for the first lines, await_tag() for the rest.
[[gnu::always_inline]] inline void prefetch_burst(transfer& t) noexcept {
  // a core asks for 8 to 10 at once; more stall
  constexpr std::size_t burst_bytes = 8 * line_bytes;
  const char* const burst_end = smaller(t.end, t.next + burst_bytes);
  for (; t.next < burst_end; t.next += line_bytes) __builtin_prefetch(t.next, 0, 3);
}
[[gnu::always_inline]] inline void start_prefetch(transfer& t, const char* from,
                                                  std::size_t bytes) noexcept {
  t.next =
      reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(from) & ~(line_bytes - 1));
  t.end = from + bytes;
  prefetch_burst(t);
}

// await_tag() returns when the transfers of a task's tag are over. Precondition: it is pending.
void await_copies(contexts& c, transfer_set& set, unsigned tag) noexcept;
inline void await_tag(contexts& c, transfer_set& set, unsigned tag) noexcept {
  LEV_DCHECK(tag < task_tags && (set.pending & 1u << tag) != 0);
  set.pending &= ~(1u << tag);
  if (c.copies) return await_copies(c, set, tag);
  give_way(c);
  for (transfer& t = set.tags[tag]; t.next < t.end; give_way(c)) prefetch_burst(t);
}

// find_buffer() is the buffer of a tag, of at least `bytes`; null when there is no memory.
char* find_buffer(participant& self, transfer& t, std::size_t bytes) noexcept;
// make_transfers() gives the running task its tags; null when there is no memory. end_transfers()
// waits for pending transfers and takes the tags back.
transfer_set* make_transfers(contexts& c) noexcept;
void end_transfers(participant& self, job& j) noexcept;

}  // namespace lev
