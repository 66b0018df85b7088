// Contexts of a worker: starting, taking turns, transfers that are waited for. See contexts.hpp.
#include "worker/contexts.hpp"

#include "context/overflow.hpp"
#include "worker/execute.hpp"
#include "worker/idle.hpp"
#include "worker/stage.hpp"
#include "worker/worker.hpp"

#include <cstdlib>
#include <new>

namespace lev {

namespace {

// What a switch costs on a machine with virtual time (CellMT section 5.1: 170 to 180 cycles).
constexpr std::uint64_t switch_cycles = 175;

// Of the machine's tags the first are the pipeline's.
constexpr std::uint32_t first_task_tag = 64;

// Into the ring, with the next turn.
void enter_ring(contexts& c, held_context& h) noexcept {
  h.next = c.current->next;
  c.current->next = &h;
  ++c.live;
}

// The first company of number 0, which is the stack of the thread that is here now: host threads
// come and go.
void adopt_own_stack(contexts& c) noexcept {
  if (has_company(*c.self)) return;
  LEV_DCHECK(c.current == &c.all[0]);
  c.current->flow.stand_for_caller();
  prepare_for_overflow();
}

// Out of the ring; returns who has the next turn.
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
  held_context& to = unlink(c, h);
  h.next = c.free;
  c.free = &h;
  switch_to(c, to);
}

void run_tasks(contexts& c) noexcept {
  engine& e = *c.home;
  participant& self = *c.self;
  while (!c.is_leaving && c.live <= c.limit && run_one(e, self)) take_turns(self);
  settle(e, self);
}

void run_context(void* argument) {
  held_context& h = *static_cast<held_context*>(argument);
  contexts& c = *h.home;
  for (;;) {
    if (float_mode() != c.self->float_mode) set_float_mode(c.self->float_mode);
    if (h.thread != nullptr) {
      h.thread->run();
      h.thread = nullptr;
    } else {
      run_tasks(c);
    }
    leave_ring(c, h);
  }
}

held_context* take_free(contexts& c) noexcept {
  held_context* h = c.free;
  if (h == nullptr) return nullptr;
  if (!h->flow.is_open() && !h->flow.open(c.home->settings.context_stack_bytes, &run_context, h))
    return nullptr;
  c.free = h->next;
  adopt_own_stack(c);
  return h;
}

// What another context could take, as far as can be seen from here.
bool has_task_near(contexts& c) noexcept {
  scheduler& sched = c.home->sched;
  participant& self = *c.self;
  return self.ahead_count != 0 || !self.box.looks_empty() || self.mail.has_letter(self.mail_seen) ||
         !sched.ready().looks_empty() || sched.has_waiting();
}

// The inboxes of others are looked at now and then: their owners may have no context left to run
// what is in there.
bool has_task(contexts& c) noexcept {
  constexpr std::uint32_t turns_per_far_look = 64;
  return has_task_near(c) ||
         (++c.far_turns % turns_per_far_look == 0 && has_work(*c.home, *c.self));
}

// Those that waited are in the ring again.
void end_waiting(contexts& c, held_context& h) noexcept {
  LEV_DCHECK(h.what != nullptr && c.waiting_count != 0);
  h.what = nullptr;
  --c.waiting_count;
  if (h.deadline_ns != no_deadline) --c.timed_count;
  enter_ring(c, h);
}

bool is_over(contexts& c, const transfer_set& set, unsigned tag) noexcept {
  return c.home->place->is_tag_done(set.tag_base + tag);
}

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

contexts* contexts_of(participant& self) noexcept {
  if (self.held != nullptr) return self.held;
  auto* c = new (std::nothrow) contexts;
  if (c == nullptr) return nullptr;
  c->home = self.home;
  c->self = &self;
  const std::uint32_t wanted = self.home->settings.contexts;
  c->is_automatic = wanted == 0;
  c->copies = self.home->copies.all;
  c->virtual_time = self.home->caps.virtual_time;
  c->limit_max = c->limit = wanted == 0 ? contexts_max : wanted;
  for (std::uint32_t i = contexts_max; i-- > 0;) {
    held_context& h = c->all[i];
    h.home = c;
    h.number = i;
    h.next = c->free;
    if (i != 0) c->free = &h;
  }
  c->current = &c->all[0];
  c->current->next = c->current;
  return self.held = c;
}

void close_contexts(participant& self) noexcept {
  if (self.held == nullptr) return;
  while (transfer_set* set = self.held->free_sets) {
    self.held->free_sets = set->below;
    delete set;
  }
  delete self.held;
  self.held = nullptr;
}

void pay_switch(contexts& c) noexcept {
  c.home->place->cost(switch_cycles);
}

bool start_tasks(contexts& c) noexcept {
  held_context* h = take_free(c);
  if (h == nullptr) return false;
  h->running = nullptr;
  h->nest = 0;
  enter_ring(c, *h);
  return true;
}

void start_company(contexts& c) noexcept {
  if (!c.is_leaving && has_task(c)) start_tasks(c);
}

bool start_thread(contexts& c, task_thread& t) noexcept {
  held_context* h = c.live < c.limit_max ? take_free(c) : nullptr;
  if (h == nullptr) return false;
  h->thread = &t;
  t.id_ = h->number;
  h->running = c.self->running;
  h->nest = c.self->nest;
  enter_ring(c, *h);
  return true;
}

void wake_waiters(contexts& c) noexcept {
  const std::uint64_t now_ns = c.timed_count == 0 ? 0 : c.home->place->now_ns();
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
  own.what = &what;
  own.deadline_ns = deadline_ns;
  if (c.virtual_time) pay_switch(c);
  held_context& to = unlink(c, own);
  own.next = nullptr;
  (c.last_waiting == nullptr ? c.waiting : c.last_waiting->next) = &own;
  c.last_waiting = &own;
  ++c.waiting_count;
  if (deadline_ns != no_deadline) ++c.timed_count;
  switch_to(c, to);
}

void finish_company(engine& e, participant& self) noexcept {
  contexts& c = *self.held;
  c.is_leaving = true;
  while (has_company(self)) {
    if (c.waiting != nullptr) wake_waiters(c);
    if (c.live == 1) idle_for_company(e, self);
    pass_turn(c);
  }
  c.is_leaving = false;
}

void await_copies(contexts& c, transfer_set& set, unsigned tag) noexcept {
  give_way(c);
  while (c.live > 1 && !is_over(c, set, tag)) give_way(c);
  c.home->place->wait_tag(set.tag_base + tag);
}

char* find_buffer(participant& self, transfer& t, std::size_t bytes) noexcept {
  if (t.buffer_bytes >= bytes && t.buffer != nullptr) return t.buffer;
  free_buffer(self, t);
  if (!open_local_store(*self.home, self)) return nullptr;
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
  return c.self->running->transfers = set;
}

void end_transfers(participant& self, job& j) noexcept {
  transfer_set& set = *j.transfers;
  const bool copies = self.home->copies.all;
  for (unsigned tag = 0; copies && tag < task_tags; ++tag) {
    if ((set.pending & 1u << tag) != 0) self.home->place->wait_tag(set.tag_base + tag);
    free_buffer(self, set.tags[tag]);
  }
  set.pending = 0;
  set.below = self.held->free_sets;
  self.held->free_sets = &set;
  j.transfers = nullptr;
}

}  // namespace lev
