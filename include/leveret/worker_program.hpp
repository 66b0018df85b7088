// Functions for programs and tasks of worker processes; machine `processes` only.
#ifndef LEVERET_WORKER_PROGRAM_HPP
#define LEVERET_WORKER_PROGRAM_HPP

#include <cstdint>

namespace lev {

// run_worker_program() makes the calling process the source of worker processes and does not
// return; for programs that a runtime starts by config.processes.worker_command. Returns only if no
// runtime of this user has started the process. Runtimes opened before the call are closed from the
// start. The process is forked for each worker: `before_fork` is called before, `in_worker` first
// thing in the new process, `after_fork` in the old one; any may be null.
struct fork_hooks {
  void (*before_fork)() = nullptr;
  void (*in_worker)() = nullptr;
  void (*after_fork)() = nullptr;
  // Called last before the process ends, in a worker that is told to end or was retired. It has
  // little time: a closing runtime kills its remaining workers after a second.
  void (*at_end)() = nullptr;
};
void run_worker_program(const fork_hooks& hooks = {}) noexcept;

// retire_worker() asks, from inside a task in a worker process, that this process end when the task
// is complete, and a fresh one take its place. No effect elsewhere.
void retire_worker() noexcept;

// retire_worker_after() asks the same for when the process has had no task for `idle_ns`
// nanoseconds; 0 takes that back. Costs nothing while there are tasks; in a shared pool, of any
// host. No effect elsewhere.
void retire_worker_after(std::uint64_t idle_ns) noexcept;

// worker_index() returns, in a worker process, its number in the pool, from 0; its replacement has
// the same number. -1 elsewhere. Thread safe; costs a load.
int worker_index() noexcept;

}  // namespace lev

#endif
