// submit() for a plain task, in one straight line: the steps are those of submit.cpp. Whatever it
// cannot do is left to submit_any_way(), before anything is done, or after it was undone.
#include "runtime/straight.hpp"

#include "runtime/admit.hpp"
#include "task/plain.hpp"

namespace lev::detail {

std::uint64_t wake_for(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  wake_worker(c, self);
  return id;
}
std::uint64_t queue_slowly(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  push_ready(c, self, ticket_task(id));
  return wake_for(c, self, id);
}
std::uint64_t filter_plainly(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  enqueue(c, self, ticket_task(id));
  return id;
}
std::uint64_t send_or_queue(runtime_state& c, participant& self, std::uint64_t id,
                            const draft& d) noexcept {
  return send_to_poller(c, self, ticket_task(id), d) ? id : queue_slowly(c, self, id);
}

namespace {

// The runtime closes since the task was counted.
[[gnu::cold, gnu::noinline]] std::uint64_t submit_late(runtime_state& c, participant& self,
                                                       std::uint32_t task, const draft& d,
                                                       bool detached) {
  refuse_late(c, self, task);
  return submit_any_way(c, d, nullptr, detached);
}

// The straight path of a plain task that gets one of the `kept` slots that the submitter has for
// itself, in which all arguments lie, if they are near. `by` is the task that submits it, or null.
template <bool are_near>
[[gnu::always_inline]] inline std::uint64_t submit_kept(runtime_state& c, participant& self,
                                                        const job* by, std::uint32_t kept,
                                                        const draft& d, bool detached) {
  LEV_DCHECK(are_near == (d.argument_count <= near_arguments));
  const std::uint32_t task = c.task_slots.take_kept(self.free_slots, kept);
  self.counters.submitted.add(1);
  if (by == nullptr && is_closing_behind_fence(c)) [[unlikely]]
    return submit_late(c, self, task, d, detached);
  const std::uint8_t flags = detached ? task_detached : 0;
  const std::uint32_t generation =
      are_near ? c.task_slots.write_near(task, d, flags, d.arguments, parent_of(by))
               : c.task_slots.write(task, d, flags, d.arguments, parent_of(by));
  return route_plainly(c, self, by, ticket_id(task, generation), d, detached);
}
[[gnu::noinline]] std::uint64_t submit_child(runtime_state& c, participant& self, const draft& d,
                                             bool detached, std::uint32_t kept) {
  const job* const by = self.running;
  LEV_DCHECK(by != nullptr);
  if (by == nullptr) __builtin_unreachable();  // so that less is asked of it
  return submit_kept<true>(c, self, by, kept, d, detached);
}
[[gnu::noinline]] std::uint64_t submit_post(runtime_state& c, participant& self, const draft& d,
                                            std::uint32_t kept) {
  if (self.posts_at_once != 0) return submit_any_way(c, d, nullptr, true);
  return submit_kept<true>(c, self, nullptr, kept, d, true);
}
[[gnu::noinline]] std::uint64_t submit_far(runtime_state& c, participant& self, const draft& d,
                                           bool detached, std::uint32_t kept) {
  const job* const by = self.running;
  const bool runs_at_once = detached && self.posts_at_once != 0;
  if (by == nullptr && (runs_at_once || !owes_nothing(self)))
    return submit_any_way(c, d, nullptr, detached);
  return submit_kept<false>(c, self, by, kept, d, detached);
}
// For each kind there is one function, in which less is left to ask.
[[gnu::always_inline]] inline std::uint64_t submit_passed(runtime_state& c, participant& self,
                                                          const draft& d, bool detached) {
  const std::uint32_t kept = self.free_slots.count();
  if (kept == 0) [[unlikely]]
    return submit_any_way(c, d, nullptr, detached);
  if (d.argument_count > near_arguments) return submit_far(c, self, d, detached, kept);
  if (self.running != nullptr) return submit_child(c, self, d, detached, kept);
  if (!owes_nothing(self)) return submit_any_way(c, d, nullptr, detached);
  if (detached) return submit_post(c, self, d, kept);
  return submit_kept<true>(c, self, nullptr, kept, d, false);
}
// Its types are known to fit, and it names memory.
[[gnu::noinline]] std::uint64_t submit_places(runtime_state& c, participant& self, const draft& d,
                                              bool detached) {
  const procedure_entry& p = procedure_at(d.procedure);
  LEV_DCHECK(p.placed_kinds != plain_kinds_never && p.addresses != 0);
  return are_places_plain(d.arguments, p.places) ? submit_passed(c, self, d, detached)
                                                 : submit_any_way(c, d, nullptr, detached);
}
[[gnu::noinline]] std::uint64_t submit_checked(runtime_state& c, participant& self, const draft& d,
                                               bool detached) {
  return passes_plainly(d, procedure_at(d.procedure)) ? submit_passed(c, self, d, detached)
                                                      : submit_any_way(c, d, nullptr, detached);
}

}  // namespace

[[gnu::noinline]] std::uint64_t submit(runtime_state* c, const draft& d, const options* o,
                                       bool detached, std::uint64_t plain_kinds) {
  if (o != nullptr) [[unlikely]]
    return submit_any_way(*c, d, o, detached);
  participant* const self = noted_here(*c);
  const procedure_entry* const p = find_procedure(d.procedure);
  if (self == nullptr || p == nullptr) [[unlikely]]
    return submit_any_way(*c, d, nullptr, detached);
  if (!c->submits_straight) return submit_elsewhere(*c, *self, d, detached, plain_kinds);
  if (plain_kinds != p->plain_kinds) {
    return plain_kinds == p->placed_kinds ? submit_places(*c, *self, d, detached)
                                          : submit_checked(*c, *self, d, detached);
  }
  return submit_passed(*c, *self, d, detached);
}

}  // namespace lev::detail
