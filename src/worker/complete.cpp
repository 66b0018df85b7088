// complete(), step by step: mutexes go to the next in line; a piece is counted at its join; a task
// with a ticket gets its state word set, and announcements there are served.
#include "worker/complete.hpp"

#include "worker/close_mailbox.hpp"
#include "worker/columns.hpp"
#include "worker/contexts.hpp"
#include "worker/execute.hpp"
#include "worker/serving.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev {

namespace {

// While one end is told, tasks that it makes ready are not sent off, and tasks that fail with it
// are not told. Both might run the callback of another task, which may wait for something that this
// end has still to tell. They are put aside for the outermost caller.
class telling {
 public:
  telling(engine& e, participant& self) noexcept
      : engine_(e), self_(self), was_telling_(std::exchange(self.is_telling, true)) {}
  ~telling() {
    self_.is_telling = was_telling_;
    if (was_telling_) return;
    if (self_.failing != no_slot) fail_rest(engine_, self_);
    if (std::exchange(self_.queues_late, false)) engine_.crew->queued(self_);
  }
  telling(telling&&) = delete;

 private:
  engine& engine_;
  participant& self_;
  bool was_telling_;
};

void release_mutexes(engine& e, participant& self, std::uint32_t task) noexcept {
  slot_extra& extra = e.task_slots.extra(task);
  LEV_DCHECK(extra.locks_held == extra.lock_count);  // or it was queued too soon
  for (std::uint32_t i = 0; i < extra.locks_held; ++i) {
    const std::uint32_t next = e.mutexes.release(e.task_slots, extra.locks[i]);
    if (next != no_slot && e.mutexes.acquire(e.task_slots, next)) enqueue(e, self, next);
  }
  extra.locks_held = 0;
  extra.lock_count = 0;
}

// The first failure of a join's pieces is kept with its exception; the others are counted. Returns
// an exception that is not kept.
[[nodiscard]] std::exception_ptr fail_join(engine& e, const ending& piece) noexcept {
  const std::uint32_t join = e.task_slots.at(piece.task).parent;
  LEV_DCHECK(piece.result != status::ok && join != piece.task);
  slot_extra& to = e.task_slots.extra(join);
  slot_extra& from = e.task_slots.extra(piece.task);
  to.failures.fetch_add(1, memory_order_relaxed);
  std::uint32_t none = 0;
  if (to.first_failure.compare_exchange_strong(none, static_cast<std::uint32_t>(piece.result),
                                               memory_order_relaxed)) {
    if (from.exception != nullptr)
      e.task_slots.keep_exception(join, std::exchange(from.exception, nullptr));
    to.task_code = piece.task_code;
  }
  return std::exchange(from.exception, nullptr);
}

struct served {
  void (*callback)(void*) = nullptr;
  void* context = nullptr;
  std::uint32_t dependants = 0;  // successors that no longer wait
};

// Takes the announcements in the slot while it is still ours. Dependants are told one by one only
// after the outcome is set.
void serve_flags(engine& e, std::uint32_t task, std::uint64_t& seen, served* s) noexcept {
  slot_extra& extra = e.task_slots.extra(task);
  if ((seen & state_bits::called_back) != 0 && s->callback == nullptr) {
    const spin_guard<> held(extra.telling);
    s->callback = extra.callback;
    s->context = extra.callback_context;
  }
  if ((seen & state_bits::depended_on) == 0) return;
  if (!e.task_slots.at(task).state.retract(seen, state_bits::depended_on)) return;
  s->dependants = e.edges.join(e.edges.take(extra), s->dependants);
}

void wake_waiters(engine& e, std::uint64_t seen) noexcept {
  if ((seen & state_bits::crowd) != 0) {
    for (const participant& p : e.in_use()) unpark(e, p.index);
  } else if ((seen & state_bits::waited) != 0) {
    wake_one_waiter(e, state_bits::waiter(seen));
  }
}

// A callback, or a coroutine that is resumed, is the tail of a task, and so is the end of an
// exception that no caller will see. It may take long, so nothing waits behind it: no letter, no
// ended pieces, no task whose outputs have been written. It may submit and wait as a task does;
// then it is a task, except for the slot. Tasks that must still be failed here are failed when it
// waits, not before: a long chain of tasks with callbacks would take as much stack.
void run_tail(engine& e, participant& self, const served& s) noexcept {
  close_mailbox(e, self);
  drain(e, self);
  count_ended_pieces(e, self);
  job tail;
  tail.below = self.running;
  self.running = &tail;
  const bool was_telling = std::exchange(self.is_telling, false);
  const std::uint32_t nest = ++self.nest;
  // Not the participant's mode: a host that does not serve has none.
  const std::uint64_t mode = float_mode();
  {
    const acting actor(self);  // perhaps in a call that serves nobody, as a submit
    call_back(e, s.callback, s.context);
  }
  restore_float_mode(mode);
  LEV_DCHECK(self.running == &tail && self.nest == nest);  // on whatever stack it waited
  LEV_DCHECK(!self.is_telling);
  if (tail.has_transfers) end_transfers(self, tail);
  --self.nest;
  self.is_telling = was_telling;
  self.running = tail.below;
}

// The task's slot is given back by now: the exception's destructor may submit, and wait.
[[gnu::noinline]] void drop(engine& e, participant& self, std::exception_ptr& unseen) noexcept {
  served s;
  s.callback = [](void* it) { *static_cast<std::exception_ptr*>(it) = nullptr; };
  s.context = &unseen;
  run_tail(e, self, s);
}

// try_finish() is the first to touch the slot's own line: on the direct path that line is the
// submitter's, and one transfer is enough.
void finish(engine& e, participant& self, const ending& how) noexcept {
  const std::uint32_t task = how.task;
  std::uint64_t seen = how.seen;
  slot& s = e.task_slots.at(task);
  LEV_DCHECK((how.flags & task_is_piece) == 0);
  if (how.result != status::ok) e.task_slots.extra(task).task_code = how.task_code;
  served found;
  std::exception_ptr unseen;
  if ((how.flags & task_detached) != 0) {
    s.state.retire();  // no other thread knows it
    seen = state_bits::released;
  } else {
    do {
      serve_flags(e, task, seen, &found);
    } while ((seen & state_bits::depended_on) != 0 || !s.state.try_finish(seen, how.result));
  }
  if ((seen & state_bits::released) != 0) {
    // There is no ticket: the slot is ours until it is given back.
    if (how.result != status::ok) unseen = fail_unclaimed(e, task, how.result);
    give_slot(e, self, task);
  }
  // The slot may belong to the ticket's owner, or to the next task, after this line.
  if ((seen & (state_bits::waited | state_bits::crowd)) != 0) wake_waiters(e, seen);
  if (found.dependants != 0) serve_dependants(e, self, found.dependants, how.result);
  if (found.callback != nullptr) run_tail(e, self, found);
  if (unseen) [[unlikely]]
    drop(e, self, unseen);
}

// Counts `count` pieces at their join and completes it with the last one.
void count_pieces(engine& e, participant& self, std::uint32_t join, std::uint32_t count) noexcept {
  slot_extra& extra = e.task_slots.extra(join);
  // Pairs with the other participants' count-downs: the one that reaches 0 sees all pieces'
  // outputs.
  const std::uint32_t before = extra.pieces.fetch_sub(count, memory_order_acq_rel);
  LEV_DCHECK(count != 0 && before >= count);
  if (before != count) return;
  const auto failure = static_cast<status>(extra.first_failure.load(memory_order_relaxed));
  const slot& s = e.task_slots.at(join);
  LEV_DCHECK((s.flags & task_is_join) != 0);
  ending how = ending_of(s, join, failure);
  how.task_code = extra.task_code;
  complete(e, self, how);
}

void end_piece(engine& e, participant& self, const ending& how) noexcept {
  slot& s = e.task_slots.at(how.task);
  const std::uint32_t join = s.parent;
  s.state.retire();
  give_slot(e, self, how.task);
  if (self.ended_pieces_join == join) {
    ++self.aside.ended_pieces;
    return;
  }
  // This one is noted before the others are told: a callback of theirs may wait for it.
  const std::uint32_t count = std::exchange(self.aside.ended_pieces, 1);
  const std::uint32_t before = std::exchange(self.ended_pieces_join, join);
  if (count != 0) count_pieces(e, self, before, count);
}

}  // namespace

outcome take_outcome(engine& e, std::uint32_t task, status result) noexcept {
  slot_extra& extra = e.task_slots.extra(task);
  const bool is_join = (e.task_slots.at(task).flags & task_is_join) != 0;
  outcome o;
  o.code = result;
  o.task_code = extra.task_code;
  o.failures = is_join ? extra.failures.load(memory_order_relaxed) : 1;
  o.exception = std::exchange(extra.exception, nullptr);
  LEV_DCHECK(result != status::ok && o.failures != 0);
  return o;
}

// The first one is kept, the others are counted.
std::exception_ptr keep_failure(engine& e, outcome how) noexcept {
  const spin_guard<> held(e.failure_lock);
  constexpr std::uint32_t failures_max = ~std::uint32_t{0};  // and any above it
  const std::uint32_t failures =
      e.failure.failures + smaller(how.failures, failures_max - e.failure.failures);
  if (e.failure.failures == 0) std::swap(e.failure, how);
  e.failure.failures = failures;
  return std::move(how.exception);
}

std::exception_ptr fail_unclaimed(engine& e, std::uint32_t task, status result) noexcept {
  return keep_failure(e, take_outcome(e, task, result));
}

// The exception has no ticket to go to either.
void call_back(engine& e, void (*run)(void*), void* context) noexcept {
  try {
    run(context);
    end_if_forked(e);
  } catch (...) {
    end_if_forked(e, true);
    keep_failure(e, {status::task_failed, 0, 1, std::current_exception()});
  }
}

namespace {

// Its mutexes are free before its end is there, or a submitter could see it still holding them.
[[gnu::noinline]] void complete_holder(engine& e, participant& self, ending how) noexcept {
  const telling t(e, self);
  release_mutexes(e, self, how.task);
  how.flags &= static_cast<std::uint8_t>(~task_has_locks);
  complete_any(e, self, how);
}

// The rest of a piece of columns that stopped at a task goes on as a task of its own. False: there
// is none.
bool goes_on(engine& e, participant& self, const ending& how) noexcept {
  LEV_DCHECK((how.flags & task_is_piece) != 0);
  if (!is_of_columns(e.task_slots.at(how.task).procedure) || !go_on_behind(e, how.task))
    return false;
  (void)fail_join(e, how);  // of a bulk's task: it says which one failed, and uses no runtime
  push_ready(e, self, how.task);
  wake_worker(e, self);
  return true;
}

// False: the rest of it goes on.
[[gnu::noinline]] bool end_failed_piece(engine& e, participant& self, const ending& how) noexcept {
  if (how.result == status::task_failed && goes_on(e, self, how)) return false;
  std::exception_ptr unseen = fail_join(e, how);
  end_piece(e, self, how);
  if (unseen) drop(e, self, unseen);
  return true;
}

}  // namespace

void complete_any(engine& e, participant& self, const ending& how) noexcept {
  if ((how.flags & task_has_locks) != 0) return complete_holder(e, self, how);
  if (how.result != status::ok) self.counters.failed.add(1);
  if ((how.flags & task_is_piece) == 0) {
    finish(e, self, how);
  } else if (how.result == status::ok) {
    end_piece(e, self, how);
  } else if (!end_failed_piece(e, self, how)) {
    return;
  }
  self.counters.completed.add(1);
}

void fail_part(engine& e, participant& self, const ending& piece) noexcept {
  LEV_DCHECK((piece.flags & task_is_piece) != 0);
  (void)fail_join(e, piece);  // a worker process has none to give
  self.counters.failed.add(1);
}

void end_bulk(engine& e, participant& self, std::uint32_t join) noexcept {
  LEV_DCHECK((e.task_slots.at(join).flags & task_is_join) != 0);
  if (self.ended_pieces_join == join) {
    ++self.aside.ended_pieces;
    count_ended_pieces(e, self);
  } else {
    count_pieces(e, self, join, 1);
  }
}

void count_ended_pieces(engine& e, participant& self) noexcept {
  // Completing a join starts its dependants, and if they run elsewhere that may bring more ends.
  while (self.aside.ended_pieces != 0) {
    LEV_DCHECK(self.ended_pieces_join != no_slot);
    const std::uint32_t count = std::exchange(self.aside.ended_pieces, 0);
    count_pieces(e, self, std::exchange(self.ended_pieces_join, no_slot), count);
  }
}

// Tasks that fail without having run. They are chained and completed one after the other, so that a
// long chain of dependants takes no stack: each completion may add to the chain.
void fail_unrun(engine& e, participant& self, std::uint32_t task, status code) noexcept {
  slot_extra& extra = e.task_slots.extra(task);
  LEV_DCHECK(code != status::ok && task != self.failing);
  extra.first_failure.store(static_cast<std::uint32_t>(code), memory_order_relaxed);
  extra.next_failing = self.failing;
  self.failing = task;
  self.aside.has_failing = true;
  if (!self.is_telling) fail_rest(e, self);
}

void fail_rest(engine& e, participant& self) noexcept {
  LEV_DCHECK(!self.is_telling);
  const telling all(e, self);
  while (self.failing != no_slot) {
    const std::uint32_t next = self.failing;
    slot& s = e.task_slots.at(next);
    const auto why =
        static_cast<status>(e.task_slots.extra(next).first_failure.load(memory_order_relaxed));
    self.failing = e.task_slots.extra(next).next_failing;
    ending how = ending_of(s, next, why);
    complete(e, self, how);
  }
  self.aside.has_failing = false;
}

void start(engine& e, participant& self, std::uint32_t task) noexcept {
  slot& s = e.task_slots.at(task);
  LEV_DCHECK_LOOK(e.task_slots.extra(task).predecessors.load(memory_order_relaxed) == 0);
  LEV_DCHECK_LOOK(s.state.is_live());
  if (e.task_slots.extra(task).is_withdrawn) {
    s.state.retire();
    give_slot(e, self, task);
    self.counters.completed.add(1);
    return;
  }
  if (e.task_slots.extra(task).first_failure.load(memory_order_relaxed) != 0) {
    s.flags &= static_cast<std::uint8_t>(~task_has_locks);  // it holds none yet
    fail_unrun(e, self, task, status::dependency_failed);
    return;
  }
  if ((s.flags & task_has_locks) != 0 && !e.mutexes.acquire(e.task_slots, task)) return;
  enqueue(e, self, task);
}

// All are told before one of them fails: its callback may wait for another.
void serve_dependants(engine& e, participant& self, std::uint32_t list, status outcome) noexcept {
  const telling all(e, self);
  while (list != 0) {
    const dependant node = e.edges.node(list);
    give_edge(e, self, list - 1);
    list = node.next;
    slot_extra& extra = e.task_slots.extra(node.slot);
    if (outcome != status::ok)
      extra.first_failure.store(static_cast<std::uint32_t>(outcome), memory_order_relaxed);
    // Pairs with the other predecessors' count-downs: the one that reaches 0 sees all their outputs
    // and failures.
    const std::uint32_t before = extra.predecessors.fetch_sub(1, memory_order_acq_rel);
    LEV_DCHECK(before != 0);
    if (before == 1) start(e, self, node.slot);
  }
}

// Completions are read before submissions. A task's children are counted as submitted before it is
// counted as completed, so if the two sums agree, every task submitted until the second sum began
// was complete when the first one ended (Mattern 1987). That holds even for a thread that has bound
// itself meanwhile: its submissions may be in the first sum, so they must be in the second.
bool is_quiescent(engine& e, std::uint32_t open_joins) noexcept {
  const std::uint64_t completed = count_ends(e);
  std::uint64_t submitted = 0;
  for (const participant& p : e.in_use()) submitted += p.counters.submitted.read();
  LEV_DCHECK(completed <= submitted);
  return submitted - completed <= open_joins;
}

void tell_barrier(engine& e) noexcept {
  // Pairs with await_shared::arm(). A read-modify-write that adds nothing: it comes either after a
  // barrier waiter's own, and sees the waiter, or before it, and the waiter then sees every
  // completion counted so far. A plain load could pass the counting.
  if (e.barrier_wanted.fetch_add(0, memory_order_seq_cst) != 0 &&
      is_quiescent(e, e.open_joins.load(memory_order_relaxed)))
    wake_wanting(e, want_barrier);
}

}  // namespace lev
