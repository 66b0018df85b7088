// straight: the ways of a plain task to the queue. Each returns the number of the task's ticket.
// What happens seldom is the last call of its function, so that the rest of a submit needs no stack
// and saves no registers.
#ifndef LEVERET_RUNTIME_STRAIGHT_HPP
#define LEVERET_RUNTIME_STRAIGHT_HPP

#include "runtime/submit.hpp"
#include "worker/contexts.hpp"
#include "worker/enqueue.hpp"

namespace lev::detail {

// Whether a host has nothing else to bring to an end, where none of its tasks is staged ahead or
// drains.
inline bool owes_nothing(const participant& self) noexcept {
  const auto either = std::uint64_t{self.ended_pieces} |
                      reinterpret_cast<std::uintptr_t>(self.contexts);  // one comparison for most
  return either == 0 || (self.ended_pieces == 0 && !has_other_contexts(self));
}

[[gnu::noinline]] std::uint64_t wake_for(runtime_state& c, participant& self,
                                         std::uint64_t id) noexcept;
[[gnu::noinline]] std::uint64_t queue_slowly(runtime_state& c, participant& self,
                                             std::uint64_t id) noexcept;
[[gnu::noinline]] std::uint64_t confirm_for(runtime_state& c, participant& self,
                                            std::uint64_t id) noexcept;
[[gnu::noinline]] std::uint64_t filter_plainly(runtime_state& c, participant& self,
                                               std::uint64_t id) noexcept;
[[gnu::noinline]] std::uint64_t send_or_queue(runtime_state& c, participant& self, std::uint64_t id,
                                              const draft& d) noexcept;

// A host has no task that it would run first: the first free participant gets its tasks. `by` is
// the task that submits it, or null.
[[gnu::always_inline]] inline std::uint64_t route_plainly(runtime_state& c, participant& self,
                                                          const job* by, std::uint64_t id,
                                                          const draft& d, bool detached) noexcept {
  if (c.sched.has_filters()) [[unlikely]]
    return filter_plainly(c, self, id);
  if (by == nullptr) {
    if (!detached && self.tickets_ahead++ < c.mailboxes) return send_or_queue(c, self, id, d);
    LEV_DCHECK_LOOK(c.task_slots.at(ticket_task(id)).state.is_live());
    if (!self.ready.home->try_push(ticket_task(id))) [[unlikely]]
      return queue_slowly(c, self, id);
  } else if (by->task == no_slot ||
             !push_own(c, self, ticket_task(id), procedure_at(d.procedure))) {
    return queue_slowly(c, self, id);
  }
  return c.doorbell.someone_needed() ? wake_for(c, self, id) : id;
}

// The same for a child of a task that runs here, where sleepers have a heavy fence: its push is a
// plain store, and only a sleeper that was seen behind it makes the submitter confirm it.
template <bool names_memory>
[[gnu::always_inline]] inline std::uint64_t route_child(runtime_state& c, participant& self,
                                                        const job& by, std::uint64_t id,
                                                        const draft& d) noexcept {
  LEV_DCHECK(c.has_heavy_fence && runs_here(self));
  if (c.sched.has_filters()) [[unlikely]]
    return filter_plainly(c, self, id);
  const std::uint32_t place = self.inbox.bottom();
  if (names_memory && c.depth > 1) {
    note_hint(c, self, ticket_task(id), procedure_at(d.procedure), place);
  } else if (place < self.hints_below) {
    self.hints[place & (hint_count - 1)].which = 0;
  }
  if (by.task == no_slot || !self.inbox.try_push(ticket_task(id), false)) [[unlikely]]
    return queue_slowly(c, self, id);
  return c.doorbell.someone_sleeps() ? confirm_for(c, self, id) : id;
}

}  // namespace lev::detail

#endif
