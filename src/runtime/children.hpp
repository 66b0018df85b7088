// children: tasks that the task which waits for them has submitted, and that no other participant
// has taken yet. They are called like functions, on top of it, and their tickets are consumed.
#ifndef LEVERET_RUNTIME_CHILDREN_HPP
#define LEVERET_RUNTIME_CHILDREN_HPP

#include <leveret/ticket.hpp>

#include "runtime/runtime_state.hpp"
#include "worker/worker.hpp"

namespace lev::detail {

// The number of a task is beyond all slots if there is none.
inline child child_of(std::uint64_t id) noexcept {
  return {static_cast<std::uint32_t>(id) - 1, ticket_generation(id)};
}

inline bool may_run_children(const runtime_state& c, const participant& self) noexcept {
  return self.running != nullptr && self.nest < c.settings.nest_max;
}

// False: it is no such child, or has failed, or somebody else asks for its end.
[[gnu::always_inline]] inline bool collect_child(runtime_state& c, participant& self,
                                                 std::uint64_t id) noexcept {
  const child one = child_of(id);
  return may_run_children(c, self) && run_children(c, self, {&one, 1}) != 0;
}

// The last of some tickets, as long as they are such children. Returns how many were consumed.
[[gnu::noinline]] inline std::size_t collect_children(runtime_state& c, participant& self,
                                                      ticket* tickets, std::size_t count) noexcept {
  constexpr std::size_t at_once = 8;
  child last[at_once];
  if (!may_run_children(c, self) || !self.box.ends_with(child_of(tickets[count - 1].id()).task))
    return 0;
  std::size_t n = 0;
  for (; n < at_once && n < count; ++n) {
    const ticket& t = tickets[count - 1 - n];
    last[n] = child_of(t.id());
    if (t.home() != &c || last[n].task >= c.task_slots.count()) break;
  }
  const std::size_t consumed = run_children(c, self, {last, n});
  for (std::size_t i = 1; i <= consumed; ++i) tickets[count - i].forget();
  return consumed;
}

}  // namespace lev::detail

#endif
