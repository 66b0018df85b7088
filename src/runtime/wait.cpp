// Waiting: for one task, for any, for all, for everything, for a free slot. All of it is
// serve_until(), or inside a task wait_in_task(), with another `awaited`.
#include "runtime/wait.hpp"

#include "remote/straight_take.hpp"
#include "runtime/awaits.hpp"
#include "runtime/children.hpp"
#include "runtime/meaning.hpp"
#include "runtime/set_timeout.hpp"
#include "runtime/submit.hpp"
#include "sync/hook_call.hpp"
#include "worker/contexts.hpp"
#include "worker/worker.hpp"

#include <memory>
#include <new>
#include <utility>

namespace lev::detail {

namespace {

// A host first polls the ticket's own line, for about a task's round trip, before it looks for
// other work: looking elsewhere costs line transfers that a short task's wait should not pay.
// (bench null-task: a round trip takes 0.2 to 0.3 us.)
constexpr std::uint64_t poll_first_ns = 1'000;
// The fastest tasks are back before the clock has been read: look without it, and without relax(),
// first.
constexpr std::uint32_t hasty_looks = 100;

// A task that runs on this participant, below the caller, cannot be waited for here; nor can the
// join of its piece.
bool waits_for_itself(runtime_state& c, const participant& self, std::uint64_t id) noexcept {
  const std::uint32_t task = ticket_task(id);
  LEV_DCHECK(runs_here(self));
  if (c.task_slots.at(task).state.generation() != ticket_generation(id)) return false;
  for (const job* j = self.running; j != nullptr; j = j->below) {
    if (j->task == task || (j->parent == task && (j->flags & task_is_piece) != 0)) return true;
  }
  return false;
}

bool all_wait_for_themselves(runtime_state& c, const participant& self, const std::uint64_t* ids,
                             std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] != 0 && !waits_for_itself(c, self, ids[i])) return false;
  }
  return true;
}

void give_back(runtime_state& c, participant* self, std::uint32_t task) noexcept {
  c.task_slots.at(task).state.retire();
  index_cache none;
  give_slot(c, self != nullptr ? self->free_slots : none, task);
}

// A thread that is bound to no participant collects, too.
outcome collect(runtime_state& c, participant* self, std::uint64_t id) noexcept {
  const std::uint32_t task = ticket_task(id);
  slot& s = c.task_slots.at(task);
  outcome o{s.state.collect(ticket_generation(id))};
  if (o.code == status::stale_ticket || o.code == status::pending) return o;
  if (self != nullptr) note_wait(c, *self);
  LEV_DCHECK_LOOK(!s.state.is_free() && !s.state.is_live());  // taken, by this caller
  LEV_DCHECK((s.flags & (task_detached | task_is_piece)) == 0);
  if (o.code != status::ok) o = take_outcome(c, task, o.code);
  give_back(c, self, task);
  return o;
}

status check_wait(std::int64_t timeout_ns, wait_policy how) noexcept {
  const bool is_good = timeout_ns >= no_timeout && how <= wait_policy::of_runtime;
  return is_good ? status::ok : status::bad_argument;
}

// Whether the caller may wait at all for a task that is not done.
status check_waiter(const runtime_state& c, const participant* self) noexcept {
  if (self == nullptr) return status::would_block;
  if (hook_call::is_here_of(&c.sched)) return status::would_deadlock;
  // A task that waits too deep on its stack is set aside if there is another context to go on in.
  const bool has_context =
      self->staying == 0 && (self->contexts == nullptr || self->contexts->free != nullptr);
  const bool is_too_deep = self->nest >= c.settings.nest_max && !has_context;
  return is_too_deep ? status::too_deep : status::ok;
}

// The policy of a wait that was requested by `how`. A wait inside a task must help, or a single
// worker would wait for ever.
wait_policy policy_now(const runtime_state& c, const participant& self, wait_policy how) noexcept {
  if (self.running != nullptr) return wait_policy::help;
  if (how == wait_policy::of_runtime) return c.settings.wait;
  return how == wait_policy::help && !c.caps.working_hosts ? wait_policy::park : how;
}

// Hosts that share a core serve its other hosts instead of polling alone.
bool polls_first(wait_policy how) noexcept {
  return how != wait_policy::yield && how != wait_policy::directed;
}

void poll_first(runtime_state& c, await_ticket& what, std::uint64_t deadline_ns) noexcept {
  for (std::uint32_t look = 0; look < hasty_looks && !c.caps.virtual_time; ++look)
    if (what.is_there()) return;
  const std::uint64_t until = smaller(c.machine->now_ns() + poll_first_ns, deadline_ns);
  for (std::uint32_t turn = 1; !what.is_there(); ++turn) {
    c.machine->relax();
    if (turn % 16 == 0 && c.machine->now_ns() >= until) return;
  }
}

// Why a wait ended in vain: without a deadline, only because nothing can happen any more.
status gave_up(std::uint64_t deadline_ns) noexcept {
  return deadline_ns == no_deadline ? status::would_deadlock : status::timed_out;
}

// A program that polls must let virtual time pass, or nothing would ever happen. In a hook nothing
// would: others need what its thread holds.
void pass_look(runtime_state& c) noexcept {
  if (c.caps.virtual_time && !hook_call::is_here_of(&c.sched)) c.machine->relax();
}

}  // namespace

std::uint64_t deadline_after(runtime_state& c, std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return no_deadline;
  std::uint64_t at = 0;
  return checked_add(c.machine->now_ns(), static_cast<std::uint64_t>(timeout_ns), &at)
             ? at
             : no_deadline;
}

namespace {

bool await_one(runtime_state& c, participant& self, await_ticket& what, std::uint64_t deadline_ns,
               wait_policy how) noexcept {
  LEV_DCHECK(runs_here(self) && how != wait_policy::of_runtime);
  if (self.running == nullptr) {
    count_ended_pieces(c, self);
    // A task that is in a queue is better run here than waited for.
    const bool is_sent = how != wait_policy::help ||
                         c.task_slots.at(what.task).mailbox.load(memory_order_relaxed) != 0;
    if (c.mailboxes != 0 && is_sent && polls_first(how)) poll_first(c, what, deadline_ns);
    if (what.is_there()) return true;
  }
  return await(c, self, what, deadline_ns, how);
}

[[gnu::noinline]] outcome wait_any_way(runtime_state* c, participant* self, std::uint64_t id,
                                       std::int64_t timeout_ns, wait_policy asked) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return {s};
  if (const status s = check_wait(timeout_ns, asked); s != status::ok) return {s};
  if (self == nullptr && c->why_absent != nullptr) return {status::closed};
  if (self == nullptr) {  // the ticket can still be collected
    const outcome o = collect(*c, nullptr, id);
    return o.code == status::pending ? outcome{status::would_block} : o;
  }
  // The straight path is not for a task on top of a hook, which may run its children all the same.
  if (hook_call::is_here_of(&c->sched) && collect_child(*c, *self, id)) return {status::ok};
  await_ticket what(*c, *self, id);
  if (!what.is_there()) {
    if (waits_for_itself(*c, *self, id)) return {status::would_deadlock};
    if (timeout_ns == 0) {
      pass_look(*c);
      return {status::timed_out};
    }
    if (const status s = check_waiter(*c, self); s != status::ok) return {s};
    const std::uint64_t deadline = deadline_after(*c, timeout_ns);
    if (!await_one(*c, *self, what, deadline, policy_now(*c, *self, asked)))
      return {gave_up(deadline)};
  }
  return collect_success(*c, *self, id) ? outcome{status::ok} : collect(*c, self, id);
}

// Most waits are for a task that has succeeded, or a child that does so when it is run here.
[[gnu::always_inline]] inline bool wait_at_once(runtime_state* c, participant* self,
                                                std::uint64_t id) noexcept {
  return self != nullptr && (collect_success(*c, *self, id) || collect_child(*c, *self, id));
}

}  // namespace

outcome wait_one(runtime_state* c, std::uint64_t id, std::int64_t timeout_ns,
                 wait_policy asked) noexcept {
  participant* const self = c == nullptr ? nullptr : here(*c);
  if (check_wait(timeout_ns, asked) == status::ok && wait_at_once(c, self, id)) return {status::ok};
  return wait_any_way(c, self, id, timeout_ns, asked);
}

[[gnu::noinline]] void wait_long(runtime_state* c, std::uint64_t& id, wait_policy how) {
  const outcome o = wait_any_way(c, c == nullptr ? nullptr : here(*c), id, no_timeout, how);
  if (ticket::consumes(o.code)) id = 0;
  if (o.code != status::ok) throw_outcome(o);
}

outcome wait_surely(runtime_state* c, std::uint64_t id) noexcept {
  participant* self = here(*c);
  if (wait_at_once(c, self, id)) return {status::ok};
  await_ticket what(*c, *self, id);
  while (!what.is_there() &&
         !await_one(*c, *self, what, no_deadline, policy_now(*c, *self, wait_policy::of_runtime))) {
  }
  return collect(*c, self, id);
}

status peek(runtime_state* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  const status s = c->task_slots.at(ticket_task(id)).state.peek(ticket_generation(id));
  if (s != status::pending) return s;
  if (c->why_absent != nullptr) return status::closed;  // it stays as it was at the fork()
  if (here(*c) != nullptr) pass_look(*c);
  return s;
}

bool is_soon_done(runtime_state* c, std::uint64_t id, wait_policy how) noexcept {
  if (peek(c, id) != status::pending) return true;
  const slot& s = c->task_slots.at(ticket_task(id));
  if (how == wait_policy::of_runtime) how = c->settings.wait;
  if (s.mailbox.load(memory_order_relaxed) == 0 || !polls_first(how)) return false;
  std::uint32_t left = hasty_looks;
  while (s.state.peek(ticket_generation(id)) == status::pending && --left != 0) continue;
  return left != 0;
}

namespace {

// An exception that is not kept goes last: its destructor may submit.
[[gnu::noinline]] void give_back_failed(runtime_state& c, participant* self, std::uint32_t task,
                                        status result) noexcept {
  const std::exception_ptr unseen = fail_unclaimed(c, task, result);
  give_back(c, self, task);
}

}  // namespace

void release(runtime_state* c, std::uint64_t id) noexcept {
  if (check_ticket(c, id) != status::ok) return;
  participant* self = here(*c);
  if (self == nullptr && c->why_absent != nullptr) return;
  const std::uint32_t task = ticket_task(id);
  slot& s = c->task_slots.at(task);
  status result = status::ok;
  const auto released = s.state.release(ticket_generation(id), &result);
  if (released != task_state<>::release_result::freed) return;
  LEV_DCHECK(result != status::pending);
  if (result != status::ok) return give_back_failed(*c, self, task, result);
  give_back(*c, self, task);
}

namespace {

// ok, exists, or stale_ticket: too late. The callback is written after the announcement, under the
// lock: before, the slot could become another task's.
status announce_callback(task_state<>& state, std::uint32_t generation, slot_extra& extra,
                         void (*run)(void*), void* context) noexcept {
  const spin_guard<> held(extra.telling);
  const std::uint64_t w = state.word();
  if ((w & state_bits::called_back) != 0 && state_bits::generation(w) == generation &&
      state_bits::phase(w) == state_bits::live)
    return status::exists;
  if (!state.announce(generation, state_bits::called_back)) return status::stale_ticket;
  extra.callback = run;
  extra.callback_context = context;
  return status::ok;
}

}  // namespace

status on_complete(runtime_state* c, std::uint64_t id, void (*run)(void*), void* context) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (run == nullptr) return status::bad_argument;
  if (c->why_absent != nullptr) return status::closed;
  const std::uint32_t task = ticket_task(id);
  const std::uint32_t generation = ticket_generation(id);
  task_state<>& state = c->task_slots.at(task).state;
  if (state.peek(generation) == status::pending) {
    c->crew->want_ends();
    const status s = announce_callback(state, generation, c->task_slots.extra(task), run, context);
    if (s != status::stale_ticket) return s;
  }
  // It is complete, unless another thread consumes the ticket at this moment.
  if (state.peek(generation) == status::stale_ticket) return status::stale_ticket;
  call_back(*c, run, context);
  return status::ok;
}

bool wait_quiescent(runtime_state& c, participant& self, std::uint64_t deadline_ns) noexcept {
  note_wait(c, self);
  await_quiescent what(c, self);
  if (await(c, self, what, deadline_ns, c.settings.wait)) return true;
  pass_look(c);
  return false;
}

static wait_policy idle_policy(const runtime_state& c) noexcept {
  return c.settings.wait == wait_policy::help ? wait_policy::park : c.settings.wait;
}

// No thread is woken when a task of a scope is complete, so the waiter looks again and again.
void wait_space(runtime_state& c, participant& self, bool helps, std::uint32_t edges,
                std::uint64_t until_ns) noexcept {
  constexpr std::int64_t look_ns = 1'000'000;
  await_space what(c, self, edges, false, until_ns == no_deadline);
  if (!c.scopes.is_empty()) until_ns = smaller(until_ns, deadline_after(c, look_ns));
  await(c, self, what, until_ns, helps ? wait_policy::help : idle_policy(c));
}

void wait_join(runtime_state& c, participant& self, std::uint32_t joins_max) noexcept {
  await_join what(c, self, joins_max);
  const bool helps = c.settings.full == when_full::help;
  await(c, self, what, no_deadline, helps ? wait_policy::help : idle_policy(c));
}

bool wait_space_inside(runtime_state& c, participant& self, std::uint32_t edges) noexcept {
  await_space what(c, self, edges, true, false);
  return await(c, self, what, no_deadline, wait_policy::help, giving_up::when_still);
}

void throw_outcome(const outcome& o) {
  LEV_ASSERT(o.code != status::ok);
  if (o.exception) std::rethrow_exception(o.exception);
  char message[200];
  write_meaning(o, message, sizeof message);
  throw error(o.code, -1, message);
}

outcome wait_any_id(runtime_state* c, std::uint64_t* ids, std::size_t count, std::size_t* index,
                    std::int64_t timeout_ns, wait_policy how) noexcept {
  *index = none_ready;
  bool is_empty = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] == 0) continue;
    is_empty = false;
    if (const status s = check_ticket(c, ids[i]); s != status::ok) return {s};
  }
  if (is_empty) return {status::bad_argument};
  if (const status s = check_wait(timeout_ns, how); s != status::ok) return {s};
  participant* self = here(*c);
  if (self == nullptr && c->why_absent != nullptr) return {status::closed};
  participant& waiter =
      self != nullptr ? *self : c->participants[c->first_host];  // which is not armed
  await_any what(*c, waiter, ids, count);
  const std::uint64_t deadline = deadline_after(*c, timeout_ns);
  if (!what.is_there() && self != nullptr && all_wait_for_themselves(*c, *self, ids, count))
    return {status::would_deadlock};
  if (!what.is_there() && timeout_ns != 0) {
    if (const status s = check_waiter(*c, self); s != status::ok) return {s};
    await(*c, *self, what, deadline, policy_now(*c, *self, how));
  }
  const std::size_t done = what.first_done();
  if (done == none_ready && timeout_ns == 0 && self != nullptr) pass_look(*c);
  if (done == none_ready) return {timeout_ns == 0 ? status::timed_out : gave_up(deadline)};
  LEV_DCHECK(done < count && ids[done] != 0);
  *index = done;
  return collect(*c, self, std::exchange(ids[done], 0));
}

}  // namespace lev::detail

namespace lev {

namespace {

// The runtime of a set of tickets: all non-empty ones must be of the same. Null: the set is empty
// or mixed.
detail::runtime_state* home_of(const ticket* tickets, std::size_t count) noexcept {
  detail::runtime_state* home = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (!tickets[i]) continue;
    if (home != nullptr && tickets[i].home() != home) return nullptr;
    home = tickets[i].home();
  }
  return home;
}

// A host that waits for many tasks of other processes begins as each wait would, and needs none
// for those that have ended by now. Callbacks may run in it, so it is only for a ticket that is
// waited for: one whose task has failed is collected without. Only a thread that serves nowhere: a
// guest has more to do (runtime/guest.cpp), as has one whose batch is not sent. The clock begins
// before a callback runs. It may consume any of the tickets.
[[gnu::noinline]] void take_awaited_timed(detail::runtime_state& c, participant& self,
                                          ticket* tickets, std::size_t count,
                                          detail::set_timeout& timeout) noexcept {
  if (!detail::may_take_awaited(c, self, tickets[count - 1]) || timeout.is_poll() ||
      current_actor() != nullptr)
    return;
  auto& r = static_cast<remote_crew&>(*c.crew);
  if (r.is_service(self) || r.is_traced) return;
  timeout.begin(&c);
  detail::note_wait(c, self);
  take_awaited(r, self, tickets, count);
}

}  // namespace

outcome wait_all_any_way(ticket* tickets, std::size_t count, std::int64_t timeout_ns,
                         wait_policy how, bool has_looked) noexcept {
  if (tickets == nullptr && count != 0) [[unlikely]]
    return {status::bad_argument};
  outcome all{status::ok};
  detail::set_timeout timeout(timeout_ns);
  bool is_late = false;
  const bool is_good = detail::check_wait(timeout_ns, how) == status::ok;
  // It begins with the last one, because tasks mostly end in order: README.md.
  detail::runtime_state* home = nullptr;
  participant* self = nullptr;
  for (std::size_t i = count; i-- > 0;) {
    if (!tickets[i]) continue;
    if (tickets[i].home() != home) {
      home = tickets[i].home();
      self = home == nullptr || !is_good ? nullptr : detail::here(*home);
    }
    std::size_t left = i + 1;
    if (self != nullptr && home->asks_crew && !std::exchange(has_looked, false)) {
      take_awaited_timed(*home, *self, tickets, left, timeout);
      if (!tickets[i]) continue;
    }
    if (self != nullptr) left = detail::collect_ended(*home, *self, tickets, left);
    if (left > i && self != nullptr && self->running != nullptr) [[unlikely]] {
      timeout.left_ns(home);  // its clock begins before a child runs
      left = detail::collect_children(*home, *self, tickets, left);
    }
    if (left <= i) {
      i = left;
      continue;
    }
    const outcome o = detail::wait_any_way(home, self, tickets[i].id(), timeout.next_ns(home), how);
    if (ticket::consumes(o.code)) tickets[i].forget();
    if (o.code == status::ok) continue;
    if (o.code == status::timed_out) {
      is_late = true;
      timeout.end();  // the others are consumed if they have ended
      continue;
    }
    if (!ticket::consumes(o.code)) {
      all.code = o.code;
      return all;
    }
    const std::uint32_t failures = all.failures + larger(o.failures, 1u);
    all = o;
    all.failures = failures;
  }
  if (is_late) all.code = status::timed_out;
  return all;
}

outcome wait_any(ticket* tickets, std::size_t count, std::size_t* index, std::int64_t timeout_ns,
                 wait_policy how) noexcept {
  if (index == nullptr) return {status::bad_argument};
  *index = none_ready;
  if (tickets == nullptr) return {status::bad_argument};
  detail::runtime_state* c = home_of(tickets, count);
  if (c == nullptr) return {status::bad_argument};
  const std::unique_ptr<std::uint64_t[]> ids(new (std::nothrow) std::uint64_t[count]);
  if (ids == nullptr) return {status::out_of_memory};
  for (std::size_t i = 0; i < count; ++i) ids[i] = tickets[i].id();
  const outcome o = detail::wait_any_id(c, ids.get(), count, index, timeout_ns, how);
  if (*index != none_ready) tickets[*index].forget();
  return o;
}

}  // namespace lev
