// The rules for programs that must end: the generator keeps them, and the shrinker breaks none.
//
// A program waits only for what was handed in before by the same block, or handed to it, so its
// waits have no circle. What is left are bounds: tickets, contexts, workers, mutexes.
//   1. A task with mutexes, and all it hands in, use mutexes of higher numbers only below it.
//   2. Tasks that look for flags: whoever sets them has been handed in by the same block, right
//      before or after, and comes after nothing. There are tickets for everything, nothing is
//      cancelled, and fewer tasks wait than the workers have contexts. Those that look without
//      giving way are fewer than the workers; until one that is a callback has been given its flag,
//      its host runs no tasks.
//   3. With several host threads all tickets that they hold at a time are fewer than there are.
//   4. A host that keeps aside waits for no host that may wait for it: those that join, or keep
//      aside, too. What tasks are owed must come without it, so it opens no phase.
#pragma once

#include "exercise/program.hpp"

namespace lev::exercise {

bool is_sound(const program& p);
// Whether a task may be set aside in the step.
bool is_wait(const step& s);
// Takes out the cancelling of tasks that others look for.
void spare_flags(program& p);

// Takes out what refers to steps that are gone: waits for tasks nobody hands in, flags nobody sets,
// hosts nobody starts, blocks nobody runs; and renumbers tasks, blocks and hosts.
void tidy(program& p);

// Task slots that a program may use at a time, at most.
std::uint32_t slots_in_all(const program& p);
// Tasks that may wait at a time, and those of them that keep their worker.
std::uint32_t waiters(const program& p);
std::uint32_t spinners(const program& p);
// Tasks of both runtimes, where they wait for each other's.
std::uint32_t crossings(const program& p);
bool uses_flags(const program& p);

}  // namespace lev::exercise
