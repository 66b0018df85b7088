// The second half of ordered.cpp: the outcomes of a scope's tasks, waiting for them, and giving
// back the tickets of those that are complete.
#include "runtime/open.hpp"
#include "runtime/ordered_state.hpp"
#include "runtime/wait.hpp"
#include "sync/exiting.hpp"
#include "worker/complete.hpp"

#include <algorithm>
#include <new>

namespace lev {

// The first failure is that of the earliest submit, whichever was seen first. Exceptions of others
// are put aside, see ~call().
void ordered::state::note_failure(std::uint64_t number, outcome& how) noexcept {
  const std::uint32_t more = larger(how.failures, 1u);
  if (failures == 0 || number < failure_number) {
    std::swap(failure, how);
    failure_number = number;
  }
  failures += more;
  if (how.exception == nullptr) return;
  LEV_DCHECK(unwanted.size() < unwanted.capacity());
  unwanted.push_back(std::move(how.exception));  // there is room: make_room()
}

// Without memory they stay for a later call. `unwanted` keeps its room.
std::vector<std::exception_ptr> ordered::state::take_unwanted() noexcept {
  std::vector<std::exception_ptr> taken;
  try {
    taken.resize(unwanted.size());
  } catch (const std::bad_alloc&) {
    return taken;
  }
  std::move(unwanted.begin(), unwanted.end(), taken.begin());
  unwanted.clear();
  return taken;
}

void ordered::state::count_failed(member& m) noexcept {
  m.has_failed = true;
  if (++failed > failed_max) is_stopped = true;
}

// False: the ticket stays. Takes the exception.
bool ordered::state::collect(member& m, outcome& how) noexcept {
  if (!ticket::consumes(how.code)) return false;
  LEV_DCHECK(m.is_used && m.ticket != 0 && !m.has_failed && under_way != 0);
  m.ticket = 0;
  --under_way;
  if (how.code == status::ok || m.is_join) return true;  // of a join, others are to blame
  count_failed(m);
  note_failure(m.number, how);
  return true;
}

// Returns how many tickets it has freed. A stale one is that for which the owner has waited, and
// which it is about to note.
std::size_t ordered::state::collect_complete(who caller) noexcept {
  LEV_DCHECK(busy.is_held());
  const std::size_t before_it = under_way;
  participant* const self = under_way == 0 ? nullptr : detail::here(c);
  for (member& m : members) {
    if (m.ticket == 0) continue;
    if (self != nullptr && detail::collect_success(c, *self, m.ticket)) {
      outcome good{status::ok};
      collect(m, good);
      continue;
    }
    if (status_of(m) == status::pending) continue;
    outcome how = detail::wait_one(&c, m.ticket, 0);
    if (how.code != status::stale_ticket || caller == who::owner) collect(m, how);
  }
  uses.drop([this](std::uint32_t place) {
    return members[place].ticket == 0 && !members[place].has_failed;
  });
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    member& m = members[place];
    if (!m.is_used || m.ticket != 0 || m.has_failed) continue;
    LEV_DCHECK(unused.size() < unused.capacity());
    m.is_used = false;
    unused.push_back(place);  // there is room: make_room()
  }
  collect_at = under_way + larger(collected_at_once, under_way / 2);
  return before_it - under_way;
}

// Both are for the owner, which lets others collect meanwhile. After a code that consumes no
// ticket, the task still has its ticket.
outcome ordered::state::wait_for(member& m, std::int64_t timeout_ns) noexcept {
  LEV_DCHECK(busy.is_held());
  const std::uint64_t ticket = m.ticket;
  if (ticket == 0) return {status::ok};
  busy.unlock();
  outcome how = detail::wait_one(&c, ticket, timeout_ns);
  busy.lock();
  if (m.ticket != ticket) return {status::ok};  // another has collected it
  collect(m, how);
  return how;
}
void ordered::state::wait_surely_for(member& m) noexcept {
  LEV_DCHECK(busy.is_held() && m.ticket != 0);
  const std::uint64_t ticket = m.ticket;
  busy.unlock();
  while (detail::here(c) == nullptr && detail::peek(&c, ticket) == status::pending)
    c.machine->relax();
  const bool may_wait = detail::here(c) != nullptr;
  outcome how = may_wait ? detail::wait_surely(&c, ticket) : detail::wait_one(&c, ticket, 0);
  busy.lock();
  if (m.ticket == ticket) collect(m, how);
}

void ordered::state::wait_for_oldest(std::vector<std::uint32_t>& of, std::size_t count) {
  std::sort(of.begin(), of.end(), [this](std::uint32_t a, std::uint32_t b) {
    return members[a].number < members[b].number;
  });
  LEV_DCHECK(count <= of.size());
  for (std::size_t i = count; i-- > 0;) {
    const outcome how = wait_for(members[of[i]], no_timeout);
    if (!ticket::consumes(how.code)) detail::throw_outcome(how);
  }
}

// A quarter of them: then going through all the others is worth it. A submitter that looked for
// each ticket as it becomes free would do nothing else, and run no task.
void ordered::state::wait_for_some() {
  std::vector<std::uint32_t> with_ticket;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    if (members[place].ticket != 0) with_ticket.push_back(place);
  }
  wait_for_oldest(with_ticket, with_ticket.size() / 4 + 1);
  collect_complete();
}

// Tasks mostly end in order, and a waiter that sleeps until the last has ended is woken once. But
// it would then collect all others when the workers have nothing left to do; so of many tasks it
// waits for one shortly before the last.
std::uint32_t ordered::state::next_awaited() const noexcept {
  std::uint64_t first = submitted;
  std::uint64_t last = 0;
  for (const member& m : members) {
    if (m.ticket == 0) continue;
    first = smaller(first, m.number);
    last = larger(last, m.number);
  }
  if (under_way > collected_at_once) last -= (last - first) / 8;
  std::uint32_t found = nobody;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    const member& m = members[place];
    if (m.ticket == 0 || m.number > last) continue;
    if (found == nobody || m.number > members[found].number) found = place;
  }
  return found;
}

outcome ordered::state::take_result() noexcept {
  LEV_DCHECK(under_way == 0);
  outcome o = std::exchange(failure, outcome{});
  o.failures = std::exchange(failures, 0);
  if (o.failures == 0) o.code = status::ok;
  members.clear();
  unused.clear();
  uses.forget_all();
  failed = 0;
  is_stopped = false;
  collect_at = collected_at_once;
  return o;
}

outcome ordered::state::wait(std::int64_t timeout_ns, bool* is_in_call) noexcept {
  if (timeout_ns < no_timeout) return {status::bad_argument};
  if (c.why_absent != nullptr) return {status::closed};
  const call now(*this);
  if (is_in_call != nullptr) *is_in_call = !now;
  if (!now) return {status::would_block};
  const std::uint64_t deadline = detail::deadline_after(c, timeout_ns);
  for (std::uint32_t place = next_awaited(); place != nobody; place = next_awaited()) {
    const std::uint64_t now_ns = timeout_ns > 0 ? c.machine->now_ns() : 0;
    const auto left = static_cast<std::int64_t>(deadline > now_ns ? deadline - now_ns : 0);
    const outcome how = wait_for(members[place], timeout_ns > 0 ? left : timeout_ns);
    collect_complete();  // also of a poll: others may need the tickets
    if (!ticket::consumes(how.code)) return how;
  }
  return take_result();
}

std::size_t ordered::state::give_back() noexcept {
  if (!busy.try_lock()) return 0;
  const std::size_t given = collect_complete(who::another);
  busy.unlock();
  return given;
}

// Whether the caller is in a task of the scope, or in a piece of one, which waits for it then.
bool ordered::state::is_in_own_task() const noexcept {
  const participant* const self = under_way == 0 ? nullptr : detail::here(c);
  for (const job* one = self == nullptr ? nullptr : self->running; one != nullptr;
       one = one->below) {
    if (one->task == no_slot) continue;
    const std::uint32_t task = whole_of(c.task_slots.at(one->task), one->task);
    for (const member& m : members) {
      // The program may have used up the ticket; its slot is another task's then.
      if (m.ticket != 0 && detail::ticket_task(m.ticket) == task && status_of(m) == status::pending)
        return true;
    }
  }
  return false;
}

// In a child of fork() the tasks are the parent's. A static scope that exit() destroys in a task,
// or while another thread is in a call of it, is left as it is, as a runtime is (close.cpp).
bool ordered::state::finish() noexcept {
  if (detail::is_absent(c)) return true;
  if (is_exiting() && detail::is_in_use(c)) return false;
  // The exceptions that each round lets go of may submit to the scope.
  std::size_t kept = 0;  // for want of memory
  for (bool is_over = false; !is_over; kept = unwanted.size()) {
    const call last(*this);
    if (!last && is_exiting()) return false;
    LEV_EXPECTS(last,
                "a scope of ordered tasks was destroyed within a call of its own, by a task or a "
                "callback, or while another thread was in one; destroy it when its calls are over");
    LEV_EXPECTS(!is_in_own_task(),
                "a scope of ordered tasks was destroyed by one of its own tasks, for which it "
                "waits; destroy it where it was made");
    for (std::uint32_t place = next_awaited(); place != nobody; place = next_awaited()) {
      wait_surely_for(members[place]);
      collect_complete();
    }
    is_over = unwanted.size() == kept;
  }
  c.scopes.remove(*this);
  outcome result = take_result();
  if (result.code != status::ok) keep_failure(c, std::move(result));
  return true;
}

}  // namespace lev
