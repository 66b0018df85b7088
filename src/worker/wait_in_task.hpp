// wait_in_task: how a task or a callback waits.
#pragma once

#include "worker/awaited.hpp"
#include "worker/worker.hpp"

namespace lev {

// Notices that nothing goes on any more.
class stillness {
 public:
  // How often a waiter that may give up checks whether anything goes on.
  static constexpr std::uint64_t look_ns = 2'000'000;
  static constexpr std::uint64_t usual_ns = 5 * look_ns;

  explicit stillness(std::uint64_t patience_ns = usual_ns) noexcept : patience_ns_(patience_ns) {}

  // Whether no participant but the caller has run anything for that time, and no task has ended. A
  // caller that has not looked for long has run something itself, on another context; or it got no
  // core, as on a busy computer, which must not begin the time anew.
  bool lasts(engine& e, const participant& self, giving_up how) noexcept;

 private:
  const std::uint64_t patience_ns_;
  std::uint64_t ended_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
};

// wait_in_task() waits inside a task or a callback: its own children run on top of it, or its
// worker goes on in another context. False: the deadline passed first; or waiting on is in vain:
// every context of every participant waits, or, with when_still, no participant has run anything
// for 10 ms.
bool wait_in_task(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                  giving_up how = giving_up::when_all_wait) noexcept;

// run_on_top() runs a task that the caller has taken from a queue on top of the waiting one.
void run_on_top(engine& e, participant& self, std::uint32_t task) noexcept;
// run_child_with_care() is run_child() (straight.hpp) for what that leaves to it, and
// run_taken_child() for what it has taken.
[[gnu::noinline]] bool run_child_with_care(engine& e, participant& self, child one) noexcept;
[[gnu::noinline]] bool run_taken_child(engine& e, participant& self, child one) noexcept;

// tell_before_wait() tells the ends here for which others may wait.
void tell_before_wait(engine& e, participant& self) noexcept;

// tell_tails_aside() is for a task that waits, or has waited: callbacks that are due are called on
// another stack, as they may wait for this task, or for its mutex. False: none is due.
bool tell_tails_aside(engine& e, participant& self) noexcept;

}  // namespace lev
