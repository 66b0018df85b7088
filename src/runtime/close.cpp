// Closing a runtime: refuse new tasks, let the waiting ones end, stop the workers, give everything
// back.
//
//   1. `closing` is set: submits are refused, except those of tasks that still run. A submit on its
//      way, even one that waits for a ticket, has either been counted by now, or finds `closing`
//      set and takes itself back.
//   2. With cancel_waiting, `cancelling` is set: tasks that have not started end with
//      status::cancelled.
//   3. Wait until every accepted task is complete. On a time-out the runtime stays as it is:
//      nothing is lost, call again. Or, with end_running, worker processes are ended in their
//      tasks.
//   4. `stopping` is set and every worker woken; the machine is joined.
//
// A static runtime that exit() destroys in one of its own tasks, in a filter or a hook, or while
// the one host of a simulated machine is in it, is left as it is: the program ends.
//
// In a process that was forked from the one that opened it there is nothing to close.
#include "runtime/wait.hpp"
#include "sync/exiting.hpp"
#include "sync/hook_call.hpp"
#include "sync/uncancelled.hpp"
#include "worker/contexts.hpp"

#include <utility>

namespace lev::detail {

namespace {

void stop_workers(runtime_state& c) noexcept {
  LEV_ASSERT(!c.is_closed && c.closing.load(memory_order_relaxed) == 1);
  // Pairs with await_stop. Sequentially consistent: before the wake-ups.
  c.stopping.store(1, memory_order_seq_cst);
  for (std::uint32_t i = c.first_actor; i < c.first_host; ++i) unpark(c, i);
  c.machine->join();
  c.is_closed = true;
}

outcome take_failure(runtime_state& c) noexcept {
  const spin_guard<> held(c.failure_lock);
  return std::exchange(c.failure, {});
}

// Exceptions that are kept may own tickets of this runtime, or call it when they are destroyed. So
// they are destroyed while calls are still answered. A ticket that is released with one may leave
// another failure.
void drop_exceptions(runtime_state& c) noexcept {
  LEV_ASSERT(c.is_closed);
  c.task_slots.drop_exceptions();
  while (take_failure(c).failures != 0) {
  }
}

}  // namespace

bool is_in_use(runtime_state& c) noexcept {
  if (hook_call::is_here()) return true;
  const participant* self = here(c);
  if (self != nullptr) return is_in_task_or_bulk(c, *self);
  return !c.caps.many_hosts &&
         c.participants[c.first_host].is_bound.load(memory_order_relaxed) != 0;
}

status close_within(runtime_state* c, std::int64_t timeout_ns, bool cancel_waiting) noexcept {
  if (c->is_closed || is_absent(*c)) return status::ok;
  if (timeout_ns < no_timeout) return status::bad_argument;
  const uncancelled now;
  participant* self = here(*c);
  if (self == nullptr) self = closer(*c);
  if (is_in_task_or_bulk(*c, *self)) return status::would_deadlock;
  // Pairs with count_in(). Where there is no heavy fence it is the later change of one word, and
  // sees every task that was counted before the earlier one.
  c->closing.exchange(1, memory_order_seq_cst);
  real_env::heavy_fence();
  tell_all_for_space(*c);
  if (cancel_waiting) {
    c->cancelling.store(1, memory_order_relaxed);
    c->runs_plainly.store(0, memory_order_relaxed);
    c->crew->recall(*self);
  }
  c->phase_open.store(0, memory_order_relaxed);
  if (!wait_quiescent(*c, *self, deadline_after(*c, timeout_ns)))
    return timeout_ns < 0 ? status::would_deadlock : status::timed_out;
  stop_workers(*c);
  return status::ok;
}

status close_by_force(runtime_state* c, std::int64_t timeout_ns) noexcept {
  // Deaths are reported within milliseconds, but a process in a system call may be late.
  constexpr std::int64_t grace_ns = 10'000'000'000;
  const status s = close_within(c, timeout_ns, true);
  if (s != status::timed_out || !c->crew->end_running(true)) return s;
  return close_within(c, grace_ns, true);
}

void close(runtime_state* c) noexcept {
  // After a fork() the data that the parent's threads were changing may be half changed: it is not
  // touched.
  if (is_absent(*c)) {
    if (!c->is_started) delete c;
    return;
  }
  const uncancelled now;
  // The program ends anyway, with everything that is left.
  if (is_exiting() && is_in_use(*c)) return;
  // Destroying a runtime from one of its own tasks can only end in a crash: end in a clear one.
  const status closed = close_within(c, no_timeout, false);
  LEV_EXPECTS(closed == status::ok || is_in_use(*c),
              "a runtime was destroyed whose tasks wait for each other and never end; wait for "
              "them first, or close() it and cancel those that have not begun");
  LEV_EXPECTS(
      closed == status::ok,
      "a runtime was destroyed by one of its own tasks or hooks, or while one of its bulks was "
      "made; destroy it where it was made. (A thread_local one is destroyed by exit() on its "
      "thread, too)");
  drop_exceptions(*c);
  for (std::uint32_t i = 0; i < c->participant_count; ++i) {
    participant& p = c->participants[i];
    LEV_DCHECK(is_at_rest(p) && p.inbox.looks_empty());
    close_contexts(p);
    if (p.store != nullptr) c->machine->close_store(p.store, c->settings.local_store_bytes);
  }
  announce_close(*c);
  delete c;
}

}  // namespace lev::detail
