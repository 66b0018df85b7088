// submit: admission, and the direct path.
//
//   1. validate the draft; refuse with the argument's name
//   2. take a slot, the bound on tasks in flight, and an edge for each predecessor (none free:
//      help, wait or fail); count the task
//   3. write the task into its slot
//   4. predecessors and mutexes, if any: the last one to end starts the task
//   5. an idle worker: straight into its mailbox; else enqueue (worker/enqueue.hpp)
//
// A task without options, with plain arguments (task/plain.hpp), takes the same steps in one
// straight line, submit() (straight.cpp) or submit_plainly(): all choices were made when the
// runtime was opened and the procedure defined.
//
// Papers: gcell 3.2 (submit_job: sanity check, then append), TPC 3.2 (direct path).
#include "runtime/submit.hpp"

#include "runtime/admit.hpp"
#include "task/arguments.hpp"
#include "task/plain.hpp"
#include "worker/batch.hpp"
#include "worker/contexts.hpp"
#include "worker/serve.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev::detail {

namespace {

// Sends the task to a worker that seems to poll for it. False: it does not, or has a letter.
[[gnu::noinline]] bool send_direct(runtime_state& c, participant& self, std::uint32_t task,
                                   const draft& d, participant& worker) noexcept {
  if (!worker.mailbox.try_lease(self.index + 1)) return false;
  // Pairs with the worker's turn to other work, and with its going to sleep. Sequentially
  // consistent: comes after the lease.
  if (c.doorbell.sleeps(worker.index) || worker.is_mailbox_open.load(memory_order_seq_cst) == 0) {
    worker.mailbox.retract();
    return false;
  }
  slot& s = c.task_slots.at(task);
  LEV_DCHECK(s.mailbox.load(memory_order_relaxed) == 0);
  LEV_DCHECK((s.flags & (task_detached | task_is_piece)) == 0);
  s.mailbox.store(static_cast<std::uint8_t>(worker.index + 1), memory_order_relaxed);
  letter l;
  l.task = task;
  l.generation = s.state.generation();
  l.procedure = d.procedure;
  l.argument_count = d.argument_count;
  l.flags = s.flags;
  for (unsigned i = 0; i < l.carried(); ++i) l.arguments[i] = d.arguments[i];
  worker.mailbox.deliver(l);
  self.counters.direct.add(1);
  return true;
}

}  // namespace

// Sends the task to a worker that polls for it. False: there is none. A sleeping worker takes long
// to wake, and a letter is for it alone: then the ready queue is better, where a waiting host finds
// the task itself.
bool send_to_poller(runtime_state& c, participant& self, std::uint32_t task,
                    const draft& d) noexcept {
  participant* const end = c.participants + c.mailboxes;
  for (participant* p = c.participants; p != end; ++p) {
    // A hint: it costs no transfer of a line while nothing changes.
    if (p->is_mailbox_open.load(memory_order_relaxed) != 0 && send_direct(c, self, task, d, *p))
      return true;
  }
  return false;
}

namespace {

[[gnu::cold, gnu::noinline]] void refuse_late(runtime_state& c, participant& self,
                                              std::uint32_t task) noexcept {
  refusal unused;
  count_out(c, self, task, &unused);
}

inline bool try_direct(runtime_state& c, participant& self, std::uint32_t task,
                       const draft& d) noexcept {
  if (self.letters_left == 0) return false;
  --self.letters_left;
  return send_to_poller(c, self, task, d);
}

// Predecessors: the task starts when the last of them, or this submit, lets go of it. False: since
// check_after() another thread has consumed one of the tickets, and the outcome of that task is not
// known here. Then the submit is refused, and the last to let go frees the slot.
bool start_after(runtime_state& c, participant& self, std::uint32_t task,
                 const std::uint64_t* after, const edge_list& edges, refusal* why) noexcept {
  const std::uint32_t count = edges.count;
  slot_extra& extra = c.task_slots.extra(task);
  extra.first_failure.store(0, memory_order_relaxed);
  extra.predecessors.store(count + 1, memory_order_relaxed);
  extra.is_withdrawn = false;
  std::uint32_t own = 1;  // the part of the count that no predecessor counts down
  std::uint32_t i = 0;
  for (; i < count; ++i) {
    const std::uint32_t other = ticket_task(after[i]);
    const std::uint32_t generation = ticket_generation(after[i]);
    slot& s = c.task_slots.at(other);
    if (c.edges.add(s, c.task_slots.extra(other), generation, edges.nodes[i], task)) continue;
    const status outcome = s.state.peek(generation);
    if (outcome == status::stale_ticket) break;
    if (outcome != status::ok)
      extra.first_failure.store(static_cast<std::uint32_t>(outcome), memory_order_relaxed);
    give_edge(c, self, edges.nodes[i]);
    ++own;
  }
  const bool is_accepted = i == count;
  LEV_DCHECK(own >= 1 && own <= count + 1);
  if (!is_accepted) {
    give_edges(c, self, edges, i, count);
    extra.is_withdrawn = true;
    own += count - i;
  }
  // Pairs with serve_dependants(): the last one to let go starts the task.
  const std::uint32_t before = extra.predecessors.fetch_sub(own, memory_order_acq_rel);
  LEV_DCHECK(before >= own);
  if (before == own) start(c, self, task);
  return is_accepted || refuse_after(status::stale_ticket, i, why);
}

inline void route(runtime_state& c, participant& self, std::uint32_t task,
                  const draft& d) noexcept {
  const std::uint8_t flags = c.task_slots.at(task).flags;
  LEV_DCHECK((flags & (task_is_piece | task_is_join | task_has_locks)) == 0);
  const bool plain =
      (flags & (task_detached | task_diceable | task_too_big)) == 0 && self.running == nullptr;
  if (plain && !c.sched.has_filters() && try_direct(c, self, task, d)) return;
  enqueue(c, self, task);
}

// A host's submit may fail tasks at once: one that follows a failed one, or those that a pass could
// not dice. `completed` is its count of ends before.
inline void tell_of_failures(runtime_state& c, participant& self,
                             std::uint64_t completed) noexcept {
  const bool has_ended = owes_others(self) || self.counters.completed.read() != completed;
  if (has_ended && self.running == nullptr) tell_of_help(c, self);
}

// Whether a host may give the task its own turn now, and has nothing else to bring to an end. `by`
// is the task that it runs.
inline bool is_free_host(const runtime_state& c, const participant& self, const job* by) noexcept {
  return by == nullptr && c.closing.load(memory_order_relaxed) == 0 && owes_nothing(self);
}

// A host that is ahead by all tickets runs the task itself, in its own slot (README.md). It runs
// the next posts at once, too, before it looks for a ticket again, because that look reads lines
// that the workers write. It runs fewer than would leave a worker without a task, and none while
// one has none. 0: the task must be queued after all.
constexpr std::uint32_t at_once_max = 32;
[[gnu::noinline]] std::uint64_t run_at_once(runtime_state& c, participant& self,
                                            const draft& d) noexcept {
  const bool may_run = c.settings.full == when_full::help && !self.is_worker &&
                       !c.sched.has_filters() && is_free_host(c, self, self.running) &&
                       (current_actor() == nullptr || !is_guest(c, self));
  if (!may_run) return 0;
  std::uint32_t left = std::exchange(self.posts_at_once, 0);
  // An idle worker could have the task, but only if there is a ticket for it.
  if (left != 0 && c.doorbell.someone_idle()) left = 0;
  const bool is_ahead = left != 0 || c.task_slots.looks_exhausted();
  if (!is_ahead) return 0;
  const std::uint32_t task = c.task_slots.try_take_own(self.index - c.first_host);
  if (task == no_slot) return 0;
  self.counters.submitted.add(1);
  if (is_closing(c)) return refuse_late(c, self, task), 0;
  const std::uint32_t most = smaller(at_once_max, c.settings.tickets / (4 * c.workers));
  self.posts_at_once = left != 0 ? left - 1 : most;
  batch::send_all(self);
  const std::uint64_t id = write_slot(c, nullptr, task, d, task_detached);
  help_itself(c, self, task);
  tell_of_help(c, self);
  return id;
}

// Takes a slot for a plain task, counts the task, and returns the number of its ticket. 0: it is
// not one for the straight path, and nothing was done. On such an engine no task is staged ahead,
// and none drains. `by` is the task that submits it, or null.
[[gnu::always_inline]] inline std::uint64_t open_plainly(runtime_state& c, participant& self,
                                                         const job* by, const draft& d,
                                                         std::uint8_t flags) noexcept {
  if (by == nullptr && !is_free_host(c, self, by)) return 0;
  const std::uint32_t task = c.task_slots.try_take(self.free_slots);
  if (task == no_slot) [[unlikely]]
    return 0;
  self.counters.submitted.add(1);
  if (by == nullptr && is_closing(c)) [[unlikely]]
    return refuse_late(c, self, task), 0;
  return write_slot(c, by, task, d, flags);
}

// The straight path. 0: the task must take the long path, and nothing was done.
[[gnu::always_inline]] inline std::uint64_t submit_plainly(runtime_state& c, participant* self,
                                                           const draft& d, bool detached) noexcept {
  if (!c.is_straight || self == nullptr) return 0;
  const procedure_entry* p = find_procedure(d.procedure);
  if (p == nullptr || !passes_plainly(d, *p)) return 0;
  const job* const by = self->running;
  if (detached && self->posts_at_once != 0 && by == nullptr) [[unlikely]]
    return run_at_once(c, *self, d);
  const std::uint64_t id = open_plainly(c, *self, by, d, detached ? task_detached : 0);
  if (id == 0) [[unlikely]]
    return detached ? run_at_once(c, *self, d) : 0;
  route(c, *self, ticket_task(id), d);
  return id;
}

// The straight path of a crew that must be asked what it can do, and whose tasks may have memory to
// be copied. `p` is the task's procedure.
[[gnu::always_inline]] inline std::uint64_t try_elsewhere(runtime_state& c, participant& self,
                                                          const draft& d, bool detached,
                                                          const procedure_entry& p,
                                                          std::uint64_t plain_kinds) noexcept {
  if (!c.asks_crew || self.running != nullptr || !passes_plainly(d, p, plain_kinds) ||
      !c.crew->can_do_plainly(d.procedure))
    return 0;
  std::uint8_t flags = detached ? task_detached : 0;
  if (p.addresses != 0) {
    const std::size_t bytes = staged_bytes(arguments_of(d), c.copies);
    if (bytes > c.settings.local_store_bytes) return 0;
    if (bytes != 0) flags |= task_staged;
  }
  const std::uint64_t id = open_plainly(c, self, nullptr, d, flags);
  if (id != 0) c.crew->send(self, ticket_task(id));
  return id;
}

// The same for a caller and a task of which nothing is known.
[[gnu::always_inline]] inline std::uint64_t find_elsewhere(runtime_state& c, participant* self,
                                                           const draft& d, bool detached) noexcept {
  const procedure_entry* const p = find_procedure(d.procedure);
  if (self == nullptr || p == nullptr) return 0;
  return try_elsewhere(c, *self, d, detached, *p, plain_kinds_unknown);
}

// Instead of a ticket, for a task that has no slot yet.
constexpr std::uint64_t put_off_id = ~std::uint64_t{0};

// When the backlog has as many tasks as there are tickets, a task that posts waits after all, while
// its participant has another context to go on in: it would fill the memory while others could run.
// If that wait was in vain, the others wait for the task itself, and it may post twice as many.
inline bool is_backlog_short(const runtime_state& c, participant& self,
                             const participant& poster) noexcept {
  const bool has_context = poster.contexts == nullptr || poster.contexts->free != nullptr;
  const std::uint64_t size = c.backlog.size();
  if (size < c.settings.tickets) self.backlog_most = c.settings.tickets;
  return !has_context || size < self.backlog_most;
}

// False: there is no memory, or the runtime closes and the caller is in a task of another one.
[[gnu::noinline]] bool push_backlog(runtime_state& c, participant& self, backlog_task& head,
                                    const argument* arguments) noexcept {
  LEV_DCHECK(runs_here(self) && (head.flags & task_detached) != 0);
  const bool is_child = self.running != nullptr;
  if (is_child) {
    head.parent = self.running->task;
    head.parent_generation = generation_of(*self.running);
  }
  self.counters.submitted.add(1);  // before any thread can take it
  if ((!is_child && is_closing(c)) || !c.backlog.push(head, arguments)) {
    self.counters.completed.add(1);
    if (!is_child) leave(c, self);  // close() may wait for that count
    return false;
  }
  wake_worker(c, self);
  return true;
}

}  // namespace

// Friend of lev::options.
struct admission {
  static bool take_options(runtime_state& c, draft& d, const options& o, refusal* why) noexcept {
    if (o.priority_ != 0) d.priority = o.priority_;
    if (o.key_ != 0) d.key = o.key_;
    if (o.grain_ != 0) d.grain = o.grain_;
    return check_after(c, o.after_, o.after_count_, o.is_foreign_to(&c), why) &&
           check_locks(c, o.locks_, o.lock_count_, why) &&
           check_limits(c, o.task_ns_max_, o.max_attempts_, why);
  }
  // A task that posts tasks need not wait for their slots: the posted tasks may lie in the backlog
  // until there are some. If all tasks that run waited for slots, none would ever come.
  static bool fits_backlog(const runtime_state& c, const options* o) noexcept {
    return c.has_contexts && c.settings.full != when_full::fail &&
           (o == nullptr || o->after_count_ == 0);
  }
  static bool put_off(runtime_state& c, participant& self, const draft& d, std::uint8_t flags,
                      const options* o) noexcept {
    backlog_task head;
    static_cast<task_head&>(head) = d;
    head.flags = flags;
    if (o != nullptr && o->lock_count_ != 0) {
      head.flags |= task_has_locks;
      LEV_DCHECK(o->lock_count_ <= mutexes_per_task_max);  // check_locks() has let it pass
      head.lock_count = static_cast<std::uint8_t>(o->lock_count_);
      for (unsigned i = 0; i < head.lock_count; ++i) head.locks[i] = o->locks_[i];
    }
    return push_backlog(c, self, head, d.arguments);
  }
  // After a wait in vain.
  static std::uint64_t put_off_at_last(runtime_state& c, participant& self, const draft& d,
                                       std::uint8_t flags, const options* o,
                                       refusal* why) noexcept {
    self.backlog_most = 2 * c.backlog.size();
    if (put_off(c, self, d, flags, o)) return put_off_id;
    if (self.running == nullptr && is_closing(c)) return refuse_closed(why), 0;
    refuse(why, status::out_of_memory, -1, "there is no memory for tasks beyond the %u tickets",
           c.settings.tickets);
    return 0;
  }
  // A task that is in its slot goes to a queue, or behind those that it waits for. False: it is
  // refused after all (start_after()).
  static bool set_off(runtime_state& c, participant& self, std::uint32_t task, const draft& d,
                      const options* o, const edge_list& edges, refusal* why) noexcept {
    if (o != nullptr && (o->task_ns_max_ != 0 || o->max_attempts_ != 0))
      c.crew->limit(task, o->task_ns_max_, o->max_attempts_);
    if (o == nullptr || (o->after_count_ == 0 && o->lock_count_ == 0)) {
      const std::uint64_t completed = self.counters.completed.read();
      route(c, self, task, d);
      tell_of_failures(c, self, completed);
      return true;
    }
    c.crew->want_ends();
    c.mutexes.note(c.task_slots.extra(task), o->locks_, o->lock_count_);
    if (o->lock_count_ != 0) c.task_slots.at(task).flags |= task_has_locks;
    const bool is_accepted = start_after(c, self, task, o->after_, edges, why);
    leave(c, self);  // it may have failed at once, and others with it
    return is_accepted;
  }
  [[gnu::noinline]] static std::uint64_t admit(runtime_state& c, participant* self, draft d,
                                               const options* o, bool detached, refusal* why,
                                               bool may_wait = true,
                                               std::uint64_t until_ns = no_deadline) noexcept {
    std::uint8_t flags = detached ? task_detached : 0;
    if (!check_open(c, self, why) || (o != nullptr && !take_options(c, d, *o, why)) ||
        !check_draft(c, d, &flags, why))
      return 0;
    edge_list edges;
    if (o != nullptr) edges.count = o->after_count_;
    std::uint32_t task = edges.count == 0 ? c.task_slots.try_take(self->free_slots)
                                          : try_take_room(c, *self, edges, false);
    const bool may_put_off = task == no_slot && detached && fits_backlog(c, o);
    const participant* const poster = may_put_off ? poster_of(c, *self) : nullptr;
    if (poster != nullptr && is_backlog_short(c, *self, *poster) && put_off(c, *self, d, flags, o))
      return put_off_id;
    if (task == no_slot && may_wait) [[unlikely]]
      task = await_slot(c, *self, edges, until_ns);
    if (self->running == nullptr && owes_others(*self)) leave(c, *self);
    if (task == no_slot && poster != nullptr) return put_off_at_last(c, *self, d, flags, o, why);
    if (task == no_slot) return refuse_full(c, *self, edges, why), 0;
    if (!count_in(c, *self, task, why)) return give_edges(c, *self, edges, 0, edges.count), 0;
    const std::uint64_t id = write_slot(c, self->running, task, d, flags);
    return set_off(c, *self, task, d, o, edges, why) ? id : 0;
  }
};

status check_ticket(const runtime_state* c, std::uint64_t id) noexcept {
  if (c == nullptr || id == 0 || static_cast<std::uint32_t>(id) == 0) return status::bad_ticket;
  return ticket_task(id) < c->task_slots.count() ? status::ok : status::bad_ticket;
}

std::uint64_t try_submit(runtime_state* c, const draft& d, const options* o, bool detached,
                         refusal* why) noexcept {
  participant* self = here(*c);
  if (o == nullptr && !is_in_hook(*c)) {
    if (const std::uint64_t id = submit_plainly(*c, self, d, detached); id != 0) return id;
    if (const std::uint64_t id = find_elsewhere(*c, self, d, detached); id != 0) return id;
  }
  refusal local;
  return admission::admit(*c, self, d, o, detached, why == nullptr ? &local : why);
}

std::uint64_t submit_now(runtime_state* c, const draft& d, const options* o,
                         refusal* why) noexcept {
  participant* self = here(*c);
  const bool is_plain = o == nullptr && !is_in_hook(*c);
  const std::uint64_t id = is_plain ? submit_plainly(*c, self, d, false) : 0;
  return id != 0 ? id : admission::admit(*c, self, d, o, false, why, false);
}

std::uint64_t submit_within(runtime_state* c, const draft& d, const options* o, refusal* why,
                            std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return try_submit(c, d, o, false, why);
  refusal local;
  if (why == nullptr) why = &local;
  const std::uint64_t until_ns = deadline_after(*c, timeout_ns);
  participant* const self = here(*c);
  const std::uint64_t id = admission::admit(*c, self, d, o, false, why, true, until_ns);
  if (id != 0 || why->code != status::would_block || self == nullptr) return id;
  // Only the wait of a host ends when its time is over, unless it is in vain.
  const bool has_time_limit = c->settings.full != when_full::fail && self->running == nullptr &&
                              !is_guest(*c, *self) && c->machine->now_ns() >= until_ns &&
                              !is_held_by_caller(*c, *self);
  if (has_time_limit) why->code = status::timed_out;
  return 0;
}

std::uint64_t submit_behind(runtime_state& c, const draft& d,
                            std::span<const std::uint64_t> after) noexcept {
  participant* self = here(c);
  if (!c.is_straight || self == nullptr || is_in_hook(c)) return 0;
  const job* const by = self->running;
  if (after.empty()) {
    const std::uint64_t id = open_plainly(c, *self, by, d, 0);
    if (id != 0) route(c, *self, ticket_task(id), d);
    return id;
  }
  if (by == nullptr && !is_free_host(c, *self, by)) return 0;
  edge_list edges;
  edges.count = static_cast<std::uint32_t>(after.size());
  const std::uint32_t task = try_take_room(c, *self, edges, false);
  if (task == no_slot) return 0;
  refusal unused;
  if (!count_in(c, *self, task, &unused)) return give_edges(c, *self, edges, 0, edges.count), 0;
  const std::uint64_t id = write_slot(c, by, task, d, 0);
  const std::uint64_t completed = self->counters.completed.read();
  const bool is_accepted = start_after(c, *self, task, after.data(), edges, &unused);
  tell_of_failures(c, *self, completed);
  return is_accepted ? id : 0;
}

std::uint64_t submit_at_once(runtime_state* c, const draft& d) noexcept {
  if (c->sched.has_filters() || is_in_hook(*c)) return 0;
  return submit_plainly(*c, here(*c), d, false);
}

std::uint64_t submit_elsewhere_any_way(runtime_state& c, participant& self, const draft& d,
                                       bool detached, std::uint64_t plain_kinds) {
  const procedure_entry* const p = find_procedure(d.procedure);
  const std::uint64_t id = p == nullptr ? 0 : try_elsewhere(c, self, d, detached, *p, plain_kinds);
  return id != 0 ? id : submit_any_way(c, d, nullptr, detached);
}

std::uint64_t submit_any_way(runtime_state& c, const draft& d, const options* o, bool detached) {
  refusal why;
  const std::uint64_t id = try_submit(&c, d, o, detached, &why);
  if (id == 0) throw error(why.code, why.argument, why.message);
  return id;
}

std::uint64_t submit_late(runtime_state& c, const draft& d, bool detached, participant& self,
                          std::uint32_t task) {
  refuse_late(c, self, task);
  return submit_any_way(c, d, nullptr, detached);
}

}  // namespace lev::detail
