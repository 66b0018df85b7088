// Closing all files from a number on: glibc 2.34 does it in the new process. The wheels are built
// with an older one, and look at run time whether it is there.
#include "machines/processes/close_from.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cstdlib>

// As <spawn.h> has it; null where glibc is older.
extern "C" int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t*, int) noexcept
    __attribute__((weak));

namespace lev::processes {

void close_from(posix_spawn_file_actions_t& actions, int first) noexcept {
  const auto in_one_go = &posix_spawn_file_actions_addclosefrom_np;
  if (in_one_go != nullptr && in_one_go(&actions, first) == 0) return;
  close_listed(actions, first);
}

void close_listed(posix_spawn_file_actions_t& actions, int first) noexcept {
  DIR* all = opendir("/proc/thread-self/fd");
  if (all == nullptr) return;
  while (const dirent* each = readdir(all)) {
    const int file = std::atoi(each->d_name);
    // A file that is closed meanwhile is no error there.
    if (file >= first && file != dirfd(all)) posix_spawn_file_actions_addclose(&actions, file);
  }
  closedir(all);
}

}  // namespace lev::processes
