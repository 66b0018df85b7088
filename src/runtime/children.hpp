// children: tasks that the task which waits for them has submitted, and that no other participant
// has taken yet. They are called like functions, on top of it, and their tickets are consumed.
#pragma once

#include <leveret/ticket.hpp>

#include "runtime/runtime_state.hpp"
#include "worker/worker.hpp"

namespace lev::detail {

inline bool may_run_children(const runtime_state& c, const participant& self) noexcept {
  return self.running != nullptr && self.nest < c.settings.nest_max;
}

// False: it is no such child, it has failed, or another thread asks for its end.
[[gnu::always_inline]] inline bool collect_child(runtime_state& c, participant& self,
                                                 std::uint64_t id) noexcept {
  return may_run_children(c, self) && run_child(c, self, child{id}, nullptr);
}

// Tickets that are waited for from the last one on.
class last_children final : public next_children {
 public:
  last_children(runtime_state& c, ticket* tickets, std::size_t count) noexcept
      : state_(c), tickets_(tickets), left_(count) {}
  bool next(child* one) noexcept override {
    LEV_DCHECK(left_ != 0);
    tickets_[--left_].forget();
    if (left_ == 0 || tickets_[left_ - 1].home() != &state_) return false;
    *one = {tickets_[left_ - 1].id()};
    return true;
  }
  std::size_t left() const noexcept { return left_; }

 private:
  runtime_state& state_;
  ticket* tickets_;
  std::size_t left_;
};

// The last of some tickets, as long as they are such children. Returns how many are left.
[[gnu::noinline]] inline std::size_t collect_children(runtime_state& c, participant& self,
                                                      ticket* tickets, std::size_t count) noexcept {
  LEV_DCHECK(runs_here(self) && count != 0 && tickets[count - 1].home() == &c);
  last_children all(c, tickets, count);
  if (may_run_children(c, self)) run_child(c, self, child{tickets[count - 1].id()}, &all);
  return all.left();
}

}  // namespace lev::detail
