// Contexts of a worker: starting, taking turns, waiting for transfers. See contexts.hpp.
#include "worker/contexts.hpp"

#include "context/overflow.hpp"
#include "worker/execute.hpp"
#include "worker/idle.hpp"
#include "worker/serve.hpp"
#include "worker/stage.hpp"
#include "worker/worker.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace lev {

namespace {

// The first of the machine's tags are the pipeline's.
constexpr std::uint32_t first_task_tag = 64;
static_assert(ahead_max + contexts_max <= first_task_tag);  // a frame's number is its tag
static_assert(task_tags <= 32);                             // bits of transfer_set::pending

// Puts a context into the ring, with the next turn.
void enter_ring(contexts& c, held_context& h) noexcept {
  LEV_DCHECK(&h != c.current && h.owner == &c && c.live < contexts_max);
  h.next = c.current->next;
  c.current->next = &h;
  ++c.live;
}

// Called before number 0 starts another context. Number 0 is the stack of the current thread, and
// host threads come and go.
void adopt_own_stack(contexts& c) noexcept {
  if (has_other_contexts(*c.self)) return;
  LEV_DCHECK(c.current == &c.all[0]);
  c.current->own.stand_for_caller();
  prepare_for_overflow();
}

// Takes a context out of the ring; returns the one that has the next turn.
held_context& unlink(contexts& c, held_context& h) noexcept {
  LEV_DCHECK(c.live > 1);
  held_context* before = &h;
  while (before->next != &h) before = before->next;
  before->next = h.next;
  --c.live;
  return *h.next;
}

void leave_ring(contexts& c, held_context& h) noexcept {
  if (c.live == 1) revive(c);
  LEV_DCHECK(&h != &c.all[0] && h.thread == nullptr && h.what == nullptr);
  held_context& to = unlink(c, h);
  h.took_one = false;
  h.next = c.free;
  c.free = &h;
  --c.self->aside.other_contexts;
  LEV_DCHECK(is_consistent(c, to));
  switch_to(c, to);
}

bool takes_another(contexts& c) noexcept {
  if (!c.is_leaving) return c.live <= c.limit;
  return std::exchange(c.takes_one, false) && (c.current->took_one = true);
}

void run_tasks(contexts& c) noexcept {
  engine& e = *c.engine;
  participant& self = *c.self;
  if (owes_ends(self)) {
    tell_ends(e, self);
    take_turns(self);  // the context that told them may have a task
  }
  while (takes_another(c) && run_one(e, self)) take_turns(self);
  settle(e, self);
}

void run_context(void* argument) {
  held_context& h = *static_cast<held_context*>(argument);
  contexts& c = *h.owner;
  for (;;) {
    restore_float_mode(c.self->float_mode);
    if (h.thread != nullptr) {
      h.thread->run();
      h.thread = nullptr;
    } else {
      run_tasks(c);
    }
    leave_ring(c, h);
  }
}

// Contexts that were in use before come first. If there is no memory for another stack, no more
// contexts are opened from then on: a waiter that counted on one would wait for ever.
held_context* take_free(contexts& c) noexcept {
  held_context* h = c.free;
  if (h == nullptr) return nullptr;
  if (!h->own.is_open() && !h->own.open(c.engine->settings.context_stack_bytes, &run_context, h)) {
    for (; c.free != nullptr; c.free = c.free->next) ++c.lacking;
    return nullptr;
  }
  c.free = h->next;
  adopt_own_stack(c);
  ++c.self->aside.other_contexts;
  return h;
}

// Whether another context could take a task, as far as this one can see.
bool has_task_near(contexts& c) noexcept {
  scheduler& sched = c.engine->sched;
  participant& self = *c.self;
  return self.ahead_count != 0 || !self.inbox.looks_empty() ||
         self.mailbox.has_letter(self.letters_seen) || !sched.ready().looks_empty() ||
         sched.has_waiting();
}

// The inboxes of others are checked now and then: their owners may have no context left to run the
// tasks in them.
bool has_task(contexts& c) noexcept {
  constexpr std::uint32_t turns_per_far_look = 64;
  return has_task_near(c) ||
         (++c.far_turns % turns_per_far_look == 0 && has_work(*c.engine, *c.self));
}

// Those that waited are in the ring again.
void end_waiting(contexts& c, held_context& h) noexcept {
  LEV_DCHECK(h.what != nullptr && c.waiting_count != 0);
  h.what = nullptr;
  --c.waiting_count;
  LEV_DCHECK(h.deadline_ns == no_deadline || c.timed_count != 0);
  if (h.deadline_ns != no_deadline) --c.timed_count;
  enter_ring(c, h);
}

bool is_over(contexts& c, const transfer_set& set, unsigned tag) noexcept {
  return c.engine->machine->is_tag_done(set.tag_base + tag);
}

// Whether a context has still a task that it had when the host began to leave.
bool has_earlier_task(const contexts& c) noexcept {
  const auto is_one = [&c](const held_context* h) noexcept {
    return h != &c.all[0] && !h->took_one;
  };
  for (const held_context* h = c.current->next; h != c.current; h = h->next) {
    if (is_one(h)) return true;
  }
  for (const held_context* h = c.waiting; h != nullptr; h = h->next) {
    if (is_one(h)) return true;
  }
  return false;
}

// Notices tasks that nobody takes. The other participants may have no context left for them. The
// other contexts of a leaving host may poll, or wait in another runtime, for what needs any of
// them. A task that the host takes then has such a context, too, and may need others; but that is
// rare, and the host must leave.
class untaken {
 public:
  // Whether some are queued, none has ended for long, and none was taken here.
  bool are_there(engine& e, participant& self) noexcept {
    constexpr std::uint64_t patience_ns = 100'000'000;
    constexpr std::uint64_t patience_with_others_ns = 1'000'000'000;
    const std::uint64_t now_ns = e.machine->now_ns();
    const std::uint64_t ended = count_ends(e);
    const bool was_quiet = since_ns_ != 0 && ended == ended_ && has_work(e, self);
    const bool has_first = was_quiet && has_earlier_task(*self.contexts);
    const bool is_due =
        was_quiet && now_ns - since_ns_ >= (has_first ? patience_ns : patience_with_others_ns);
    if (was_quiet && !is_due) return false;
    ended_ = ended;
    since_ns_ = now_ns;
    return is_due;
  }

 private:
  std::uint64_t ended_ = 0;
  std::uint64_t since_ns_ = 0;  // 0: nobody has looked yet
};

void free_buffer(participant& self, transfer& t) noexcept {
  if (t.buffer == nullptr) return;
  if (t.is_spill) {
    std::free(t.buffer);
  } else {
    self.store_map.release(static_cast<std::size_t>(t.buffer - self.store));
  }
  t = {};
}

}  // namespace

bool is_consistent(const contexts& c, const held_context& in_ring) noexcept {
  std::uint32_t ring = 1;
  for (const held_context* h = in_ring.next; h != &in_ring && ring <= contexts_max; h = h->next)
    ++ring;
  std::uint32_t waiting = 0;
  std::uint32_t timed = 0;
  const held_context* last = nullptr;
  for (const held_context* h = c.waiting; h != nullptr && waiting <= contexts_max; h = h->next) {
    ++waiting;
    if (h->deadline_ns != no_deadline) ++timed;
    last = h;
  }
  std::uint32_t unused = 0;
  for (const held_context* h = c.free; h != nullptr && unused <= contexts_max; h = h->next)
    ++unused;
  return ring == c.live && waiting == c.waiting_count && timed == c.timed_count &&
         c.self->aside.other_contexts == ring + waiting - 1 && last == c.last_waiting &&
         ring + waiting + unused + c.lacking == contexts_max;
}

contexts* contexts_of(participant& self) noexcept {
  if (self.contexts != nullptr || !self.engine->has_contexts) return self.contexts;
  auto* c = new (std::nothrow) contexts;
  if (c == nullptr) return nullptr;
  c->engine = self.engine;
  c->self = &self;
  const std::uint32_t wanted = self.engine->settings.contexts;
  c->is_automatic = wanted == 0;
  c->copies = self.engine->copies.all;
  c->virtual_time = self.engine->caps.virtual_time;
  c->limit_max = c->limit = wanted == 0 ? contexts_max : wanted;
  for (std::uint32_t i = contexts_max; i-- > 0;) {
    held_context& h = c->all[i];
    h.owner = c;
    h.number = i;
    h.next = c->free;
    if (i != 0) c->free = &h;
  }
  c->current = &c->all[0];
  c->current->next = c->current;
  LEV_DCHECK(is_consistent(*c, *c->current) && c->limit_max <= contexts_max);
  return self.contexts = c;
}

void close_contexts(participant& self) noexcept {
  if (self.contexts == nullptr) return;
  // Otherwise a stack would be unmapped with a task on it.
  LEV_ASSERT(!has_other_contexts(self) && self.contexts->current == &self.contexts->all[0]);
  while (transfer_set* set = self.contexts->free_sets) {
    self.contexts->free_sets = set->below;
    delete set;
  }
  delete self.contexts;
  self.contexts = nullptr;
}

void pay_switch(contexts& c) noexcept {
  c.engine->machine->pay_switch();
}

bool start_tasks(contexts& c) noexcept {
  held_context* h = c.self->staying == 0 ? take_free(c) : nullptr;
  if (h == nullptr) return false;
  h->running = nullptr;
  h->nest = 0;
  enter_ring(c, *h);
  LEV_DCHECK(is_consistent(c, *c.current));
  return true;
}

void start_another(contexts& c) noexcept {
  if (!c.is_leaving && has_task(c)) start_tasks(c);
}

void tell_ends_aside(contexts& c) noexcept {
  if (start_tasks(c)) return let_others_run(c);
  tell_ends(*c.engine, *c.self);
}

bool start_thread(contexts& c, task_thread& t) noexcept {
  held_context* h = c.live < c.limit_max && c.self->staying == 0 ? take_free(c) : nullptr;
  if (h == nullptr) return false;
  h->thread = &t;
  t.id_ = h->number;
  h->running = c.self->running;
  h->nest = c.self->nest;
  enter_ring(c, *h);
  LEV_DCHECK(is_consistent(c, *c.current));
  return true;
}

void wake_waiters(contexts& c) noexcept {
  const std::uint64_t now_ns = c.timed_count == 0 ? 0 : c.engine->machine->now_ns();
  held_context** link = &c.waiting;
  held_context* before = nullptr;
  while (held_context* h = *link) {
    if (!h->what->is_there() && h->deadline_ns > now_ns) {
      before = h;
      link = &h->next;
      continue;
    }
    *link = h->next;
    if (c.last_waiting == h) c.last_waiting = before;
    end_waiting(c, *h);
  }
  LEV_DCHECK(is_consistent(c, *c.current));
}

void revive(contexts& c) noexcept {
  held_context* h = c.waiting;
  LEV_ASSERT(h != nullptr);
  c.waiting = h->next;
  if (c.waiting == nullptr) c.last_waiting = nullptr;
  end_waiting(c, *h);
}

void suspend(contexts& c, awaited& what, std::uint64_t deadline_ns) noexcept {
  held_context& own = *c.current;
  LEV_DCHECK(own.what == nullptr && c.live > 1);
  own.what = &what;
  own.deadline_ns = deadline_ns;
  if (c.virtual_time) pay_switch(c);
  held_context& to = unlink(c, own);
  own.next = nullptr;
  (c.last_waiting == nullptr ? c.waiting : c.last_waiting->next) = &own;
  c.last_waiting = &own;
  ++c.waiting_count;
  if (deadline_ns != no_deadline) ++c.timed_count;
  LEV_DCHECK(is_consistent(c, to));
  switch_to(c, to);
  LEV_DCHECK(c.current == &own && own.what == nullptr);
}

void finish_other_contexts(engine& e, participant& self) noexcept {
  contexts& c = *self.contexts;
  LEV_DCHECK(c.current == &c.all[0] && !c.is_leaving && self.running == nullptr);
  c.is_leaving = true;
  untaken queued;
  while (has_other_contexts(self)) {
    if (c.waiting != nullptr) wake_waiters(c);
    if (queued.are_there(e, self)) c.takes_one = start_tasks(c);
    if (c.live == 1) idle_for_other_contexts(e, self);
    let_others_run(c);
  }
  c.is_leaving = c.takes_one = false;
}

void await_copies(contexts& c, transfer_set& set, unsigned tag) noexcept {
  give_way(c);
  while (c.live > 1 && c.self->staying == 0 && !is_over(c, set, tag)) give_way(c);
  c.engine->machine->wait_tag(set.tag_base + tag);
}

char* find_buffer(participant& self, transfer& t, std::size_t bytes) noexcept {
  if (t.buffer_bytes >= bytes && t.buffer != nullptr) return t.buffer;
  free_buffer(self, t);
  if (!open_local_store(*self.engine, self)) return nullptr;
  const std::size_t offset = self.store_map.allocate(bytes);
  t.is_spill = offset == arena::none;
  t.buffer = t.is_spill ? static_cast<char*>(std::aligned_alloc(arena::alignment,
                                                                round_up(bytes, arena::alignment)))
                        : self.store + offset;
  t.buffer_bytes = bytes;
  return t.buffer;
}

transfer_set* make_transfers(contexts& c) noexcept {
  transfer_set* set = c.free_sets;
  if (set != nullptr) {
    c.free_sets = set->below;
  } else if ((set = new (std::nothrow) transfer_set) != nullptr) {
    set->tag_base = first_task_tag + c.sets++ * task_tags;
  }
  LEV_DCHECK(set == nullptr || set->pending == 0);
  LEV_DCHECK(!c.self->running->has_transfers);
  c.self->running->has_transfers = set != nullptr;
  return c.self->running->transfers = set;
}

void end_transfers(participant& self, job& j) noexcept {
  transfer_set& set = *j.transfers;
  const bool copies = self.engine->copies.all;
  for (unsigned tag = 0; copies && tag < task_tags; ++tag) {
    if ((set.pending & 1u << tag) != 0) self.engine->machine->wait_tag(set.tag_base + tag);
    free_buffer(self, set.tags[tag]);
  }
  set.pending = 0;
  if (std::exchange(set.stays, false)) --self.staying;
  set.below = self.contexts->free_sets;
  self.contexts->free_sets = &set;
  j.has_transfers = false;
}

}  // namespace lev
