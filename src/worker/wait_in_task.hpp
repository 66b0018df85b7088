// wait_in_task: how a task or a callback waits.
#pragma once

#include "worker/awaited.hpp"
#include "worker/engine.hpp"

namespace lev {

// wait_in_task() waits inside a task or a callback: its own children run on top of it, or its
// worker goes on in another context. False: the deadline passed first; or waiting on is in vain:
// every context of every participant waits, or, with when_still, no participant has run anything
// for 10 ms.
bool wait_in_task(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                  giving_up how = giving_up::when_all_wait) noexcept;

// tell_before_wait() tells the ends here for which others may wait.
void tell_before_wait(engine& e, participant& self) noexcept;

// tell_tails_aside() is for a task that waits, or has waited: callbacks that are due are called on
// another stack, as they may wait for this task, or for its mutex. False: none is due.
bool tell_tails_aside(engine& e, participant& self) noexcept;

}  // namespace lev
