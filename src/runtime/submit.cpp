// submit: admission, and the direct path.
//
//   1. validate the draft; refuse with the argument's name
//   2. take a slot, the bound on tasks in flight, and an edge for each predecessor (none free:
//   help, wait or fail); count the task
//   3. write the task into its slot
//   4. predecessors and mutexes, if any: the last one to end starts the task
//   5. an idle worker: straight into its mailbox; else enqueue (worker/enqueue.hpp)
//
// Papers: gcell 3.2 (submit_job: sanity check, then append), TPC 3.2 (direct path).
#include "runtime/check_call.hpp"
#include "runtime/core.hpp"
#include "runtime/wait.hpp"
#include "task/arguments.hpp"
#include "task/slice.hpp"
#include "task/validate.hpp"
#include "worker/complete.hpp"
#include "worker/contexts.hpp"
#include "worker/enqueue.hpp"

#include <cstdio>

namespace lev::detail {

namespace {

constexpr std::uint32_t direct_workers_max = 64;  // looked at for the direct path

bool is_dice_gain(const core& c, const draft& d) noexcept {
  if (procedure_at(d.procedure).diceable) return true;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    const std::uint64_t items = slice_items(a);
    return items >= 2 && items / 2 >= d.grain && c.takers > 1;
  }
  return false;
}

void choose_grain(const core& c, draft& d, std::uint8_t* flags) noexcept {
  *flags |= task_timed;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    const std::uint32_t place = item_costs::place_of(d.procedure, d.arguments, d.argument_count);
    const std::uint64_t grain = c.costs.grain(place, slice_items(a), c.takers);
    d.grain = static_cast<std::uint32_t>(smaller<std::uint64_t>(grain, 0xffffffffu));
    return;
  }
}

// Whether the local store or the dicer has anything to do with the task.
inline bool has_size(const core& c, const draft_facts& facts) noexcept {
  return facts.may_dice || facts.is_strided || (facts.has_address && c.copies.all);
}

// What they have to do with it.
bool check_size(const core& c, const draft& d, const draft_facts& facts, std::uint8_t* flags,
                refusal* why) noexcept {
  const std::size_t bytes = staged_bytes(d.arguments, d.argument_count, c.copies);
  if (bytes != 0) *flags |= task_staged;
  if (facts.may_dice && is_dice_gain(c, d)) *flags |= task_diceable;
  if (bytes <= c.settings.local_store_bytes) return true;
  if (facts.may_dice) {
    *flags |= task_diceable | task_too_big;
    return true;
  }
  return refuse(
      why, status::too_big, -1,
      "the task needs %zu bytes of local store, %zu are available; slice its arguments or raise "
      "config.local_store_bytes",
      bytes, c.settings.local_store_bytes);
}

// The edges that a submit has reserved: one for each predecessor.
struct edge_list {
  std::uint32_t count = 0;
  std::uint32_t nodes[options::after_max];
};

void give_edges(core& c, const edge_list& edges, std::uint32_t from, std::uint32_t to) noexcept {
  for (std::uint32_t i = from; i < to; ++i) give_edge(c, edges.nodes[i]);
}

// A slot, of those kept for tasks if `is_spare`, and the edges: all of it, or nothing, so that
// nobody holds one and waits for the other. Looks before it takes anything: to give back would wake
// others, who would do the same.
inline std::uint32_t try_take_room(core& c, participant& self, edge_list& edges,
                                   bool is_spare = false) noexcept {
  const auto take = [&]() noexcept {
    return is_spare ? c.pool.try_take_spare() : c.pool.try_take(self.free_slots);
  };
  if (edges.count == 0) return take();
  const bool has_own = !is_spare && self.free_slots.count() != 0;
  if ((!has_own && c.pool.looks_exhausted(is_spare)) || !c.edges.has(edges.count)) return no_slot;
  const std::uint32_t got = c.edges.reserve(edges.nodes, edges.count);
  std::uint32_t task = no_slot;
  if (got == edges.count) task = take();
  if (task == no_slot) give_edges(c, edges, 0, got);
  return task;
}

// A free slot, and edges, where there are none now: by help, waiting or not at all.
[[gnu::noinline]] std::uint32_t await_slot(core& c, participant& self, edge_list& edges) noexcept {
  if (c.settings.full == when_full::fail) return no_slot;
  std::uint32_t task = no_slot;
  while (self.running != nullptr) {
    if ((task = try_take_room(c, self, edges, true)) != no_slot) return task;
    if (!wait_space_inside(c, self, edges.count)) return no_slot;
    if ((task = try_take_room(c, self, edges)) != no_slot) return task;
  }
  const bool may_help = c.settings.full == when_full::help;
  do {
    if (!may_help || !help(c, self)) {
      if (is_held_by_caller(c, self)) return no_slot;
      wait_space(c, self, may_help, edges.count);
    }
    task = try_take_room(c, self, edges);
  } while (task == no_slot);
  return task;
}

inline void write_slot(core& c, const participant& self, std::uint32_t task, const draft& d,
                       std::uint8_t flags) noexcept {
  slot& s = c.pool.at(task);
  const job* by = self.running;
  s.state.open((flags & task_detached) != 0 ? std::uint64_t{state_bits::released} : 0);
  s.procedure = d.procedure;
  s.argument_count = d.argument_count;
  s.flags = flags;
  s.parent = by == nullptr ? no_slot : by->task;
  s.parent_generation =
      by == nullptr ? 0 : static_cast<std::uint16_t>(state_bits::generation(by->seen));
  s.priority = d.priority;
  s.key = d.key;
  s.grain = d.grain;
  s.dice_depth = 0;
  s.mailbox = 0;
  for (unsigned i = 0; i < d.argument_count; ++i) c.pool.argument_at(task, i) = d.arguments[i];
}

// Sends the task to a worker that polls for it. False: there is none. One that sleeps takes long to
// wake, and a letter is for it alone: then the ready queue is better, where a host that waits finds the
// task itself.
bool try_direct(core& c, participant& self, std::uint32_t task, const draft& d) noexcept {
  const std::uint32_t n = smaller(c.workers, direct_workers_max);
  for (std::uint32_t w = 0; w < n; ++w) {
    participant& worker = c.people[w];
    // A hint first: it costs no transfer of a line while nothing changes.
    if (worker.is_polling.load(memory_order_relaxed) == 0 || !worker.mail.try_lease(self.index + 1))
      continue;
    // Pairs with the worker's turn to other work, and with its going to sleep. Sequentially
    // consistent: comes after the lease.
    if (c.bell.sleeps(w) || worker.is_polling.load(memory_order_seq_cst) == 0) {
      worker.mail.retract();
      continue;
    }
    slot& s = c.pool.at(task);
    s.mailbox = static_cast<std::uint8_t>(w + 1);
    letter l;
    l.task = task;
    l.generation = s.state.generation();
    l.procedure = d.procedure;
    l.argument_count = d.argument_count;
    l.flags = s.flags;
    for (unsigned i = 0; i < l.carried(); ++i) l.arguments[i] = d.arguments[i];
    worker.mail.deliver(l);
    self.counters.direct.add(1);
    return true;
  }
  return false;
}

// Predecessors: the task starts when the last of them, or this submit, lets go of it. False: since
// check_after() another thread has consumed one of the tickets, and how that task ended is not
// known here. Then the submit is refused, and whoever lets go last frees the slot.
bool start_after(core& c, participant& self, std::uint32_t task, const std::uint64_t* after,
                 const edge_list& edges, refusal* why) noexcept {
  const std::uint32_t count = edges.count;
  slot_extra& extra = c.pool.extra(task);
  extra.first_failure.store(0, memory_order_relaxed);
  extra.predecessors.store(count + 1, memory_order_relaxed);
  extra.is_withdrawn = false;
  std::uint32_t own = 1;  // counts that no predecessor counts down
  std::uint32_t i = 0;
  for (; i < count; ++i) {
    const std::uint32_t other = ticket_task(after[i]);
    const std::uint32_t generation = ticket_generation(after[i]);
    slot& s = c.pool.at(other);
    if (c.edges.add(s, c.pool.extra(other), generation, edges.nodes[i], task)) continue;
    const status outcome = s.state.peek(generation);
    if (outcome == status::stale_ticket) break;
    if (outcome != status::ok)
      extra.first_failure.store(static_cast<std::uint32_t>(outcome), memory_order_relaxed);
    give_edge(c, edges.nodes[i]);
    ++own;
  }
  const bool is_accepted = i == count;
  if (!is_accepted) {
    give_edges(c, edges, i, count);
    extra.is_withdrawn = true;
    own += count - i;
  }
  // Pairs with serve_dependants(): the last one to let go starts the task.
  if (extra.predecessors.fetch_sub(own, memory_order_acq_rel) == own) start(c, self, task);
  return is_accepted || refuse_after(status::stale_ticket, i, why);
}

void sort_locks(slot_extra& extra, const mutex_id* locks, std::uint32_t count) noexcept {
  extra.lock_count = 0;
  extra.locks_held = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t place = extra.lock_count;
    bool is_new = true;
    for (std::uint32_t k = 0; k < extra.lock_count; ++k) is_new &= extra.locks[k] != locks[i];
    if (!is_new) continue;
    for (; place > 0 && extra.locks[place - 1] > locks[i]; --place)
      extra.locks[place] = extra.locks[place - 1];
    extra.locks[place] = locks[i];
    ++extra.lock_count;
  }
}

bool refuse_closed(refusal* why) noexcept {
  return refuse(why, status::closed, -1, "the runtime is closing; submit before close()");
}

// Tasks of a closing runtime may still submit: draining includes their children.
bool check_open(core& c, const participant* self, refusal* why) noexcept {
  if (self == nullptr) {
    return refuse(
        why, status::would_block, -1,
        c.caps.many_hosts
            ? "more than config.host_threads threads call in; raise it, or end some threads"
            : "this machine has one host thread, the one that opened the runtime");
  }
  if (c.closing.load(memory_order_relaxed) != 0 && self->running == nullptr)
    return refuse_closed(why);
  return true;
}

// A task that was counted after all: gives its slot back and takes it out of the count.
[[gnu::noinline]] bool count_out(core& c, participant& self, std::uint32_t task,
                                 refusal* why) noexcept {
  give_slot(c, self, task);
  self.counters.completed.add(1);
  leave(c, self);  // close() may wait for that count
  return refuse_closed(why);
}

// Counts a task as submitted, unless close() came between the look in check_open() and here: it
// must not drain the runtime and miss the task. Here: count, then look at `closing`. There: set
// `closing`, then look at the counts, with the heavy fence between the two that this side has not.
inline bool count_in(core& c, participant& self, std::uint32_t task, refusal* why) noexcept {
  self.counters.submitted.add(1);
  if (self.running != nullptr) return true;  // the drain waits for its parent
  // Pairs with close_within(). Where there is no heavy fence, a change of the word that adds
  // nothing comes either before close()'s and shows it the count, or after it.
  const bool is_closing = c.has_heavy_fence ? c.closing.load(memory_order_seq_cst) != 0
                                            : c.closing.fetch_add(0, memory_order_seq_cst) != 0;
  return !is_closing || count_out(c, self, task, why);
}

bool refuse_full(core& c, const edge_list& edges, refusal* why) noexcept {
  if (edges.count != 0 && !c.edges.has(edges.count)) {
    return refuse(
        why, status::would_block, -1,
        "after(): the edges between tasks are in use, two for each of the %u tickets; wait "
        "for some tasks, or raise config.tickets",
        c.settings.tickets);
  }
  return refuse(why, status::would_block, -1,
                "all %u tickets are in use, by tasks that wait or were not collected; wait for "
                "some, or raise config.tickets",
                c.settings.tickets);
}

inline void route(core& c, participant& self, std::uint32_t task, const draft& d) noexcept {
  const std::uint8_t flags = c.pool.at(task).flags;
  const bool plain =
      (flags & (task_detached | task_diceable | task_too_big)) == 0 && self.running == nullptr;
  if (plain && c.remote == nullptr && !c.sched.has_filters() && try_direct(c, self, task, d))
    return;
  enqueue(c, self, task);
}

}  // namespace

// Friend of lev::options.
struct admission {
  static std::uint64_t admit(core& c, draft d, const options* o, bool detached,
                             refusal* why) noexcept {
    participant* self = here(c);
    draft_facts facts;
    if (!check_open(c, self, why) || !validate(d, &facts, why) || !check_remote(c, d, facts, why))
      return 0;
    if (o != nullptr) {
      if (!check_after(c, o->after_, o->after_count_, o->is_foreign_to(&c), why) ||
          !check_locks(c, o->locks_, o->lock_count_, why))
        return 0;
      if (o->priority_ != 0) d.priority = o->priority_;
      if (o->key_ != 0) d.key = o->key_;
      if (o->grain_ != 0) d.grain = o->grain_;
    }
    std::uint8_t flags = detached ? task_detached : 0;
    if (facts.is_sliced && d.grain == 0) choose_grain(c, d, &flags);
    if (has_size(c, facts) && !check_size(c, d, facts, &flags, why)) return 0;
    edge_list edges;
    if (o != nullptr) edges.count = o->after_count_;
    std::uint32_t task = try_take_room(c, *self, edges);
    if (task == no_slot) task = await_slot(c, *self, edges);
    if (self->running == nullptr && owes_others(*self)) leave(c, *self);
    if (task == no_slot) return refuse_full(c, edges, why), 0;
    if (!count_in(c, *self, task, why)) return give_edges(c, edges, 0, edges.count), 0;
    write_slot(c, *self, task, d, flags);
    const std::uint64_t id = ticket_id(task, c.pool.at(task).state.generation());
    if (o == nullptr || (o->after_count_ == 0 && o->lock_count_ == 0)) {
      route(c, *self, task, d);
    } else {
      want_ends_told(c);
      sort_locks(c.pool.extra(task), o->locks_, o->lock_count_);
      if (o->lock_count_ != 0) c.pool.at(task).flags |= task_has_locks;
      const bool is_accepted = start_after(c, *self, task, o->after_, edges, why);
      leave(c, *self);  // it may have failed at once, and with it others
      if (!is_accepted) return 0;
    }
    return id;
  }
};

status check_ticket(const core* c, std::uint64_t id) noexcept {
  if (c == nullptr || id == 0 || static_cast<std::uint32_t>(id) == 0) return status::bad_ticket;
  return ticket_task(id) < c->pool.count() ? status::ok : status::bad_ticket;
}

std::uint64_t try_submit(core* c, const draft& d, const options* o, bool detached,
                         refusal* why) noexcept {
  refusal local;
  return admission::admit(*c, d, o, detached, why == nullptr ? &local : why);
}

std::uint64_t submit(core* c, const draft& d, const options* o, bool detached) {
  refusal why;
  const std::uint64_t id = admission::admit(*c, d, o, detached, &why);
  if (id == 0) throw error(why.code, why.argument, why.message);
  return id;
}

namespace {

// A bulk submit's pieces, on their way to the ready queue in batches: one doorbell and one
// reservation for many.
class bulk {
 public:
  bulk(core& c, participant& self, std::uint32_t join) noexcept
      : core_(c), self_(self), join_(join) {}

  bool add(draft d, refusal* why) noexcept {
    std::uint8_t flags = task_detached | task_is_piece;
    draft_facts facts;
    if (!validate(d, &facts, why) || !check_remote(core_, d, facts, why)) return false;
    if (facts.is_sliced && d.grain == 0) choose_grain(core_, d, &flags);
    if (has_size(core_, facts) && !check_size(core_, d, facts, &flags, why)) return false;
    std::uint32_t task = core_.pool.try_take(self_.free_slots);
    edge_list none;
    if (task == no_slot) {
      flush();
      task = await_slot(core_, self_, none);
    }
    if (task == no_slot) return refuse_full(core_, none, why);
    write_slot(core_, self_, task, d, flags);
    core_.pool.at(task).parent = join_;
    core_.pool.extra(join_).pieces.fetch_add(1, memory_order_relaxed);
    if ((flags & (task_diceable | task_too_big)) != 0 || core_.sched.has_filters()) {
      self_.counters.submitted.add(1);
      enqueue(core_, self_, task);
      return true;
    }
    batch_[count_++] = task;
    if (count_ == batch_max) flush();
    return true;
  }
  void flush() noexcept {
    if (count_ == 0) return;
    self_.counters.submitted.add(count_);
    if (self_.running == nullptr || core_.remote != nullptr) {
      while (!core_.sched.ready().try_push_all(batch_, count_)) real_env::pause();
    } else {
      // A task's own: it runs them on top of itself, the first one first.
      for (std::uint32_t i = count_; i-- > 0;) {
        if (!push_own(core_, self_, batch_[i])) push_ready(core_, batch_[i]);
      }
    }
    count_ = 0;
    if (core_.remote != nullptr) return post_ready(core_, self_);
    ring(core_, self_.index + 1);
  }

 private:
  static constexpr std::uint32_t batch_max = 32;
  core& core_;
  participant& self_;
  std::uint32_t join_;
  std::uint32_t count_ = 0;
  std::uint32_t batch_[batch_max];
};

draft draft_of(const descriptor& d) noexcept {
  return {d.procedure, d.argument_count, d.flags, d.grain, d.priority, d.key, d.arguments};
}

// The join of a bulk: a task that is never queued. It counts one piece more than there are until
// the submit is done.
std::uint32_t open_join(core& c, participant& self, refusal* why) noexcept {
  std::uint32_t join = c.pool.try_take(self.free_slots);
  edge_list none;
  if (join == no_slot) join = await_slot(c, self, none);
  if (join == no_slot) return refuse_full(c, none, why), no_slot;
  if (!count_in(c, self, join, why)) return no_slot;
  const draft nothing{0, 0, 0, 0, 0, 0, nullptr};
  write_slot(c, self, join, nothing, task_is_join);
  slot_extra& extra = c.pool.extra(join);
  extra.pieces.store(1, memory_order_relaxed);
  extra.failures.store(0, memory_order_relaxed);
  extra.first_failure.store(0, memory_order_relaxed);
  extra.task_code = 0;
  return join;
}

}  // namespace

std::uint64_t submit_bulk(core* c, std::size_t count, fill make, void* context) {
  refusal why;
  participant* self = here(*c);
  std::uint32_t join = no_slot;
  if (!check_open(*c, self, &why) || (join = open_join(*c, *self, &why)) == no_slot) {
    throw error(why.code, why.argument, why.message);
  }
  const std::uint64_t id = ticket_id(join, c->pool.at(join).state.generation());
  bulk b(*c, *self, join);
  descriptor d;
  std::size_t i = 0;
  bool accepted = true;
  std::exception_ptr thrown;
  try {
    for (; i < count && accepted; ++i) {
      make(context, i, d);
      accepted = b.add(draft_of(d), &why);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  b.flush();
  // The submit lets go of the join; the last piece completes it.
  end_bulk(*c, *self, join);
  leave(*c, *self);
  if (accepted && !thrown) return id;
  // The tasks before it run with the caller's memory: do not leave before they are done.
  wait_surely(c, id);
  if (thrown) std::rethrow_exception(thrown);
  char message[256];
  std::snprintf(message, sizeof message, "task %zu of the bulk: %s", i - 1, why.message);
  throw error(why.code, why.argument, message);
}

namespace {

// What parallel_for passes: the loop's body and its context, as one value argument.
struct loop_body {
  void (*run)(void*, range);
  void* context;
};
procedure_id loop_procedure() {
  static const procedure_id id =
      define("leveret.parallel_for", [](loop_body b, range r) { b.run(b.context, r); }).id;
  return id;
}

}  // namespace

// In a task that is too deep to wait, or when all tickets are in use, the caller runs the whole loop:
// that needs neither.
void run_loop(core* c, range r, std::uint32_t grain, void (*run)(void*, range), void* context) {
  if (c->remote != nullptr) {
    throw error(status::not_supported, -1,
                "parallel_for: a loop's body refers to this process's memory, and the workers are "
                "other processes; submit a procedure with a lev::range instead");
  }
  const participant* self = here(*c);
  if (self != nullptr && self->nest >= c->settings.nest_max) return run(context, r);
  const argument arguments[] = {parameter<loop_body>::pack({run, context}),
                                parameter<range>::pack(r)};
  refusal why;
  const draft loop{loop_procedure(), 2, 0, grain, 0, 0, arguments};
  const std::uint64_t id = try_submit(c, loop, nullptr, false, &why);
  if (id == 0 && why.code == status::would_block && self != nullptr) return run(context, r);
  if (id == 0) throw error(why.code, why.argument, why.message);
  const outcome o = wait_surely(c, id);
  if (o.code != status::ok) throw_outcome(o);
}

}  // namespace lev::detail
