// contexts: the flows of control that one participant holds, so that a task that waits gives way to
// another one of the same worker instead of leaving the worker idle (CellMT, section 3).
//
// Number 0 is the participant's own stack, as it was before; the others are opened when they are
// first needed, and kept. The live ones form a ring and take turns:
//
//     main -> a task that waits -> one that waits, too -> main
//
// give_way() hands the turn to the next in the ring. If there is less company than the limit and
// work in the queues, it first starts another context, which takes tasks like a worker does, until
// there are none; then it leaves the ring, keeping its stack.
//
// Everything here belongs to the thread that runs the participant; nothing is shared.
#ifndef LEVERET_WORKER_CONTEXTS_HPP
#define LEVERET_WORKER_CONTEXTS_HPP

#include "context/context.hpp"
#include "worker/engine.hpp"

#include <leveret/this_task.hpp>

namespace lev {

struct contexts;

struct held_context {
  context flow;  // of number 0: the participant's own stack
  contexts* home = nullptr;
  held_context* next = nullptr;  // in the ring while live, else in the list of free ones
  std::uint32_t number = 0;
  std::uint32_t nest = 0;  // the participant's, while this context is suspended
  job* running = nullptr;
  task_thread* thread = nullptr;            // what it runs instead of tasks
  std::uint64_t deadline_ns = no_deadline;  // while it is one of those that sleep together
};

// One tag of a task: what was asked for under it.
struct transfer {
  const char* next = nullptr;  // in place: lines still to be prefetched, to `end`
  const char* end = nullptr;
  char* buffer = nullptr;  // copied: where the data goes
  std::size_t buffer_bytes = 0;
  bool is_spill = false;  // the buffer found no room in the local store
};

// The tags of one task that gets or puts data itself.
struct transfer_set {
  transfer tags[task_tags];
  std::uint32_t pending = 0;      // one bit a tag
  std::uint32_t tag_base = 0;     // of the machine's tags
  transfer_set* below = nullptr;  // list of free ones
};

struct contexts {
  engine* home = nullptr;
  participant* self = nullptr;
  held_context* current = nullptr;
  std::uint32_t live = 1;
  std::uint32_t limit = 1;      // contexts that may take tasks; see choose_limit()
  std::uint32_t limit_max = 1;  // the most of any kind
  bool is_automatic = true;
  bool is_leaving = false;  // no context but the first takes another task
  bool copies = false;      // get() and put() copy; else they prefetch
  bool virtual_time = false;
  std::uint32_t asleep = 0;  // contexts that would sleep if all others did
  std::uint32_t wakes = 0;   // how often they have slept together
  // What `limit` was chosen for: the size of a get(), and of the memory it is from.
  std::size_t chosen_bytes = 0;
  std::size_t chosen_from_bytes = 0;
  held_context* free = nullptr;
  transfer_set* free_sets = nullptr;
  std::uint32_t sets = 0;
  held_context all[contexts_max];
};

// contexts_of() returns the participant's contexts, made at the first call; null when there is no
// memory for them.
contexts* contexts_of(participant& self) noexcept;
void close_contexts(participant& self) noexcept;

inline bool has_company(const participant& self) noexcept {
  return self.held != nullptr && self.held->live > 1;
}

// switch_to() is for those below: goes on with `to`, until somebody switches back.
inline void switch_to(contexts& c, held_context& to) noexcept {
  held_context& from = *c.current;
  participant& self = *c.self;
  from.running = self.running;
  from.nest = self.nest;
  self.running = to.running;
  self.nest = to.nest;
  c.current = &to;
  context::switch_to(from.flow, to.flow);
}

// pay_switch() is what a switch costs where time is virtual.
void pay_switch(contexts& c) noexcept;

// start_company() starts another context if there seems to be a task for it.
void start_company(contexts& c) noexcept;

// pass_turn() lets all others have their turn; give_way() starts another one before if that may
// help. Both return when it is this context's turn again.
inline void pass_turn(contexts& c) noexcept {
  held_context& next = *c.current->next;
  if (&next == c.current) return;
  if (c.virtual_time) [[unlikely]]
    pay_switch(c);
  switch_to(c, next);
}
inline void give_way(contexts& c) noexcept {
  if (c.live < c.limit) start_company(c);
  pass_turn(c);
}

// start_thread() lets a context of this participant run `t`; false when all are in use.
bool start_thread(contexts& c, task_thread& t) noexcept;

// finish_company() runs the other contexts until they have ended their tasks.
void finish_company(engine& e, participant& self) noexcept;

// start_prefetch() asks for the first lines, await_tag() for the rest.
[[gnu::always_inline]] inline void prefetch_burst(transfer& t) noexcept {
  constexpr std::size_t burst_bytes =
      8 * line_bytes;  // more stall on the fill buffers (FIGURES 10)
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
  set.pending &= ~(1u << tag);
  if (c.copies) return await_copies(c, set, tag);
  give_way(c);
  for (transfer& t = set.tags[tag]; t.next < t.end; give_way(c)) prefetch_burst(t);
}

// find_buffer() is the buffer of a tag, of at least `bytes`; null when there is no memory.
char* find_buffer(participant& self, transfer& t, std::size_t bytes) noexcept;
// make_transfers() gives the running task its tags; null when there is no memory. end_transfers()
// waits for what is pending and takes them back.
transfer_set* make_transfers(contexts& c) noexcept;
void end_transfers(participant& self, job& j) noexcept;

}  // namespace lev

#endif
