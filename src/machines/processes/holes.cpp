// Holes of the shared heap: places of the file that have no memory, because nothing was allocated
// there or because it was given back.
//
// userfaultfd is made for processes that fill such holes themselves. Here no process does: with
// UFFD_FEATURE_SIGBUS the fault ends in a signal. It works only for private mappings; the kernel
// asks for the right to write, which a private mapping of a file opened to read has.
#include "machines/processes/confine.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lev::processes {

namespace {
// Faults within system calls are not for the watcher: that needs no privilege (Linux 5.11).
constexpr int faults_of_code_only = 1;
}  // namespace

int watch_holes(std::uintptr_t begin, std::size_t bytes) noexcept {
  const int file = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | faults_of_code_only));
  if (file < 0) return -1;
  uffdio_api wanted{UFFD_API, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM, 0};
  uffdio_register place{{begin, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
  if (ioctl(file, UFFDIO_API, &wanted) == 0 && ioctl(file, UFFDIO_REGISTER, &place) == 0)
    return file;
  close(file);
  return -1;
}

}  // namespace lev::processes
