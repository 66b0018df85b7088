// ordered: dependences inferred from the memory that tasks declare. The scope holds the tickets of
// its tasks, and the uses of their memory until they are complete (flow/memory_uses.hpp).
//
//   1. validate the task, as the uses are compared with what it names
//   2. find the tasks that it follows: those under way that conflict with it. If one of them has
//      failed, it does not run, and has failed, too
//   3. submit it after() those, or after empty tasks in their place if they are more than a task
//      can name; where no ticket is free, collect those of complete tasks first
//   4. note its uses
#include "runtime/ordered_state.hpp"
#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "sync/exiting.hpp"
#include "task/plain.hpp"
#include "task/procedure_table.hpp"
#include "task/validate.hpp"
#include "worker/complete.hpp"

#include <algorithm>
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
