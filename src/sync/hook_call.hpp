// Whether a filter or a hook of the program runs on this thread, and of which runtime.
#pragma once

#include "sync/thread_notes.hpp"

namespace lev {

// hook_call exists while a filter or a hook of the program runs: in the middle of Leveret's own
// work, maybe under a lock. Its thread cannot wait for anything of that runtime, nor, should the
// hook call exit(), of any. On `sim` too: a hook gives no turn to others. Nor can it submit there.
// The shortest paths of submits and waits do not ask for that: they are for threads that have noted
// their runtime, and a thread notes none while it is in a hook.
class hook_call {
 public:
  // `home` stands for the runtime: its scheduler.
  explicit hook_call(const void* home) noexcept
      : home_(home), outer_(innermost_), is_called_by_outer_(runs_) {
    innermost_ = this;
    runs_ = true;
    ++depth_;
    forget_last_runtime();
  }
  ~hook_call() {
    innermost_ = outer_;
    runs_ = is_called_by_outer_;
    --depth_;
  }
  hook_call(hook_call&&) = delete;

  // is_here() tells whether this thread is in one.
  static bool is_here() noexcept { return depth_ != 0; }
  // is_here_of() tells whether this flow of control is in one of that runtime.
  static bool is_here_of(const void* home) noexcept {
    const hook_call* at = innermost_;
    while (at != nullptr && at->home_ != home) at = at->outer_;
    return at != nullptr;
  }

  // calls_from() tells whether the caller is one of that runtime, or is called by one: a task that
  // runs on top of a hook, which waits for another runtime, is not.
  static bool calls_from(const void* home) noexcept {
    const hook_call* at = runs_ ? innermost_ : nullptr;
    while (at != nullptr && at->home_ != home) at = at->caller();
    return at != nullptr;
  }

  // beneath exists while tasks run on top of what the thread was in.
  class beneath {
   public:
    beneath() noexcept : ran_(runs_) {
      if (ran_) [[unlikely]]
        runs_ = false;
    }
    ~beneath() {
      if (ran_) [[unlikely]]
        runs_ = true;
    }
    beneath(beneath&&) = delete;

   private:
    const bool ran_;
  };

  // aside exists while other flows of control have the thread: a hook that waits for another
  // runtime may be in one context, and end before one in another context that began later.
  class aside {
   public:
    aside() noexcept : own_(innermost_) {
      if (own_ != nullptr) [[unlikely]]
        innermost_ = nullptr;
    }
    ~aside() {
      if (own_ != nullptr) [[unlikely]]
        innermost_ = own_;
    }
    aside(aside&&) = delete;

   private:
    const hook_call* const own_;
    const beneath others_;
  };

 private:
  const hook_call* caller() const noexcept { return is_called_by_outer_ ? outer_ : nullptr; }

  const void* const home_;
  const hook_call* const outer_;
  const bool is_called_by_outer_;
  static constinit inline thread_local const hook_call* innermost_ = nullptr;
  // Whether the innermost one runs, and no task on top of it.
  static constinit inline thread_local bool runs_ = false;
  static constinit inline thread_local unsigned depth_ = 0;  // of all flows of control
};

}  // namespace lev
