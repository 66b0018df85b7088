// A thread's notes; see thread_notes.hpp.
#include "sync/thread_notes.hpp"

#include <utility>

namespace lev {

constinit thread_local thread_notes this_thread_notes;

// Not inlined: an actor may move between threads at a switch, and a cached address of thread-local
// data would then be wrong.
__attribute__((noinline)) void* current_actor() noexcept {
  return this_thread_notes.actor;
}
__attribute__((noinline)) void set_current_actor(void* actor) noexcept {
  this_thread_notes = {actor, 0, nullptr};
}
__attribute__((noinline)) thread_notes swap_notes(const thread_notes& now) noexcept {
  return std::exchange(this_thread_notes, now);
}
__attribute__((noinline)) void forget_last_runtime() noexcept {
  this_thread_notes.runtime_id = 0;
  this_thread_notes.self = nullptr;
}

}  // namespace lev
