// Opening and finishing of contexts; see context.hpp.
#include "context/context.hpp"

#include <cxxabi.h>

// In switch_CPU.S: lays out the first frame below `top`, which calls run(self), and returns what
// lev_context_switch loads.
extern "C" void* lev_context_prepare(void* top, void (*run)(void*), void* self);

namespace lev {

exception_state& exceptions_of_thread() noexcept {
  return *reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
}

bool context::open(std::size_t stack_bytes, entry_function entry, void* argument) {
  forget();
  if (!stack_ || stack_.usable_bytes() < stack_bytes) {
    stack_ = {};
    stack_ = stack::map(stack_bytes);
    if (!stack_) return false;
  }
  annotation_.open(stack_.bottom(), stack_.size_bytes());
  entry_ = entry;
  argument_ = argument;
  stack_pointer_ = lev_context_prepare(stack_.top(), &context::run, this);
  return true;
}

void context::close() {
  forget();
  stack_ = {};
}

// Abandons what the context was doing, but keeps its stack.
void context::forget() {
  if (!stack_) return;
  const bool is_running = stack_pointer_ == nullptr && thread_exceptions_ != nullptr;
  LEV_ASSERT(!is_running);
  annotation_.close();
  stack_pointer_ = nullptr;
  thread_exceptions_ = nullptr;
  exceptions_ = {};
}

void context::finish_to(context& from, context& to) {
  hand_over(from, to);
  from.thread_exceptions_ = nullptr;
  void* load = std::exchange(to.stack_pointer_, nullptr);
  LEV_DCHECK(load != nullptr);
  from.annotation_.leave(to.annotation_, true);
  // No switch will load the stack pointer, so it goes where it cannot be mistaken for one. A local
  // variable will not do: it may lie on the sanitizer's fake stack, which leave has just freed.
  lev_context_switch(&from.argument_, load);
  __builtin_unreachable();
}

void context::finish_hop(context& from, context& to, void* const* load) {
  from.annotation_.leave(to.annotation_, true);
  lev_context_hop(&from.argument_, load);
  __builtin_unreachable();
}

void context::run(void* self) {
  context& started = *static_cast<context*>(self);
  started.annotation_.arrive();
  started.entry_(started.argument_);
  assert_failed("the entry of a context must not return", __FILE__, __LINE__);
}

}  // namespace lev
