// submit() for a plain task whose body runs in a worker process, in one straight line to the
// worker's line. The steps are those of submit.cpp; whatever it cannot do is left to
// submit_elsewhere_any_way(), before anything is done, or after it was undone.
#include "remote/straight.hpp"
#include "runtime/admit.hpp"
#include "runtime/submit.hpp"
#include "task/plain.hpp"

namespace lev::detail {

namespace {

remote_crew& crew_of(participant& self) noexcept {
  return static_cast<remote_crew&>(*self.engine->crew);
}

// No worker has room.
[[gnu::noinline]] std::uint64_t send_any_way(participant& self, std::uint64_t id) {
  crew_of(self).send(self, ticket_task(id));
  return id;
}
// The line has no room any more since it was looked at, or the runtime cancels its tasks.
[[gnu::cold, gnu::noinline]] std::uint64_t send_in_no_turn(participant& self, remote_line& line,
                                                           std::uint64_t id) {
  if (end_turn(line)) tend_all(crew_of(self), self);
  return send_any_way(self, id);
}
// The service, or another thread, is to be served behind a task that was sent off.
[[gnu::noinline]] std::uint64_t end_turn_with_care(participant& self, remote_line& line,
                                                   std::uint64_t id) {
  remote_crew& r = crew_of(self);
  if (needs_patrol(r)) start_patrol(r);
  if (end_turn(line)) tend_all(r, self);
  return id;
}
[[gnu::noinline]] std::uint64_t tend_behind(participant& self, std::uint64_t id) {
  tend_all(crew_of(self), self);
  return id;
}

// From the slot to a worker. The crew is found anew behind the call of the machine: so no register
// is saved for it.
template <bool shares_workers>
[[gnu::always_inline]] inline std::uint64_t send_plainly(remote_crew& r, participant& self,
                                                         std::uint32_t task, std::uint64_t opened) {
  const std::uint64_t id = opened_ticket(task, opened);
  const straight_line to = hold_straight<shares_workers>(r);
  if (to.line == nullptr) [[unlikely]]
    return send_any_way(self, id);
  if (!is_open_to(r, *to.line)) [[unlikely]]
    return send_in_no_turn(self, *to.line, id);
  send_in_turn(r, to, task, opened | state_bits::live);
  if (needs_patrol(crew_of(anew(self)))) [[unlikely]]
    return end_turn_with_care(self, *to.line, id);
  return end_turn(*to.line) ? tend_behind(self, id) : id;
}
// Where a worker may serve another host process.
[[gnu::noinline]] std::uint64_t send_to_shared(remote_crew& r, participant& self,
                                               std::uint32_t task, std::uint64_t opened) {
  return send_plainly<true>(r, self, task, opened);
}

}  // namespace

// Only the crew of workers in other processes is to be asked (engine::asks_crew).
std::uint64_t submit_elsewhere(runtime_state& c, participant& self, const draft& d, bool detached,
                               std::uint64_t plain_kinds) {
  const std::uint32_t kept = self.free_slots.count();
  if (c.sends_straight.load(memory_order_relaxed) == 0 || detached || kept == 0 ||
      self.running != nullptr || is_any(self.aside) || !may_send_straight(c, self)) [[unlikely]]
    return submit_elsewhere_any_way(c, self, d, detached, plain_kinds);
  auto& r = static_cast<remote_crew&>(*c.crew);
  if (!is_of_plain_kinds(procedure_at(d.procedure), plain_kinds) ||
      !r.can_send_straight(d.procedure)) [[unlikely]]
    return submit_elsewhere_any_way(c, self, d, detached, plain_kinds);
  LEV_DCHECK(d.argument_count <= near_arguments);
  const std::uint32_t task = c.task_slots.take_kept(self.free_slots, kept);
  self.counters.submitted.add(1);
  if (is_closing_behind_fence(c)) [[unlikely]]
    return submit_late(c, d, false, self, task);
  const std::uint64_t opened = c.task_slots.write_near<0>(task, d, d.arguments, {});
  return r.shares_workers ? send_to_shared(r, self, task, opened)
                          : send_plainly<false>(r, self, task, opened);
}

}  // namespace lev::detail
