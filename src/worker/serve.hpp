// serve: a participant runs tasks, or tends those that run elsewhere, until its wait is over.
#pragma once

#include "worker/awaited.hpp"
#include "worker/engine.hpp"

namespace lev {

// serve_until() waits for `what` as `how` says. Meanwhile it does its crew's work, one turn of
// `work` after the other: it runs tasks, or tends those that run elsewhere; null: nothing. A turn
// may have several tasks as long as `what` is not there; null: it is to be short. False: the
// deadline passed first. Precondition: no task runs below.
using turn_of_work = bool (*)(engine& e, participant& self, awaited* what) noexcept;
bool serve_until(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                 wait_policy how, turn_of_work work) noexcept;

// tell_ends() tells all ends here, and settle() also those who wait for the end of everything.
// settle_again() is for the turns of one wait: it tells these only if something has ended here
// since. Hosts that sleep for a slot are such waiters, too, and would wake each other for ever.
void tell_ends(engine& e, participant& self) noexcept;
void settle(engine& e, participant& self) noexcept;
void settle_again(engine& e, participant& self) noexcept;
// wake_another() is for a participant that was the last poller while another one slept: it wakes
// one if there is more work.
void wake_another(engine& e, participant& self) noexcept;

// help() takes a task and brings it to its end, in the middle of something else. False: there was
// none.
bool help(engine& e, participant& self) noexcept;

// leave() is for a host that goes back to its own program after help(), or after completing tasks:
// tasks that it has taken go back, ends of its tasks are told. No effect inside a task.
void leave(engine& e, participant& self) noexcept;

// tell_of_leaving() is for a host that has served while the runtime closes.
[[gnu::cold, gnu::noinline]] void tell_of_leaving(engine& e) noexcept;

// tell_of_help() is for a host that goes back to its own program without having queued a task: the
// one that it ran may have been the last that a barrier waits for. No effect inside a task.
void tell_of_help(engine& e, participant& self) noexcept;

// tell_meanwhile() is for a host that goes on within its call: ends of tasks are told, and tasks of
// its other contexts stay where they are. No effect inside a task.
void tell_meanwhile(engine& e, participant& self) noexcept;

}  // namespace lev
