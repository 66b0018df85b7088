// The parts of submit that other files of this room need.
#ifndef LEVERET_RUNTIME_SUBMIT_HPP
#define LEVERET_RUNTIME_SUBMIT_HPP

#include "runtime/runtime_state.hpp"

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

// Whether `id` can be a ticket of this runtime: ok, or bad_ticket.
status check_ticket(const runtime_state* c, std::uint64_t id) noexcept;

}  // namespace lev::detail

#endif
