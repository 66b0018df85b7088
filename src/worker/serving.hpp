// serving: that a participant runs tasks, in a scope.
#pragma once

#include "worker/execute.hpp"
#include "worker/serve.hpp"

#include <utility>

namespace lev {

// acting: that what runs here is a participant's, in a scope: a call of its runtime that comes back
// through another one finds it.
class acting {
 public:
  explicit acting(participant& self) noexcept
      : self_(self), outer_(swap_notes({&self, self.engine->id, &self})) {
    if (outer_.actor == nullptr || outer_.actor == &self) return;
    outer_in_ = std::exchange(self.serves_in, static_cast<participant*>(outer_.actor));
  }
  // Another runtime's participant that was noted may be in use by now: by a task that waits.
  ~acting() {
    if (outer_.actor != nullptr && outer_.actor != &self_) self_.serves_in = outer_in_;
    if (outer_.self != &self_) outer_ = {outer_.actor, 0, nullptr};
    swap_notes(outer_);
  }
  acting(acting&&) = delete;

 private:
  participant& self_;
  const hook_call::beneath hooks_;
  thread_notes outer_;
  participant* outer_in_ = nullptr;
};

// While a participant serves, every task starts with the floating-point mode the server has,
// this_task() knows a host, too, and others see that it may be running something.
class serving {
 public:
  explicit serving(participant& self) noexcept
      : self_(self),
        outer_(std::exchange(self.float_mode, float_mode())),
        outer_activity_(self.doing.load(memory_order_relaxed)) {
    LEV_DCHECK(runs_here(self));
    self.aside.has_own_mode = self.float_mode != 0;
    self.doing.store(activity::serves, memory_order_relaxed);
  }
  ~serving() {
    self_.float_mode = outer_;
    self_.aside.has_own_mode = outer_ != 0;
    self_.doing.store(outer_activity_, memory_order_relaxed);
    if (self_.is_worker) return;
    // A bulk that waits in a closing runtime no longer counts on the slots that are kept here.
    if (self_.engine->closing.load(memory_order_relaxed) != 0) tell_of_leaving(*self_.engine);
  }
  serving(serving&&) = delete;

 private:
  participant& self_;
  std::uint64_t outer_;
  std::uint32_t outer_activity_;
  acting actor_{self_};
};

}  // namespace lev
