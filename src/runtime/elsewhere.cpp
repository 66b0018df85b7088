// submit() for a plain task whose body runs in a worker process, in one straight line to the
// worker's line. The steps are those of submit.cpp; whatever it cannot do is left to
// submit_far_away(), before anything is done, or after it was undone.
#include "remote/straight.hpp"
#include "runtime/admit.hpp"
#include "runtime/submit.hpp"
#include "task/plain.hpp"

namespace lev::detail {

namespace {

// The runtime closes since the task was counted.
[[gnu::cold, gnu::noinline]] std::uint64_t submit_too_late(runtime_state& c, participant& self,
                                                           std::uint32_t task, const draft& d) {
  refuse_late(c, self, task);
  return submit_any_way(c, d, nullptr, false);
}

// No worker has room, or other tasks are before it.
[[gnu::noinline]] std::uint64_t send_any_way(remote_crew& r, participant& self, std::uint64_t id) {
  r.send(self, ticket_task(id));
  return id;
}

}  // namespace

// Only the crew of workers in other processes is to be asked (engine::asks_crew).
std::uint64_t submit_elsewhere(runtime_state& c, participant& self, const draft& d, bool detached,
                               std::uint64_t plain_kinds) {
  const procedure_entry& p = procedure_at(d.procedure);
  const std::uint32_t kept = self.free_slots.count();
  if (!c.asks_crew || detached || !is_of_plain_kinds(p, plain_kinds) || p.addresses != 0 ||
      d.argument_count > near_arguments || self.running != nullptr || kept == 0 ||
      !owes_nothing(self)) [[unlikely]]
    return submit_far_away(c, self, d, detached, plain_kinds);
  auto& r = static_cast<remote_crew&>(*c.crew);
  if (!r.knows(d.procedure)) [[unlikely]]
    return submit_far_away(c, self, d, detached, plain_kinds);
  const std::uint32_t task = c.task_slots.take_kept(self.free_slots, kept);
  self.counters.submitted.add(1);
  if (is_closing(c)) [[unlikely]]
    return submit_too_late(c, self, task, d);
  const std::uint64_t opened = c.task_slots.write_near(task, d, 0, d.arguments, {});
  const std::uint64_t id = opened_ticket(task, opened);
  return send_plainly(r, self, task, opened | state_bits::live) ? id : send_any_way(r, self, id);
}

}  // namespace lev::detail
