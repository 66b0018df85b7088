// overflow: the message of a program that dies because a context's stack was too small.
//
// An access to a stack's guard raises SIGSEGV. If the program has no handler for that by the time a
// thread first runs contexts, one is installed here. It writes a line to standard error when the
// address is where the stack pointer points. In any case it puts the default action back and
// returns. Then the access is repeated, or a signal that was sent comes once more, and the program
// ends, or dumps core, where it would have done so without the handler.
//
// The handler cannot run on a stack that is full: each thread that runs contexts needs another one
// for signals, and gets it here unless it has one.
#pragma once

namespace lev {

// The calling thread will run contexts. Cost: nothing after the first time.
void prepare_for_overflow() noexcept;

}  // namespace lev
