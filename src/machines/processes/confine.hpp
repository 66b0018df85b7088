// confine: the rights that a worker at lev::isolation::confined gives up before it takes a task.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lev::processes {

// The memory and files that are left to the process, and the memory to be watched.
struct confinement {
  int bell = -1;
  std::uintptr_t heap_begin = 0;  // the shared heap, mapped to read
  std::size_t heap_bytes = 0;
  std::uint64_t memory_bytes_max = 0;  // config.processes.worker_bytes_max; 0: no limit
};

// confine() takes from the calling process everything that a task does not need; null, or the step
// that failed, with the reason in errno. It confines the whole process or nothing: a process with
// more than one thread is refused.
const char* confine(const confinement& c) noexcept;

// is_alone() tells whether the process has one thread. A thread that has ended may still be on the
// kernel's list: the call waits for it, for two seconds at most.
bool is_alone() noexcept;
// thread_count(): how many threads the process has now; 0: the system does not say.
unsigned thread_count() noexcept;

// kept_output: standard output and error as they are when it is made. put_back() makes them so
// again: a library that is loaded in between may have closed them and opened other files.
class kept_output {
 public:
  kept_output() noexcept;
  void put_back() noexcept;

 private:
  int files_[2];
};

// A step of confine(): filter_calls() installs the list of system calls; memory below `guarded_end`
// cannot get other rights. False, with errno set: the system refuses.
bool filter_calls(int bell, std::uintptr_t guarded_end) noexcept;

}  // namespace lev::processes
