// A confined worker may ask the kernel only for memory of its own and the time, to sleep and wake
// on its lane, to ring the host, to write to its output, and to end. Layer by layer:
//
//   1. one thread: the next steps apply to the whole process
//   2. descriptors: standard input is /dev/null; all others are closed but standard output,
//      standard error, the bell, and what watches the holes of the heap
//   3. limits: on memory, however it is had; no core dumps, no new descriptors, no processes, no
//      growing files, no waiting signals
//   4. no privileges by exec, no capabilities, not to be traced
//   5. Landlock: no file, no TCP port, no signal or abstract socket outside
//   6. seccomp: a list of system calls (call_filter.cpp)
//
// The last alone would be enough; the others hold if a rule in it is wrong.
#include "machines/processes/confine.hpp"

#include "base/assert.hpp"
#include "base/kernel_numbers.hpp"
#include "base/numbers.hpp"
#include "machines/processes/output.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace lev::processes {

namespace {

// A worker has standard output and error from its host or /dev/null (start_zygote.cpp), unless they
// were closed since.
void close_files(int bell, int watcher) noexcept {
  use_nothing_for(STDIN_FILENO, O_RDONLY);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) < 0) use_nothing_for(file, O_WRONLY);
  }
  unsigned next = STDERR_FILENO + 1;
  const auto close_until = [&](unsigned end) {
    if (next < end) syscall(kernel::close_range, next, end - 1, 0);
    next = end + 1;
  };
  const auto first = static_cast<unsigned>(std::max(std::min(bell, watcher), 0));
  if (watcher >= 0) close_until(first);
  close_until(static_cast<unsigned>(std::max(bell, watcher)));
  syscall(kernel::close_range, next, ~0u, 0);
}

// All of the process's mappings, in bytes; 0: the system does not say.
std::uint64_t mapped_bytes() noexcept {
  std::FILE* f = std::fopen("/proc/self/statm", "re");
  if (f == nullptr) return 0;
  unsigned long pages = 0;
  if (std::fscanf(f, "%lu", &pages) != 1) pages = 0;
  std::fclose(f);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void limit(int what, std::uint64_t most) noexcept {
  const rlimit value{most, most};
  setrlimit(static_cast<__rlimit_resource_t>(what), &value);
}

// RLIMIT_DATA (become_worker) counts private writable memory. This also limits memory that the
// kernel takes for a stack, and the mappings that are added to those that the worker begins with.
// (These exceed memory: the heap alone is 64 GiB.)
bool limit_memory(std::uint64_t most) noexcept {
  if (most == 0) return true;
  constexpr std::uint64_t stack_bytes_min = 1 << 20;
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = std::min<rlim_t>(stack.rlim_cur, larger(most, stack_bytes_min));
  limit(RLIMIT_STACK, stack.rlim_cur);
  const std::uint64_t present = mapped_bytes();
  if (present == 0) return false;
  if (most < ~std::uint64_t{0} - present - stack.rlim_cur)
    limit(RLIMIT_AS, present + most + stack.rlim_cur);
  return true;
}

void limit_resources() noexcept {
  for (const int what : {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                         RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE})
    limit(what, 0);
  std::signal(SIGXFSZ, SIG_IGN);  // output to a file is lost, but the worker goes on
}

bool drop_capabilities() noexcept {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &head, none) == 0;
}

// Landlock by number: headers and C libraries are older than the kernels that have it.
constexpr long sys_landlock_create_ruleset = 444;
constexpr long sys_landlock_restrict_self = 446;
constexpr unsigned landlock_version_flag = 1;

// Everything that the kernel's version can deny, without exception.
bool deny_files() noexcept {
  struct {
    std::uint64_t files;
    std::uint64_t network;
    std::uint64_t scopes;
  } denied = {};
  const long version = syscall(sys_landlock_create_ruleset, nullptr, 0, landlock_version_flag);
  if (version <= 0) return false;
  // Rights of files: 13 in version 1, then one more each in 2 (refer), 3 (truncate), 5 (ioctl).
  constexpr unsigned rights = 13;
  const unsigned more = version >= 5 ? 3 : version >= 3 ? 2 : version >= 2 ? 1 : 0;
  denied.files = (std::uint64_t{1} << (rights + more)) - 1;
  denied.network = version >= 4 ? 3 : 0;  // TCP: bind, connect
  denied.scopes = version >= 6 ? 3 : 0;   // abstract sockets, signals
  const long rules = syscall(sys_landlock_create_ruleset, &denied, sizeof denied, 0);
  if (rules < 0) return false;
  const bool is_done = syscall(sys_landlock_restrict_self, rules, 0) == 0;
  close(static_cast<int>(rules));
  return is_done;
}

// Makes a read of shared memory that was never taken, or was given back, end in SIGBUS in this
// process. Without it such a read would make the kernel allocate a page, in the host's file, which
// no limit counts. Returns a file that must stay open, or -1: the system has no userfaultfd. Then
// only reads behind the file's end are safe.
//
// userfaultfd is made for processes that fill such holes of a file themselves. Here no process
// does: with UFFD_FEATURE_SIGBUS the fault ends in a signal. It works only for private mappings;
// the kernel asks for the right to write, which a private mapping of a file opened to read has.
int watch_holes(std::uintptr_t begin, std::size_t bytes) noexcept {
  // Faults within system calls are not for the watcher: that needs no privilege (Linux 5.11).
  constexpr int faults_of_code_only = 1;
  const int file = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | faults_of_code_only));
  if (file < 0) return -1;
  uffdio_api wanted{UFFD_API, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM, 0};
  uffdio_register place{{begin, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
  if (ioctl(file, UFFDIO_API, &wanted) == 0 && ioctl(file, UFFDIO_REGISTER, &place) == 0)
    return file;
  close(file);
  return -1;
}

}  // namespace

unsigned thread_count() noexcept {
  DIR* threads = opendir("/proc/self/task");
  if (threads == nullptr) return 0;
  unsigned count = 0;
  while (const dirent* entry = readdir(threads)) count += entry->d_name[0] != '.';
  closedir(threads);
  return count;
}

bool is_alone() noexcept {
  constexpr int looks_max = 2'000;
  constexpr timespec pause{0, 1'000'000};
  for (int i = 0; i < looks_max; ++i) {
    if (thread_count() == 1) return true;
    nanosleep(&pause, nullptr);
  }
  return false;
}

kept_output::kept_output() noexcept {
  for (int i = 0; i < 2; ++i)
    files_[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void kept_output::put_back() noexcept {
  for (int i = 0; i < 2; ++i) {
    if (files_[i] < 0 || dup2(files_[i], STDOUT_FILENO + i) < 0)
      use_nothing_for(STDOUT_FILENO + i, O_WRONLY);
    if (files_[i] >= 0) close(files_[i]);
    files_[i] = -1;
  }
}

const char* confine(const confinement& c) noexcept {
  constexpr const char* no_proc = "confined workers need /proc, and memory to read it";
  if (thread_count() == 0) return no_proc;
  if (!is_alone()) {
    errno = 0;
    return "confined workers must have one thread, and this program starts more in processes that "
           "it forks";
  }
  LEV_ASSERT(c.bell > STDERR_FILENO);  // it stays open, and printed output must not ring
  const int watcher = watch_holes(c.heap_begin, c.heap_bytes);
  if (!limit_memory(c.memory_bytes_max)) return no_proc;
  close_files(c.bell, watcher);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "confined workers need no_new_privs";
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "confined workers: PR_SET_DUMPABLE";
  if (!deny_files())
    return "confined workers need Landlock, which this kernel has not or not enabled";
  limit_resources();
  if (!drop_capabilities()) return "confined workers: giving up capabilities";
  if (!filter_calls(c.bell, c.heap_begin + c.heap_bytes))
    return "confined workers need seccomp filters, on x86-64 or aarch64";
  return nullptr;
}

}  // namespace lev::processes
