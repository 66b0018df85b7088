// children: tasks that the task which waits for them has submitted, and that no other participant
// has taken yet. They are called like functions, on top of it, and their tickets are consumed.
#pragma once

#include <leveret/ticket.hpp>

#include "runtime/runtime_state.hpp"
#include "worker/straight.hpp"

namespace lev::detail {

inline bool may_run_children(const runtime_state& c, const participant& self) noexcept {
  return self.running != nullptr && self.nest < c.settings.nest_max;
}

// False: it is no such child, it has failed, another thread asks for its end, or the caller is in a
// hook, where no task runs.
inline bool collect_child(runtime_state& c, participant& self, std::uint64_t id) noexcept {
  return may_run_children(c, self) && !hook_call::calls_from(&c.sched) &&
         run_child(c, self, child{id});
}

// The last of some tickets, as long as they are such children. Returns how many are left.
[[gnu::noinline]] inline std::size_t collect_children(runtime_state& c, participant& self,
                                                      ticket* tickets, std::size_t count) noexcept {
  LEV_DCHECK(runs_here(self));
  while (count != 0 && tickets[count - 1].home() == &c &&
         collect_child(c, self, tickets[count - 1].id()))
    tickets[--count].forget();
  return count;
}

}  // namespace lev::detail
