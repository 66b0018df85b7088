// ordered: dependences inferred from the memory that tasks declare. The scope holds the tickets of
// its tasks, and the uses of their memory until they are complete (flow/memory_uses.hpp).
//
//   1. validate the task, as the uses are compared with what it names
//   2. find the tasks that it follows: those under way that conflict with it. If one of them has
//      failed, it does not run, and has failed, too
//   3. submit it after() those, or after empty tasks in their place if they are more than a task
//      can name; where no ticket is free, collect those of complete tasks first
//   4. note its uses
//
// Then come the outcomes of its tasks, waiting for them, and giving back the tickets of those that
// are complete.
#include "runtime/ordered_state.hpp"
#include "runtime/set_timeout.hpp"
#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "sync/exiting.hpp"
#include "task/plain.hpp"
#include "task/procedure_table.hpp"
#include "task/validate.hpp"
#include "worker/complete.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace lev {

namespace {

[[noreturn]] void throw_refusal(const refusal& why) {
  throw error(why.code, why.argument, why.message);
}

constexpr const char* in_call_already =
    "another call of this scope is under way, in another thread or around this callback: give each "
    "its own scope";

// 0: the table of procedures is full.
procedure_id join_procedure() noexcept {
  static const procedure_id id = []() noexcept -> procedure_id {
    try {
      return register_own(detail::describe("leveret.join", +[] {}));
    } catch (const std::exception&) {
      return 0;
    }
  }();
  return id;
}

}  // namespace

// False: it follows one that has failed.
bool ordered::state::find_before(const descriptor& task) {
  before.clear();
  if (is_stopped) return false;
  bool is_good = true;
  ++searches;
  uses.look_up(task.arguments, task.argument_count);
  uses.visit_conflicts([&](std::uint32_t place) {
    LEV_DCHECK(place < members.size() && members[place].is_used);
    member& m = members[place];
    if (std::exchange(m.seen, searches) == searches) return;
    const status s = status_of(m);
    if (s == status::pending) before.push_back(place);
    is_good &= s == status::pending || s == status::ok;
  });
  return is_good;
}

// So that nothing has to be allocated once the task is submitted.
void ordered::state::make_room() {
  const std::size_t count = members.size() + 1;
  if (unwanted.capacity() - unwanted.size() < count) unwanted.reserve(unwanted.size() + 2 * count);
  if (!unused.empty()) return;
  if (unused.capacity() < count) unused.reserve(2 * count);
  if (before.capacity() < count) before.reserve(2 * count);
  members.emplace_back();
  unused.push_back(static_cast<std::uint32_t>(members.size() - 1));
}

// Submits an empty task after some of `before`. nobody: there is no ticket for it, or no edge.
std::uint32_t ordered::state::join(std::size_t first, std::size_t count) {
  LEV_DCHECK(count > 1 && count <= options::after_max && first + count <= before.size());
  const detail::draft nothing{{join_procedure(), 0}, nullptr};
  if (nothing.procedure == 0) return nobody;
  options all;
  for (std::size_t i = first; i < first + count; ++i) all.after_id(members[before[i]].ticket);
  refusal why;
  const std::uint64_t id = detail::submit_now(&c, nothing, &all, &why);
  if (id == 0 && why.code != status::would_block) throw_refusal(why);
  if (id == 0) return nobody;
  ++under_way;
  const std::uint32_t place = take_place(id);
  members[place].is_join = true;
  make_room();
  return place;
}

// Puts joins in the place of as many in `before` as a task can name, until so few are left. False:
// there are still more.
bool ordered::state::join_before(std::size_t count_max) {
  LEV_DCHECK(count_max != 0);
  std::size_t done = 0;
  std::uint32_t place = 0;
  while (place != nobody && before.size() - done > count_max) {
    const std::size_t count = smaller(before.size() - done, std::size_t{options::after_max});
    place = join(done, count);
    if (place == nobody) break;
    done += count;
    before.push_back(place);
  }
  before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(done));
  return place != nobody;
}

// 0: it follows one that has failed. Each turn except the last waits for some task.
std::uint64_t ordered::state::submit_after(const descriptor& task, const options* o,
                                           bool is_plain) {
  LEV_DCHECK(busy.is_held() && !unused.empty());
  const std::size_t own_max = options::after_max - (o == nullptr ? 0 : o->after_count());
  for (;;) {
    if (!find_before(task)) return 0;
    if (before.size() > own_max && (own_max == 0 || !join_before(own_max))) {
      wait_for_oldest(before, before.size() - own_max);
      continue;
    }
    const detail::draft d = detail::draft_of(task);
    if (is_plain) {
      std::uint64_t tickets[options::after_max];
      for (std::size_t i = 0; i < before.size(); ++i) tickets[i] = members[before[i]].ticket;
      const std::uint64_t id = detail::submit_behind(c, d, {tickets, before.size()});
      if (id != 0) return id;
    }
    options all = o == nullptr ? options() : *o;
    for (const std::uint32_t place : before) all.after_id(members[place].ticket);
    const options* const own = o == nullptr && before.empty() ? nullptr : &all;
    refusal why;
    const std::uint64_t id = detail::submit_now(&c, d, own, &why);
    if (id != 0) return id;
    if (why.code != status::would_block) throw_refusal(why);
    const std::size_t enough = under_way / 4;
    const std::size_t collected = collect_complete();
    if (collected > enough) continue;
    const bool may_wait = under_way != 0 && c.settings.full != when_full::fail;
    if (may_wait) wait_for_some();
    if (!may_wait && collected == 0) return detail::submit(&c, d, own, false);
  }
}

std::uint32_t ordered::state::take_place(std::uint64_t id) noexcept {
  LEV_DCHECK(!unused.empty() && !members[unused.back()].is_used);
  const std::uint32_t place = unused.back();
  unused.pop_back();
  members[place] = {id, submitted, 0, false, true, false};
  return place;
}

void ordered::state::skip() noexcept {
  outcome how{status::dependency_failed};
  note_failure(submitted, how);
  if (is_stopped) return;
  const std::uint32_t place = take_place(0);
  count_failed(members[place]);
  uses.add(place);
}

// True: the task is a plain one (task/plain.hpp). Throws what is wrong with it.
static bool check(const descriptor& task) {
  const detail::draft d = detail::draft_of(task);
  const procedure_entry* const p = find_procedure(task.procedure);
  if (p != nullptr && passes_plainly(d, *p)) return true;
  draft_facts facts;
  refusal why;
  if (!validate(d, &facts, &why)) throw_refusal(why);
  return false;
}

std::uint64_t ordered::state::submit(const descriptor& task, const options* o) {
  const bool is_plain = check(task);
  if (c.why_absent != nullptr) throw error(status::closed, -1, c.why_absent);
  const call now(*this);
  if (!now) throw error(status::would_block, -1, in_call_already);
  // Here, as the scope may be a static object that is younger than its runtime's first call.
  if (!std::exchange(is_watched, true)) watch_exit(exit_watcher::scope);
  if (under_way >= collect_at) collect_complete();
  make_room();
  const std::uint64_t id = submit_after(task, o, is_plain && o == nullptr);
  ++submitted;
  if (id == 0) {
    skip();
  } else {
    ++under_way;
    uses.add(take_place(id));
  }
  return id;
}

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
  detail::set_timeout timeout(timeout_ns);
  for (std::uint32_t place = next_awaited(); place != nobody; place = next_awaited()) {
    const outcome how = wait_for(members[place], timeout.next_ns(&c));
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

ordered::ordered(runtime& home) : state_(new state(*home.state())) {}

ordered::~ordered() {
  if (state_->finish()) delete state_;
}

std::uint64_t ordered::submit_id(const descriptor& task, const options* o) {
  return state_->submit(task, o);
}

outcome ordered::wait_outcome(std::int64_t timeout_ns) noexcept {
  return state_->wait(timeout_ns);
}

void ordered::wait() {
  bool is_in_call = false;
  const outcome o = state_->wait(no_timeout, &is_in_call);
  if (is_in_call) throw error(o.code, -1, in_call_already);
  if (o.code != status::ok) detail::throw_outcome(o);
}

}  // namespace lev
