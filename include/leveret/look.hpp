// A look at the worker processes of open runtimes, in this process or in others, as `leveret top`
// shows them. It costs those runtimes nothing: their shared memory is read from outside.
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

// A worker process. Its fields may be read a moment apart. Counts begin with 0 when the runtime
// opens, go on when the process is replaced, and wrap around at 2^32.
struct seen_worker {
  int pid = 0;                // 0: there is none now
  std::uint32_t deaths = 0;   // processes in its place that died
  std::uint32_t posted = 0;   // tasks sent to it, less those taken back when a process died
  std::uint32_t done = 0;     // of those, the ones that are over
  std::uint32_t waiting = 0;  // of those, the ones behind the running task
  std::uint32_t attempt = 0;  // at the running task, from 1; 0: none runs
  char procedure[procedure_name_bytes_max + 1] = {};  // of the running task, else empty
  // The procedure in which the last process to die in a task died; empty: none.
  char died_in[procedure_name_bytes_max + 1] = {};
};

// The worker processes of one runtime.
struct seen_pool {
  int pid = 0;  // of the process that opened it
  char program[procedure_name_bytes_max + 1] = {};
  std::vector<seen_worker> workers;
};

// look_at_pools() finds the open runtimes on the machine `processes`: those of process `pid`, or,
// with 0, of all processes of this user that may be inspected. Runtimes that end meanwhile are left
// out. Process numbers are those of the host's namespace. Names may hold any bytes but control
// characters. Throws std::bad_alloc; and lev::error (unavailable) when `pid` is not 0 and that
// process does not exist, may not be inspected, or has no such runtime. Thread safe. Takes some
// microseconds a process and worker.
std::vector<seen_pool> look_at_pools(int pid = 0);

}  // namespace lev

#endif
