// What a thread knows of itself: whose code it runs, and into which runtime it last called.
#pragma once

#include <cstdint>

namespace lev {

// current_actor(): the participant the running code belongs to, null on a host thread that does not
// run tasks at the moment. A machine that switches actors on one thread sets it at every switch.
void* current_actor() noexcept;
// A thread's notes about itself: the actor, and the runtime that it last called into (0: none),
// with its participant there: the actor, if that is of this runtime. They are in one place because
// each access to thread-local data may be a call. For code in which no switch can come between
// finding the place and using it.
struct thread_notes {
  void* actor = nullptr;
  std::uint64_t runtime_id = 0;
  void* self = nullptr;
};
extern constinit thread_local thread_notes this_thread_notes;
// set_current_actor() forgets the last runtime, too. swap_notes() returns the notes as they were.
void set_current_actor(void* actor) noexcept;
thread_notes swap_notes(const thread_notes& now) noexcept;
// forget_last_runtime() is called where one stack of a thread is left for another one: the
// participant that was used last may be in the middle of a call on the stack that was left. And
// where a filter or a hook begins, whose calls are all to be looked at (hook_call.hpp).
void forget_last_runtime() noexcept;

}  // namespace lev
