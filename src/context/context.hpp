// A context: a flow of control with a stack of its own that runs until it switches to another one.
//
// Contexts are symmetric: any may switch to any other of the same thread. A context that was never
// opened stands for the stack of the thread that first switches away from it (the main context).
// The room decides nothing: the caller chooses which context runs next, and when.
//
// Life of a context:
//   1. open(): a stack is mapped and a first frame laid out; nothing runs.
//   2. switch_to(from, to): `from` is suspended in the call, `to` goes on where it was suspended.
//      The first time, this calls entry(argument).
//   3. finish_to(from, to): the last switch of `from`, as entry must not return.
//   4. close(), the destructor, or a new open(), which keeps a stack that is large enough.
//
// A context owns the callee-saved registers, floating-point control words, and the C++ exceptions
// that it is handling, so that it may switch inside a catch block or a destructor. The thread owns
// everything else, such as errno, the signal mask and thread_local objects.
//
// Not thread-safe: one thread at a time uses a context. A suspended context may go on in another
// thread if the caller orders the two and no frame on its stack keeps the address of a
// thread_local.
#pragma once

#include <cstddef>
#include <utility>

#include "base/assert.hpp"
#include "context/annotation.hpp"
#include "context/stack.hpp"

// In switch_CPU.S: suspends the caller, storing its stack pointer in *save, and resumes `load`.
extern "C" void lev_context_switch(void** save, void* load);
// The same for a hop, see below. *load is read after *save was written.
extern "C" void lev_context_hop(void** save, void* const* load);
extern "C" const std::size_t lev_context_hop_skip_bytes;

namespace lev {

// A thread's record of the exceptions that it is handling: __cxa_eh_globals of the Itanium C++ ABI.
struct exception_state {
  void* caught = nullptr;
  unsigned int uncaught_count = 0;
};
exception_state& exceptions_of_thread() noexcept;

class context {
 public:
  using entry_function = void (*)(void* argument);

  // The main context of the thread that first switches away from it, unless open() succeeds.
  context() = default;
  ~context() { close(); }

  context(context&&) = delete;

  // Makes this a context that will run entry(argument) on a stack of at least `stack_bytes`.
  // Precondition: the context does not run and stands for no thread. A suspended one is abandoned
  // as by close(). False, and the context closed, when no stack could be mapped. The floating-point
  // control words are those of the caller.
  [[nodiscard]] bool open(std::size_t stack_bytes, entry_function entry, void* argument);

  // Gives the stack back. Precondition: the context does not run. Objects that live on the stack
  // of a context that has not finished are not destroyed. No effect on a main context.
  void close();

  bool is_open() const { return static_cast<bool>(stack_); }

  // A main context forgets the thread it stood for, and will stand for the next thread that
  // switches away from it. Precondition: not opened, and nothing is suspended in it.
  void stand_for_caller() { thread_exceptions_ = nullptr; }

  // The lowest usable address of an opened context's stack; null of a main context.
  const void* stack_bottom() const { return stack_.bottom(); }
  std::size_t stack_bytes() const { return stack_.size_bytes(); }

  // Suspends `from`, the context that calls, and resumes `to`. Returns when something switches to
  // `from` again. Precondition: `to` is suspended; a `to` that runs or has finished faults here.
  // Cost: see README.
  static void switch_to(context& from, context& to);

  // Hops are cheaper switches, for contexts that only ever hop, and among themselves. The control
  // words and the exception state stay the thread's: a context that gives way while it handles an
  // exception puts the state aside. The stack pointers are the caller's: *save is where `from` goes
  // on, *load was saved by a hop away from `to`, or is hop_start(). A hop to itself comes back at
  // once.
  void* hop_start() const {
    return static_cast<char*>(stack_pointer_) + lev_context_hop_skip_bytes;
  }
  [[gnu::always_inline]] static void hop(context& from, void** save, context& to,
                                         void* const* load) {
    from.annotation_.leave(to.annotation_, false);
    lev_context_hop(save, load);
    from.annotation_.arrive();
  }
  // The last hop of `from`, with the preconditions of finish_to().
  [[noreturn]] static void finish_hop(context& from, context& to, void* const* load);

  // Resumes `to` and never comes back: `from` has finished and another context may close it.
  // Precondition: as switch_to, and `from` was opened and is not inside a catch block. Objects on
  // its stack are not destroyed, so call it at the end of entry, outside any scope with owners.
  [[noreturn]] static void finish_to(context& from, context& to);

 private:
  [[noreturn]] static void run(void* self);
  void forget();

  // Takes the exception state out of the thread and puts that of `to` in. The pointer to the
  // thread's is handed on from context to context, which saves the look-up and stays right when a
  // context changes its thread.
  static void hand_over(context& from, context& to) {
    exception_state* thread = from.thread_exceptions_;
    from.exceptions_ = *thread;
    *thread = to.exceptions_;
    to.thread_exceptions_ = thread;
  }

  void* stack_pointer_ = nullptr;                 // null unless suspended
  exception_state* thread_exceptions_ = nullptr;  // null before the first run, and when finished
  exception_state exceptions_;
  [[no_unique_address]] annotation annotation_;

  entry_function entry_ = nullptr;
  void* argument_ = nullptr;
  stack stack_;
};

inline void context::switch_to(context& from, context& to) {
  if (from.thread_exceptions_ == nullptr) [[unlikely]]
    from.thread_exceptions_ = &exceptions_of_thread();
  hand_over(from, to);
  void* load = std::exchange(to.stack_pointer_, nullptr);
  LEV_DCHECK(load != nullptr);
  from.annotation_.leave(to.annotation_, false);
  lev_context_switch(&from.stack_pointer_, load);
  from.annotation_.arrive();
}

}  // namespace lev
