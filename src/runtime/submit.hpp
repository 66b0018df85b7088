// The parts of submit that other files of this room need.
#pragma once

#include "runtime/runtime_state.hpp"
#include "worker/contexts.hpp"

#include <span>

namespace lev::detail {

// submit_now() is try_submit() for a caller that holds tickets itself, and can give some back: if
// all tickets or all edges are in use, it is refused (would_block), whatever config::full says.
std::uint64_t submit_now(runtime_state* c, const draft& d, const options* o, refusal* why) noexcept;

// submit_behind() is the straight path for a task behind others whose tickets the caller holds. The
// caller has found the task plain (task/plain.hpp). 0: nothing was done, because the task must take
// the long path, or no ticket or edge is free.
std::uint64_t submit_behind(runtime_state& c, const draft& d,
                            std::span<const std::uint64_t> after) noexcept;

// submit_any_way() submits what the straight path leaves to it.
[[gnu::noinline]] std::uint64_t submit_any_way(runtime_state& c, const draft& d, const options* o,
                                               bool detached);
// submit_late() does so for a task that was counted while the runtime came to close, and is taken
// back first.
[[gnu::cold, gnu::noinline]] std::uint64_t submit_late(runtime_state& c, const draft& d,
                                                       bool detached, participant& self,
                                                       std::uint32_t task);
// submit_elsewhere() submits a task of a crew that must be asked (engine::asks_crew), with the
// plain_kinds of its arguments.
[[gnu::noinline]] std::uint64_t submit_elsewhere(runtime_state& c, participant& self,
                                                 const draft& d, bool detached,
                                                 std::uint64_t plain_kinds);
// submit_elsewhere_any_way() does so for a task that is not so plain.
[[gnu::noinline]] std::uint64_t submit_elsewhere_any_way(runtime_state& c, participant& self,
                                                         const draft& d, bool detached,
                                                         std::uint64_t plain_kinds);
// send_to_poller() sends the task to a worker that polls for it. False: there is none. Call it only
// for the first tickets that a host makes without a wait, one for each worker.
[[gnu::noinline]] bool send_to_poller(runtime_state& c, participant& self, std::uint32_t task,
                                      const draft& d) noexcept;

// Whether a host has nothing else to bring to an end, where none of its tasks is staged ahead or
// drains.
inline bool owes_nothing(const participant& self) noexcept {
  return !is_any(self.aside) || (self.aside.ended_pieces == 0 && !has_other_contexts(self));
}

// Whether `id` can be a ticket of this runtime: ok, or bad_ticket.
status check_ticket(const runtime_state* c, std::uint64_t id) noexcept;

}  // namespace lev::detail
