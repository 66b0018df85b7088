// death: what a worker process died of, as the runtime tells it.
#ifndef LEVERET_MACHINES_PROCESSES_DEATH_HPP
#define LEVERET_MACHINES_PROCESSES_DEATH_HPP

#include "machine/machine.hpp"

#include <sys/types.h>

namespace lev::processes {

// explain() says of a death what `how` means, which is what waitpid() said; -1: nobody could tell.
void explain(int how, bool is_confined, remote_death& d) noexcept;

// has_ended() tells whether what waitpid() said of a child is an end. It is none where the child
// has made its parent its tracer (PTRACE_TRACEME), and a signal has stopped it: then it goes on,
// without a tracer, and has the signal.
bool has_ended(pid_t child, int how) noexcept;

// wait_for_end() is waitpid() for the end of a child that is about to end; returns how.
int wait_for_end(pid_t child) noexcept;

}  // namespace lev::processes

#endif
