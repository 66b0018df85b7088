// Files at high numbers, memory files and their seals.
#include "share/own_files.hpp"

#include "base/kernel_numbers.hpp"
#include "share/faults.hpp"
#include "share/shortage.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lev {

int out_of_the_way(int file) noexcept {
  // Within the usual limit of 1,024. No number is used again soon: if the program has closed a file
  // of ours, our next one is not taken for it.
  constexpr int first = 640;
  constexpr unsigned numbers = 256;
  // Written and read by all threads that make files. Publishes nothing.
  static atomic<unsigned> count{0};
  if (file < 0 || file >= first) return file;
  const int before = errno;
  const unsigned n = count.fetch_add(1, memory_order_relaxed) % numbers;
  int higher = fcntl(file, F_DUPFD_CLOEXEC, first + static_cast<int>(n));
  if (higher < 0 && file > STDERR_FILENO) return errno = before, file;
  if (higher < 0) higher = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int code = higher < 0 ? errno : before;
  close(file);
  errno = code;
  return higher;
}

int make_memory_file(const char* name, std::size_t bytes, file_growth growth) noexcept {
  const int seals = growth == may_grow ? F_SEAL_SHRINK : F_SEAL_SHRINK | F_SEAL_GROW;
  const int file = fault_at("host.memfd_create")
                       ? -1
                       : out_of_the_way(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0) return -1;
  const no_write_signals guard;
  if (fault_at("host.ftruncate") || ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      fault_at("host.add_seals") || fcntl(file, F_ADD_SEALS, seals) != 0) {
    const int code = errno;
    close(file);
    errno = code;
    return -1;
  }
  return file;
}

bool seal_memory_file(int file, bool read_only) noexcept {
  return fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | (read_only ? kernel::seal_future_write : 0)) == 0;
}

// By this thread: a process whose main thread has ended has no files by its own name.
int open_to_read(int file) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file);
  return out_of_the_way(open(path, O_RDONLY | O_CLOEXEC));
}

}  // namespace lev
