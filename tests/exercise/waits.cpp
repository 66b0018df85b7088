// Steps that wait for tasks. See interpret.hpp.
#include "exercise/interpret.hpp"

#include <leveret/leveret.h>

#include <sched.h>
#include <stdexcept>
#include <vector>

namespace lev::exercise {

std::string task_name(std::uint32_t task) {
  return "task " + std::to_string(task);
}

void collected(world& w, std::uint32_t task, const outcome& o) {
  sighting& seen = w.seen[task];
  if (seen.is_collected) w.blame(task_name(task) + ": collected twice");
  seen.is_collected = true;
  seen.seen = o;
  settle(w, task, o.code);
  w.live.fetch_sub(slots_of(w.plan.tasks[task]));
  if (!o.exception) return;
  try {
    std::rethrow_exception(o.exception);
  } catch (const std::exception& e) {
    seen.text = e.what();
  } catch (...) {
    seen.text = "?";
  }
  seen.seen.exception = nullptr;
}

void drop(world& w, std::uint32_t task) {
  if (!w.tickets[task]) return;
  w.seen[task].is_released = true;
  // It holds its slot until it is complete, and nobody is told when that is.
  w.tickets[task].release();
}

bool may_refuse_wait(const frame& f, status code, std::int64_t timeout_ns) noexcept {
  const settings& c = f.w.plan.config;
  switch (code) {
    case status::timed_out:
      return timeout_ns >= 0;
    case status::too_deep:
      // A callback is called on top of whatever its caller waits in.
      return f.depth + f.w.handed_count + (f.is_callback ? 8 : 0) >= c.nest_max;
    case status::would_deadlock:
      return f.depth != 0 && f.w.may_all_wait;
    default:
      return false;
  }
}

outcome from_c(const lev_outcome& out) {
  outcome o;
  o.code = static_cast<status>(out.code);
  o.task_code = out.task_code;
  o.failures = out.failures;
  if (out.message[0] != 0) o.exception = std::make_exception_ptr(std::runtime_error(out.message));
  return o;
}

namespace {

void took(const frame& f, std::uint32_t task, const outcome& o, std::int64_t timeout_ns) {
  if (ticket::consumes(o.code)) return collected(f.w, task, o);
  if (!may_refuse_wait(f, o.code, timeout_ns)) {
    f.w.blame(task_name(task) + ": a wait for it, at depth " + std::to_string(f.depth) +
              ", ended with " + status_name(o.code));
  }
}

outcome wait_in_c(world& w, ticket& t, const step& s) {
  lev_outcome out{};
  lev_wait_by(in_c(w), t.id(), s.timeout_ns, static_cast<lev_wait_policy>(s.policy), &out);
  const outcome o = from_c(out);
  if (ticket::consumes(o.code)) t.forget();
  return o;
}

outcome wait_any_in_c(world& w, std::vector<ticket>& all, std::size_t* index, const step& s) {
  std::vector<lev_ticket> ids;
  for (const ticket& t : all) ids.push_back(t.id());
  lev_outcome out{};
  out.code =
      static_cast<lev_status>(lev_wait_any_by(in_c(w), ids.data(), ids.size(), s.timeout_ns,
                                              static_cast<lev_wait_policy>(s.policy), index, &out));
  if (*index < all.size() && ids[*index] == 0 && all[*index]) {
    all[*index].forget();
  } else {
    *index = none_ready;
  }
  return from_c(out);
}

std::vector<ticket> gather(world& w, const std::vector<std::uint32_t>& tasks) {
  std::vector<ticket> all;
  for (const std::uint32_t t : tasks) all.push_back(std::move(w.tickets[t]));
  return all;
}

void give_back(world& w, const std::vector<std::uint32_t>& tasks, std::vector<ticket>& all) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (all[i]) w.tickets[tasks[i]] = std::move(all[i]);
  }
}

}  // namespace

void do_wait(const frame& f, const step& s) {
  ticket& t = f.w.tickets[s.a];
  if (!t) return;
  const bool was_done = t.done();
  const outcome o = s.in_c ? wait_in_c(f.w, t, s) : t.wait_outcome(s.timeout_ns, s.policy);
  if (was_done && !ticket::consumes(o.code))
    f.w.blame(task_name(s.a) + ": a wait for it ended with " + status_name(o.code) +
              " when it was done");
  took(f, s.a, o, s.timeout_ns);
}

void do_wait_any(const frame& f, const step& s) {
  std::vector<ticket> all = gather(f.w, s.list);
  bool is_empty = true;
  for (const ticket& t : all) is_empty &= !t;
  std::size_t index = none_ready;
  const outcome o = s.in_c ? wait_any_in_c(f.w, all, &index, s)
                           : wait_any(all.data(), all.size(), &index, s.timeout_ns, s.policy);
  if (index != none_ready) {
    took(f, s.list[index], o, s.timeout_ns);
  } else if (is_empty ? o.code != status::bad_argument
                      : !may_refuse_wait(f, o.code, s.timeout_ns)) {
    f.w.blame(std::string("wait_any() ended with ") + status_name(o.code) + " at depth " +
              std::to_string(f.depth));
  }
  give_back(f.w, s.list, all);
}

// Nobody runs anything here meanwhile, but other contexts of a task's worker.
void do_await_done(const frame& f, const step& s) {
  world& w = f.w;
  ticket& t = w.tickets[s.a];
  if (!t) return;
  const std::uint64_t limit =
      w.home->now_ns() + static_cast<std::uint64_t>(w.shared->spin_limit_ns);
  std::uint32_t turn = 0;
  bool is_late = false;
  const auto ends = [&] {
    is_late |= ++turn % 64 == 0 && w.home->now_ns() > limit;
    return t.done() || w.shared->gives_up.load() != 0 || is_late;
  };
  if (f.task != nobody) {
    this_task().wait_until(ends);
  } else {
    while (!ends()) sched_yield();
  }
  if (!is_late || t.done()) return;
  w.shared->gives_up.store(1);
  w.blame(task_name(s.a) + ": was looked at for long, but never done");
}

// The outcome of each is asked for by waits that return at once: wait_all() tells of the first
// only.
void do_wait_all(const frame& f, const step& s) {
  std::vector<ticket> all = gather(f.w, s.list);
  std::vector<std::uint64_t> ids;
  for (const ticket& t : all) ids.push_back(t.id());
  const outcome o = wait_all(all.data(), all.size(), s.timeout_ns, s.policy);
  bool is_first = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (ids[i] == 0 || all[i]) continue;
    // Consumed: with the first failure, or, with none, with ok.
    outcome one;
    one.code = o.code == status::ok ? status::ok : status::pending;
    if (is_first) one.failures = o.failures;
    is_first = false;
    collected(f.w, s.list[i], one);
  }
  const bool left = [&] {
    for (const ticket& t : all) {
      if (t) return true;
    }
    return false;
  }();
  if (left && !may_refuse_wait(f, o.code, s.timeout_ns) && ticket::consumes(o.code) == false)
    f.w.blame(std::string("wait_all() ended with ") + status_name(o.code) + " at depth " +
              std::to_string(f.depth));
  give_back(f.w, s.list, all);
}

}  // namespace lev::exercise
