// ordered: dependences inferred from the memory that tasks declare. The scope holds the tickets of
// its tasks, and the uses of their memory until they are complete (flow/memory_uses.hpp).
//
//   1. validate the task, as the uses are compared with what it names
//   2. find the tasks that it follows: those under way that conflict with it. If one of them has
//      failed, it does not run, and has failed, too
//   3. submit it after() those, or after empty tasks in their place if they are more than a task
//      can name; where no ticket is free, collect those of complete tasks first
//   4. note its uses
#include <leveret/ordered.hpp>

#include "flow/memory_uses.hpp"
#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "task/procedure_table.hpp"
#include "task/validate.hpp"
#include "worker/complete.hpp"

#include <algorithm>
#include <vector>

namespace lev {

using detail::runtime_state;

struct ordered::state {
  explicit state(runtime_state& of) noexcept : c(of) {}

  struct member {
    std::uint64_t ticket = 0;  // 0: it was collected
    std::uint64_t number = 0;  // of the submit
    std::uint64_t seen = 0;    // the latest search that has found it
    bool has_failed = false;
    bool is_used = false;
    bool is_join = false;  // an empty task, which stands for others
  };

  // Failed tasks whose uses are kept; with more, no task of the scope runs any more.
  static constexpr std::size_t failed_max = 4096;
  static constexpr std::size_t collected_at_once = 64;

  runtime_state& c;
  memory_uses uses;
  std::vector<member> members;
  std::vector<std::uint32_t> unused;  // places in `members`
  std::vector<std::uint32_t> before;  // tasks that the next task follows
  std::uint64_t submitted = 0;
  std::uint64_t searches = 0;
  std::size_t under_way = 0;  // members with a ticket
  std::size_t failed = 0;     // members that have failed
  std::size_t collect_at = collected_at_once;
  outcome failure;
  std::uint64_t failure_number = 0;
  std::uint32_t failures = 0;
  bool is_stopped = false;  // too many have failed

  std::uint64_t submit(const descriptor& task, const options* o);
  outcome wait(std::int64_t timeout_ns) noexcept;
  void finish() noexcept;

 private:
  status status_of(const member& m) const noexcept;
  void note_failure(std::uint64_t number, outcome how) noexcept;
  void count_failed(member& m) noexcept;
  bool collect(member& m, const outcome& how) noexcept;
  std::size_t collect_complete() noexcept;
  bool find_before(const descriptor& task);
  void wait_for_oldest(std::vector<std::uint32_t>& of, std::size_t count);
  void wait_for_some();
  void make_room();
  std::uint32_t join(std::size_t first, std::size_t count);
  bool join_before(std::size_t count_max);
  std::uint64_t submit_after(const descriptor& task, const options* o);
  std::uint32_t take_place(std::uint64_t id) noexcept;
  void skip(memory_uses::map&& list) noexcept;
  std::uint32_t newest() const noexcept;
  outcome take_result() noexcept;
};

namespace {

[[noreturn]] void throw_refusal(const refusal& why) {
  throw error(why.code, why.argument, why.message);
}

outcome with_code(status code) noexcept {
  outcome o;
  o.code = code;
  return o;
}

constexpr std::uint32_t nobody = ~std::uint32_t{0};

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

// The first failure is that of the earliest submit, whichever was seen first.
void ordered::state::note_failure(std::uint64_t number, outcome how) noexcept {
  const std::uint32_t more = larger(how.failures, 1u);
  if (failures == 0 || number < failure_number) {
    failure = std::move(how);
    failure_number = number;
  }
  failures += more;
}

status ordered::state::status_of(const member& m) const noexcept {
  if (m.has_failed) return status::dependency_failed;
  if (m.ticket == 0) return status::ok;
  return c.task_slots.at(detail::ticket_task(m.ticket))
      .state.peek(detail::ticket_generation(m.ticket));
}

void ordered::state::count_failed(member& m) noexcept {
  m.has_failed = true;
  if (++failed > failed_max) is_stopped = true;
}

// False: the ticket stays.
bool ordered::state::collect(member& m, const outcome& how) noexcept {
  if (!ticket::consumes(how.code)) return false;
  LEV_DCHECK(m.is_used && m.ticket != 0 && !m.has_failed && under_way != 0);
  m.ticket = 0;
  --under_way;
  if (how.code == status::ok || m.is_join) return true;  // of a join, others are to blame
  count_failed(m);
  note_failure(m.number, how);
  return true;
}

// Returns how many tickets it has freed.
std::size_t ordered::state::collect_complete() noexcept {
  const std::size_t before_it = under_way;
  for (member& m : members) {
    if (m.ticket != 0 && status_of(m) != status::pending)
      collect(m, detail::wait_one(&c, m.ticket, 0));
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

// False: it follows one that has failed.
bool ordered::state::find_before(const descriptor& task) {
  before.clear();
  bool is_good = !is_stopped;
  ++searches;
  for (unsigned i = 0; i < task.argument_count && is_good; ++i) {
    const argument& a = task.arguments[i];
    if (!has_address(a) || is_empty(a)) continue;
    uses.visit_conflicts(a, [&](std::uint32_t place) {
      LEV_DCHECK(place < members.size() && members[place].is_used);
      member& m = members[place];
      if (std::exchange(m.seen, searches) == searches) return;
      const status s = status_of(m);
      if (s == status::pending) before.push_back(place);
      is_good &= s == status::pending || s == status::ok;
    });
  }
  return is_good;
}

void ordered::state::wait_for_oldest(std::vector<std::uint32_t>& of, std::size_t count) {
  std::sort(of.begin(), of.end(), [this](std::uint32_t a, std::uint32_t b) {
    return members[a].number < members[b].number;
  });
  LEV_DCHECK(count <= of.size());
  for (std::size_t i = count; i-- > 0;) {
    member& m = members[of[i]];
    const outcome how = detail::wait_one(&c, m.ticket, forever);
    if (!collect(m, how)) detail::throw_outcome(how);
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

// So that nothing has to be allocated once the task is submitted.
void ordered::state::make_room() {
  if (!unused.empty()) return;
  const std::size_t count = members.size() + 1;
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
std::uint64_t ordered::state::submit_after(const descriptor& task, const options* o) {
  const std::size_t own_max = options::after_max - (o == nullptr ? 0 : o->after_count());
  for (;;) {
    if (!find_before(task)) return 0;
    if (before.size() > own_max && (own_max == 0 || !join_before(own_max))) {
      wait_for_oldest(before, before.size() - own_max);
      continue;
    }
    options all = o == nullptr ? options() : *o;
    for (const std::uint32_t place : before) all.after_id(members[place].ticket);
    const bool is_plain = o == nullptr && before.empty();
    refusal why;
    const detail::draft d = detail::draft_of(task);
    const std::uint64_t id = detail::submit_now(&c, d, is_plain ? nullptr : &all, &why);
    if (id != 0) return id;
    if (why.code != status::would_block) throw_refusal(why);
    const std::size_t enough = under_way / 4;
    const std::size_t collected = collect_complete();
    if (collected > enough) continue;
    const bool may_wait = under_way != 0 && c.settings.full != when_full::fail;
    if (may_wait) wait_for_some();
    if (!may_wait && collected == 0) return detail::submit(&c, d, is_plain ? nullptr : &all, false);
  }
}

std::uint32_t ordered::state::take_place(std::uint64_t id) noexcept {
  LEV_DCHECK(!unused.empty() && !members[unused.back()].is_used);
  const std::uint32_t place = unused.back();
  unused.pop_back();
  members[place] = {id, submitted, 0, false, true, false};
  return place;
}

void ordered::state::skip(memory_uses::map&& list) noexcept {
  note_failure(submitted, with_code(status::dependency_failed));
  if (is_stopped) return;
  const std::uint32_t place = take_place(0);
  count_failed(members[place]);
  uses.add(std::move(list), place);
}

std::uint64_t ordered::state::submit(const descriptor& task, const options* o) {
  draft_facts facts;
  refusal why;
  if (!validate(detail::draft_of(task), &facts, &why)) throw_refusal(why);
  if (under_way >= collect_at) collect_complete();
  make_room();
  memory_uses::map list = memory_uses::list_of(task.arguments, task.argument_count);
  const std::uint64_t id = submit_after(task, o);
  ++submitted;
  if (id == 0) {
    skip(std::move(list));
  } else {
    ++under_way;
    uses.add(std::move(list), take_place(id));
  }
  return id;
}

std::uint32_t ordered::state::newest() const noexcept {
  std::uint32_t found = nobody;
  for (std::uint32_t place = 0; place < members.size(); ++place) {
    const member& m = members[place];
    if (m.ticket != 0 && (found == nobody || m.number > members[found].number)) found = place;
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
  uses.clear();
  failed = 0;
  is_stopped = false;
  collect_at = collected_at_once;
  return o;
}

// The newest one first: tasks mostly end in order, and a waiter that sleeps until the last has
// ended is woken once.
outcome ordered::state::wait(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < forever) return with_code(status::bad_argument);
  const std::uint64_t deadline = detail::deadline_after(c, timeout_ns);
  for (std::uint32_t place = newest(); place != nobody; place = newest()) {
    const std::uint64_t now = timeout_ns > 0 ? c.machine->now_ns() : 0;
    const auto left = static_cast<std::int64_t>(deadline > now ? deadline - now : 0);
    const outcome how =
        detail::wait_one(&c, members[place].ticket, timeout_ns > 0 ? left : timeout_ns);
    const bool is_collected = collect(members[place], how);
    collect_complete();  // also of a poll: others may need the tickets
    if (!is_collected) return how;
  }
  return take_result();
}

// In a child of fork() the tasks are the parent's.
void ordered::state::finish() noexcept {
  if (detail::is_absent(c)) return;
  for (std::uint32_t place = newest(); place != nobody; place = newest()) {
    member& m = members[place];
    while (detail::here(c) == nullptr && status_of(m) == status::pending) c.machine->relax();
    const bool may_wait = detail::here(c) != nullptr;
    collect(m, may_wait ? detail::wait_surely(&c, m.ticket) : detail::wait_one(&c, m.ticket, 0));
    collect_complete();
  }
  outcome result = take_result();
  if (result.code != status::ok) keep_failure(c, std::move(result));
}

ordered::ordered(runtime& home) : state_(std::make_unique<state>(*home.state())) {}

ordered::~ordered() {
  state_->finish();
}

std::uint64_t ordered::submit_id(const descriptor& task, const options* o) {
  return state_->submit(task, o);
}

outcome ordered::wait_outcome(std::int64_t timeout_ns) noexcept {
  return state_->wait(timeout_ns);
}

void ordered::wait() {
  const outcome o = wait_outcome();
  if (o.code != status::ok) detail::throw_outcome(o);
}

}  // namespace lev
