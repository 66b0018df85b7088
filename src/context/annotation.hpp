// Notes about a context to a sanitizer. Without a sanitizer every function is empty.
//
// AddressSanitizer knows one stack per thread; it must be told of every change of stack, before it
// (leave) and after it (arrive). In return it tells which stack was left: the only way to learn the
// bounds of a thread's own stack. LeakSanitizer must search suspended stacks for pointers.
// ThreadSanitizer keeps a history per fiber; without it, it crashes on its first report (clang 14).
#pragma once

#include "base/sanitizer.hpp"

#include <cstddef>

#if defined(LEV_UNDER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#elif defined(LEV_UNDER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace lev {

// The calls, in the order of a context's life:
//   open     a new context will run on this stack; the opposite is close
//   leave    on the old stack, right before the switch; `last` when the old context has finished
//   arrive   on the new stack, right after the switch
#if defined(LEV_UNDER_ASAN)

class annotation {
 public:
  void open(const void* bottom, std::size_t bytes) {
    bottom_ = own_bottom_ = bottom;
    bytes_ = own_bytes_ = bytes;
    __asan_unpoison_memory_region(bottom, bytes);
    __lsan_register_root_region(bottom, bytes);
  }

  void close() {
    if (fake_stack_ != nullptr) drop_fake_stack();
    bottom_ = own_bottom_;
    bytes_ = own_bytes_;
    __lsan_unregister_root_region(bottom_, bytes_);
    __asan_unpoison_memory_region(bottom_, bytes_);
  }

  void leave(annotation& to, bool last) {
    to.left_ = this;
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_, to.bottom_, to.bytes_);
  }

  void arrive() {
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &bytes);
    fake_stack_ = nullptr;
    // Where the context was left, to be told when it is resumed. A thread's own stack is learned
    // here. A context may be left on a stack other than its own, if an actor of the machine holds
    // contexts.
    left_->bottom_ = bottom;
    left_->bytes_ = bytes;
  }

 private:
  // A context closed before its end still owns a fake stack (detect_stack_use_after_return), and
  // only its own final switch frees that: so that switch is told, but not made. It must not be
  // instrumented, as meanwhile the sanitizer believes it is on the other stack.
  __attribute__((no_sanitize("address"), noinline)) void drop_fake_stack() {
    void* mine = nullptr;
    const void* my_bottom = nullptr;
    std::size_t my_bytes = 0;
    __sanitizer_start_switch_fiber(&mine, bottom_, bytes_);
    __sanitizer_finish_switch_fiber(fake_stack_, &my_bottom, &my_bytes);
    __sanitizer_start_switch_fiber(nullptr, my_bottom, my_bytes);
    __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
    fake_stack_ = nullptr;
  }

  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
  const void* own_bottom_ = nullptr;
  std::size_t own_bytes_ = 0;
  annotation* left_ = nullptr;
};

#elif defined(LEV_UNDER_TSAN)

class annotation {
 public:
  void open(const void*, std::size_t) { fiber_ = own_fiber_ = __tsan_create_fiber(0); }
  void close() { __tsan_destroy_fiber(own_fiber_); }

  // Every function reports its start and its end to the current fiber. Between leave and the switch
  // that is already the other fiber, so no function may end there: leave itself must be inlined,
  // and the barrier in arrive keeps clang 14 from making a tail call of the switch.
  // A context may be left in a fiber other than its own: see above.
  [[gnu::always_inline]] void leave(annotation& to, bool) {
    fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber_, 0);
  }
  [[gnu::always_inline]] void arrive() { asm volatile("" ::: "memory"); }

 private:
  void* fiber_ = nullptr;
  void* own_fiber_ = nullptr;
};

#else

class annotation {
 public:
  void open(const void*, std::size_t) {}
  void close() {}
  void leave(annotation&, bool) {}
  void arrive() {}
};

#endif

}  // namespace lev
