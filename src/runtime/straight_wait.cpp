// ticket::wait() in one straight line where the task has succeeded, or is a child that can be run
// here; and wait_all() where all tasks are of other processes and have succeeded by now. All else
// is left to wait_long() and wait_all_any_way().
#include "remote/straight_take.hpp"
#include "runtime/children.hpp"
#include "runtime/wait.hpp"

namespace lev::detail {

namespace {

// Each is the last call of wait_or_throw(), so that this saves no registers.
[[gnu::noinline]] void wait_no_longer(runtime_state& c, participant& self, std::uint64_t& id,
                                      wait_policy how) {
  if (!collect_success(c, self, id)) return wait_long(&c, id, how);
  id = 0;
}
[[gnu::noinline]] void wait_for_child(runtime_state& c, participant& self, std::uint64_t& id,
                                      wait_policy how) {
  if (!run_child(c, self, child{id})) return wait_no_longer(c, self, id, how);
  id = 0;
}

}  // namespace

[[gnu::noinline]] void wait_or_throw(runtime_state* c, std::uint64_t& id, wait_policy how) {
  if (c == nullptr || !is_noted(*c) || how > wait_policy::of_runtime) [[unlikely]]
    return wait_long(c, id, how);
  participant& self = noted_here(*c);
  return may_run_children(*c, self) ? wait_for_child(*c, self, id, how)
                                    : wait_no_longer(*c, self, id, how);
}

}  // namespace lev::detail

namespace lev {

namespace {

// The participant of a host thread that serves nowhere and has called into this runtime last.
[[gnu::always_inline]] inline participant* noted_host(detail::runtime_state& c) noexcept {
#ifndef LEVERET_MODEL_CHECKER
  if (this_thread_notes.actor != nullptr) return nullptr;
#endif
  return detail::is_noted(c) ? &detail::noted_here(c) : nullptr;
}

// The caller has called in, and serves nowhere.
[[gnu::noinline]] outcome wait_all_elsewhere(ticket* tickets, std::size_t count, wait_policy how,
                                             participant& self) noexcept {
  auto& r = static_cast<remote_crew&>(*self.engine->crew);
  if (r.is_traced) return wait_all_any_way(tickets, count, no_timeout, how, false);
  detail::note_wait(*self.engine, self);
  if (take_awaited(r, self, tickets, count)) return {status::ok};
  return wait_all_any_way(tickets, count, no_timeout, how, true);
}

}  // namespace

outcome wait_all(ticket* tickets, std::size_t count, std::int64_t timeout_ns,
                 wait_policy how) noexcept {
  if (timeout_ns == no_timeout && tickets != nullptr && count != 0 &&
      how <= wait_policy::of_runtime && tickets[count - 1]) {
    detail::runtime_state* const c = tickets[count - 1].home();
    participant* const self = c != nullptr && c->asks_crew ? noted_host(*c) : nullptr;
    if (self != nullptr && detail::may_take_awaited(*c, *self, tickets[count - 1]))
      return wait_all_elsewhere(tickets, count, how, *self);
  }
  return wait_all_any_way(tickets, count, timeout_ns, how, false);
}

}  // namespace lev
