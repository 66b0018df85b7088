// Bulk submits and loops: many tasks behind one ticket. Either each task of a bulk has a slot, or
// the bulk is one range of indices, whose pieces make their tasks when they run them.
#include "runtime/admit.hpp"
#include "runtime/made_range.hpp"
#include "runtime/submit.hpp"
#include "worker/batch.hpp"
#include "worker/serve.hpp"

namespace lev::detail {

namespace {

// The caller goes on with its program's function, which may take long or wait for others: what it
// has run meanwhile is told first. Tasks of its other contexts may wait for the rest of the bulk.
std::uint32_t await_slot_in_bulk(runtime_state& c, participant& self) noexcept {
  edge_list none;
  const std::uint32_t task = await_slot(c, self, none);
  tell_meanwhile(c, self);
  return task;
}

// Adds tasks to a bulk: pieces of its join.
class bulk {
 public:
  bulk(runtime_state& c, participant& self, std::uint32_t join) noexcept
      : state_(c), self_(self), join_(join), batch_(c, self), is_guest_(is_guest(c, self)) {}

  bool add(draft d, refusal* why) noexcept {
    std::uint8_t flags = task_detached | task_is_piece;
    if (!check_draft(state_, d, &flags, why)) return false;
    std::uint32_t task = state_.task_slots.try_take(self_.free_slots);
    edge_list none;
    if (task == no_slot) task = await_slot_in_bulk(state_, self_);
    if (task == no_slot) return refuse_full(state_, self_, none, why);
    state_.task_slots.write(task, d, flags, d.arguments, {join_});
    const std::uint32_t before =
        state_.task_slots.extra(join_).pieces.fetch_add(1, memory_order_relaxed);
    LEV_DCHECK(before != 0);  // the submit's own, which keeps the join open
    if ((flags & (task_diceable | task_too_big)) != 0 || state_.sched.has_filters()) {
      self_.counters.submitted.add(1);
      enqueue(state_, self_, task);
    } else {
      batch_.add(task);
      if (is_guest_) batch_.send();  // a wait in the task of the other runtime does not
    }
    return true;
  }
  void send() noexcept { batch_.send(); }

 private:
  runtime_state& state_;
  participant& self_;
  std::uint32_t join_;
  batch batch_;
  bool is_guest_;
};

// Room for one more open join. If joins took all slots, no bulk would ever get one for a task: so
// they take at most half of them. A submitter that is already in a bulk of its own, or in a task,
// of this runtime or another, goes on: its wait for a slot ends in another way.
bool try_reserve_join(runtime_state& c, std::uint32_t joins_max) noexcept {
  std::uint32_t joins = c.open_joins.load(memory_order_relaxed);
  while (joins < joins_max) {
    if (c.open_joins.compare_exchange_strong(joins, joins + 1, memory_order_relaxed)) return true;
  }
  return false;
}

bool reserve_join(runtime_state& c, participant& self) noexcept {
  if (self.running != nullptr || self.open_joins != 0 || c.settings.full == when_full::fail ||
      is_guest(c, self)) {
    c.open_joins.fetch_add(1, memory_order_relaxed);
    return true;
  }
  const std::uint32_t joins_max = larger(c.settings.tickets / 2, 1u);
  while (!try_reserve_join(c, joins_max)) {
    if (is_shut_out(c, self)) return false;
    wait_join(c, self, joins_max);
  }
  return true;
}

void give_back_join(runtime_state& c) noexcept {
  // Pairs with await_join: the change, then the look at its waiters.
  c.open_joins.fetch_sub(1, memory_order_seq_cst);
  tell_all_for_space(c);
}

// The join of a bulk: a task that is never queued. Until the submit is done, it counts one piece
// too many.
std::uint32_t open_join(runtime_state& c, participant& self, refusal* why) noexcept {
  if (!reserve_join(c, self)) return refuse_closed(why), no_slot;
  std::uint32_t join = c.task_slots.try_take(self.free_slots);
  edge_list none;
  if (join == no_slot) join = await_slot_in_bulk(c, self);
  if (join == no_slot) return give_back_join(c), refuse_full(c, self, none, why), no_slot;
  if (!count_in(c, self, join, why)) return give_back_join(c), no_slot;
  write_slot(c, self.running, join, draft{}, task_is_join);
  slot_extra& extra = c.task_slots.extra(join);
  LEV_DCHECK_LOOK(extra.pieces.load(memory_order_relaxed) == 0);
  LEV_DCHECK(extra.exception == nullptr);  // the slot's last task's
  extra.pieces.store(1, memory_order_relaxed);
  extra.failures.store(0, memory_order_relaxed);
  extra.first_failure.store(0, memory_order_relaxed);
  extra.task_code = 0;
  if (self.running == nullptr) {
    ++self.open_joins;
    c.bulks.open();
  }
  return join;
}

// The submit lets go of the join; the last piece completes it.
void close_join(runtime_state& c, participant& self, std::uint32_t join) noexcept {
  if (self.running == nullptr) {
    --self.open_joins;
    c.bulks.close();
  }
  give_back_join(c);
  end_bulk(c, self, join);
}

}  // namespace

std::uint64_t submit_bulk(runtime_state* c, std::size_t count, fill make, void* context) {
  refusal why;
  participant* self = here(*c);
  std::uint32_t join = no_slot;
  if (!check_open(*c, self, &why) || (join = open_join(*c, *self, &why)) == no_slot) {
    throw error(why.code, why.argument, why.message);
  }
  const std::uint64_t id = ticket_id(join, c->task_slots.at(join).state.generation());
  bulk b(*c, *self, join);
  descriptor d;
  std::size_t i = 0;
  bool accepted = true;
  std::exception_ptr thrown;
  try {
    for (; i < count && accepted; ++i) {
      make(context, i, d);
      if (c->why_absent != nullptr) throw error(status::closed, -1, c->why_absent);
      accepted = b.add(draft_of(d), &why);
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  if (c->why_absent != nullptr) std::rethrow_exception(thrown);  // forked by make()
  b.send();
  close_join(*c, *self, join);
  leave(*c, *self);
  if (accepted && !thrown) return id;
  // The tasks before it use the caller's memory: do not leave before they are done.
  wait_surely(c, id);
  if (thrown) std::rethrow_exception(thrown);
  throw error(why.code, why.argument, text_of_bulk(i - 1, why.message).text);
}

namespace {

int run_range(const call& c) {
  return made_range(*static_cast<participant*>(current_actor()),
                    parameter<made_tasks>::unpack(c.arguments[0]),
                    parameter<range>::unpack(c.arguments[1]))
      .run();
}

procedure_id range_procedure() {
  static const procedure_id id = [] {
    constexpr kind kinds[] = {kind::value, kind::range};
    procedure_info info;
    info.name = "leveret.bulk";
    info.run = &run_range;
    info.kinds = kinds;
    info.kind_count = 2;
    return register_own(info);
  }();
  return id;
}

}  // namespace

// One task, which is diced like a loop. Where tasks run elsewhere, or their memory is copied, each
// is a task of its own.
std::uint64_t submit_bulk_range(runtime_state* c, std::size_t count, fill make, void* context) {
  if (!c->is_straight || count == 0) return submit_bulk(c, count, make, context);
  const argument arguments[] = {parameter<made_tasks>::pack({make, context}),
                                parameter<range>::pack({0, count})};
  return submit(c, draft{{range_procedure(), 2, 0, 0}, arguments}, nullptr, false);
}

namespace {

// The argument of parallel_for: the loop's body and its context, as one value argument.
struct loop_body {
  void (*run)(void*, range);
  void* context;
};
procedure_id loop_procedure() {
  static const procedure_id id = register_own(describe(
      "leveret.parallel_for", +[](loop_body b, range r) {
        if (r.begin != r.end) b.run(b.context, r);  // an empty range has no piece
      }));
  return id;
}

// A loop needs no ticket, and other hosts may hold all of them for ever. So its host does not wait
// for one: it runs waiting tasks, which give theirs back, while there are any. In a task, every
// wait for a ticket ends.
std::uint64_t submit_loop(runtime_state& c, participant* self, const draft& loop, refusal* why) {
  if (self == nullptr || self->running != nullptr || is_guest(c, *self))
    return try_submit(&c, loop, nullptr, false, why);
  batch::send_all(*self);
  const bool may_help = c.settings.full == when_full::help;
  while (true) {
    const std::uint64_t id = submit_now(&c, loop, nullptr, why);
    if (id != 0) return id;
    // The runtime may have closed while it helped.
    const bool is_in_vain =
        why->code != status::would_block || (!c.scopes.ask() && !(may_help && help(c, *self)));
    if (is_in_vain) return tell_of_help(c, *self), 0;
  }
}

// Whether the loop is one piece, and part of what its caller does: a task of its own would cost
// more than a short body. Not where each task is to be seen: with a trace, or with a price.
bool is_part_of_caller(runtime_state& c, const participant* self, range r,
                       std::uint32_t grain) noexcept {
  return r.end - r.begin <= larger(grain, 1u) && self != nullptr && self->running != nullptr &&
         !is_guest(c, *self) && !c.caps.virtual_time && !self->events.is_open();
}

}  // namespace

// In a task that is too deep to wait, in a hook, or when all tickets are in use, the caller runs
// the whole loop: that needs neither a wait nor a ticket.
void run_loop(runtime_state* c, range r, std::uint32_t grain, void (*run)(void*, range),
              void* context) {
  if (!c->crew->can_do_closures()) {
    throw error(status::not_supported, -1,
                "parallel_for, parallel_reduce: the body refers to this process's memory, and the "
                "workers are other processes; submit a procedure with a lev::range instead");
  }
  if (r.begin > r.end) {
    throw error(status::bad_range, 0,
                "parallel_for, parallel_reduce: the range ends before it begins; swap its bounds");
  }
  participant* self = here(*c);
  const bool is_too_deep = self != nullptr && self->nest >= c->settings.nest_max;
  const auto run_here = [&] {
    if (r.begin != r.end) run(context, r);
  };
  if (is_too_deep || is_in_hook(*c) || is_part_of_caller(*c, self, r, grain)) return run_here();
  const argument arguments[] = {parameter<loop_body>::pack({run, context}),
                                parameter<range>::pack(r)};
  refusal why;
  const draft loop{{loop_procedure(), 2, 0, grain}, arguments};
  const std::uint64_t id = submit_loop(*c, self, loop, &why);
  if (id == 0 && why.code == status::would_block && self != nullptr) return run_here();
  if (id == 0) throw error(why.code, why.argument, why.message);
  const outcome o = wait_surely(c, id);
  if (o.code != status::ok) throw_outcome(o);
}

}  // namespace lev::detail
