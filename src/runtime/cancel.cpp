// cancel and end: for a task that is not wanted any more. Both mark its state word, which the
// holder of the task checks: the participant that takes it from a queue, tends its line
// (remote/tend.cpp), or ends worker processes (remote/attend.cpp).
#include "runtime/runtime_state.hpp"
#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "worker/crew.hpp"

namespace lev::detail {

status cancel(runtime_state* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->task_slots.at(ticket_task(id)).state;
  if (state.announce(ticket_generation(id), state_bits::cancel_asked)) {
    participant* self = c->crew->holds_tasks() ? here(*c) : nullptr;
    if (self != nullptr) c->crew->recall(*self);
    return status::ok;
  }
  return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                   : status::ok;
}

status end(runtime_state* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->task_slots.at(ticket_task(id)).state;
  if (!state.announce(ticket_generation(id), state_bits::end_asked))
    return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                     : status::too_late;
  if (!c->crew->end_running(false)) return status::not_supported;
  if (participant* self = here(*c); self != nullptr) c->crew->recall(*self);
  return status::ok;
}

}  // namespace lev::detail
