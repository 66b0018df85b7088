// death: what a worker process died of, as the runtime tells it.
#ifndef LEVERET_MACHINES_PROCESSES_DEATH_HPP
#define LEVERET_MACHINES_PROCESSES_DEATH_HPP

#include "machine/machine.hpp"

namespace lev::processes {

// explain() says of a death what `how` means, which is what waitpid() said; -1: nobody could tell.
void explain(int how, bool is_confined, remote_death& d) noexcept;

}  // namespace lev::processes

#endif
