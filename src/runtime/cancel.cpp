// cancel and end: what becomes of a task that is not wanted any more. Both mark its state word,
// which whoever has the task looks at: the one who takes it from a queue, tends the line that it is
// in (worker/tend.cpp), or ends worker processes (worker/attend.cpp).
#include "runtime/core.hpp"
#include "runtime/wait.hpp"
#include "worker/tend.hpp"

namespace lev::detail {

status cancel(core* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->pool.at(ticket_task(id)).state;
  if (state.announce(ticket_generation(id), state_bits::cancel_asked)) {
    participant* self = c->remote == nullptr ? nullptr : here(*c);
    if (self != nullptr) cancel_posted(*c, *self);
    return status::ok;
  }
  return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                   : status::ok;
}

status end(core* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->pool.at(ticket_task(id)).state;
  if (!state.announce(ticket_generation(id), state_bits::end_asked))
    return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                     : status::too_late;
  if (c->remote == nullptr) return status::not_supported;
  end_posted(*c);
  if (participant* self = here(*c); self != nullptr) cancel_posted(*c, *self);
  return status::ok;
}

}  // namespace lev::detail
