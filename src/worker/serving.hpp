// serving: that a participant runs tasks, in a scope.
#pragma once

#include "worker/execute.hpp"

#include <utility>

namespace lev {

// For a host that has served while the runtime closes.
[[gnu::cold, gnu::noinline]] void tell_of_leaving(engine& e) noexcept;

// acting: that what runs here is a participant's, in a scope: a call of its runtime that comes back
// through another one finds it.
class acting {
 public:
  explicit acting(participant& self) noexcept : self_(self) {
    if (outer_ == &self) return;
    if (outer_ != nullptr)
      outer_in_ = std::exchange(self.serves_in, static_cast<participant*>(outer_));
    set_current_actor(&self);
  }
  ~acting() {
    if (outer_ == &self_) return;
    if (outer_ != nullptr) self_.serves_in = outer_in_;
    set_current_actor(outer_);
  }
  acting(acting&&) = delete;

 private:
  participant& self_;
  void* outer_ = current_actor();
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
    self.doing.store(activity::serves, memory_order_relaxed);
  }
  ~serving() {
    self_.float_mode = outer_;
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
