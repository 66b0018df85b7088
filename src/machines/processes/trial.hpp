// trial: which libraries a confined worker may load. A library that starts a thread while it is
// loaded leaves one that is not confined, in the memory of bodies that are to be; one that ends its
// process, or does not come to an end, would take each worker along that loads it. The zygote finds
// out, once for each library, in a process that does nothing else.
#ifndef LEVERET_MACHINES_PROCESSES_TRIAL_HPP
#define LEVERET_MACHINES_PROCESSES_TRIAL_HPP

#include "machines/processes/zygote.hpp"

#include <string>
#include <vector>

namespace lev::processes {

// The verdict on each of the first libraries of a book: empty, or why it is refused. Workers load
// those of which something is known, and no others: their zygote hands them what it knows.
using verdicts = std::vector<std::string>;

// try_libraries() adds verdicts for those that are new in the book. When the system refuses a
// process they stay unknown: the worker that is asked for a task of one leaves, and the next one is
// started after another try. The same when the end of the socket `host` is heard meanwhile.
void try_libraries(const book& b, const introduction& about, const fork_hooks& hooks, int host,
                   verdicts& known);

// The message about a library that starts threads.
std::string refusal_for_threads(const char* path);

}  // namespace lev::processes

#endif
