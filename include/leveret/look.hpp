// A look at the worker processes of runtimes that are open, in this process or in others: what
// `leveret top` shows. It costs those runtimes nothing: their shared memory is read from outside.
//
//   for (const lev::seen_pool& pool : lev::look_at_pools())
//     for (const lev::seen_worker& worker : pool.workers)
//       std::printf("%d: %s\n", worker.pid, worker.procedure);
#ifndef LEVERET_LOOK_HPP
#define LEVERET_LOOK_HPP

#include <leveret/procedure.hpp>

#include <cstdint>
#include <vector>

namespace lev {

// A worker process. What belongs together may be a moment apart. Counts begin with 0 when the
// runtime opens, go on when the process is replaced, and wrap around at 2^32.
struct seen_worker {
  int pid = 0;                // 0: there is none now
  std::uint32_t deaths = 0;   // processes in its place that died
  std::uint32_t posted = 0;   // tasks sent to it, less those taken back when a process died
  std::uint32_t done = 0;     // of those, the ones that are over
  std::uint32_t waiting = 0;  // of those, the ones behind the task that runs
  std::uint32_t attempt = 0;  // at the task that runs, from 1; 0: none runs
  char procedure[procedure_name_bytes_max + 1] = {};  // of the task that runs, else empty
  // The procedure that the last process died in that died in a task; empty: none.
  char died_in[procedure_name_bytes_max + 1] = {};
};

// The worker processes of one runtime.
struct seen_pool {
  int pid = 0;  // of the process that opened it
  char program[procedure_name_bytes_max + 1] = {};
  std::vector<seen_worker> workers;
};

// look_at_pools() finds the open runtimes on the machine `processes`: those of process `pid`, or,
// with 0, of all processes of this user that may be looked at; those that end meanwhile are left
// out. Process numbers are those of the host's namespace. Names may hold any bytes but control
// characters. Throws lev::error, `unavailable`, when `pid` is not 0 and there is no such process,
// it may not be looked at, or it has no such runtime; std::bad_alloc. Thread safe. Takes some
// microseconds a process and worker.
std::vector<seen_pool> look_at_pools(int pid = 0);

}  // namespace lev

#endif
