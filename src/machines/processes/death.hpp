// death: the cause of a worker process's death, as the runtime reports it.
#pragma once

#include "machine/machine.hpp"

#include <sys/types.h>

namespace lev::processes {

// explain() explains a death by `how`, the status of waitpid(); -1: not known.
void explain(int how, bool is_confined, remote_death& d) noexcept;

// has_ended() tells whether waitpid()'s status of a child is an end. It is not if the child has
// made its parent its tracer (PTRACE_TRACEME), and a signal has stopped it: then the child goes on,
// without a tracer, and gets the signal.
bool has_ended(pid_t child, int how) noexcept;

// wait_for_end() is waitpid() for the end of a child that is about to end; returns how.
int wait_for_end(pid_t child) noexcept;

}  // namespace lev::processes
