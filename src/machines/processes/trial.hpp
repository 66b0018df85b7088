// trial: which libraries a confined worker may load. A library that starts a thread while it is
// loaded leaves an unconfined thread in the memory of confined bodies. A library that ends its
// process, or never finishes loading, would do so in each worker that loads it. The zygote finds
// out, once for each library, in a process that does nothing else.
#pragma once

#include "machines/processes/zygote.hpp"

#include <string>
#include <vector>

namespace lev::processes {

// The verdict on each of the first libraries of a book: empty, or why it is refused. Workers load
// only libraries with a verdict, which their zygote hands them.
using verdicts = std::vector<std::string>;

// try_libraries() adds verdicts for libraries that are new in the book. When the system refuses a
// process they stay unknown: a worker that gets a task of such a library leaves, and the next one
// is started after another try. The same happens when the socket `host` ends meanwhile.
void try_libraries(const book& b, const introduction& about, const fork_hooks& hooks, int host,
                   verdicts& known);

// The message about a library that starts threads.
std::string refusal_for_threads(const char* path);

}  // namespace lev::processes
