// Which cores this process may use.
#ifndef LEVERET_MACHINES_THREADS_CORES_HPP
#define LEVERET_MACHINES_THREADS_CORES_HPP

#include "sync/env.hpp"

#include <sched.h>
#include <sys/types.h>

#include <cstdint>

namespace lev {

// core_at() returns the system's number of the i-th core this process may use; -1 when there are
// fewer.
int core_at(unsigned index) noexcept;
// bind_to_core() keeps the calling thread on one core; failure is harmless and ignored.
void bind_to_core(int core) noexcept;

// note_cores() notes which cores the calling thread may run on; restore_cores() makes it so again.
void note_cores() noexcept;
void restore_cores() noexcept;
// As long as it lives, a thread of this process is not put on that core, and `note` is 1: a thread
// that sleeps will wake on another. Does nothing for thread 0, or one that has no other core;
// failure is harmless and ignored. What it may run on afterwards is what it was.
class kept_off {
 public:
  kept_off(std::uint32_t thread, std::uint32_t core, atomic<std::uint32_t>* note) noexcept;
  ~kept_off();
  kept_off(const kept_off&) = delete;
  kept_off& operator=(const kept_off&) = delete;

 private:
  pid_t thread_ = 0;  // 0: nothing was changed
  cpu_set_t before_;
  atomic<std::uint32_t>* note_;
};

}  // namespace lev

#endif
