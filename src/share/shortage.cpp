// Memory that is left: the kernel's own estimate, and for each control group from this process's up
// to the root the rest of its limit. Unused pages of files can be taken back, and swap can be used.
#include "share/shortage.hpp"

#include "base/numbers.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>

namespace lev {

namespace {

constexpr std::uint64_t unknown = ~std::uint64_t{0};
constexpr std::size_t path_bytes = 512;

std::uint64_t add_known(std::uint64_t a, std::uint64_t b) noexcept {
  return a > unknown - b ? unknown : a + b;
}

// The content of a small file, as far as it fits; empty when it cannot be read. Not on the stack:
// the caller may be a task on a small one.
class small_file {
 public:
  explicit small_file(const char* path) noexcept : bytes_(new (std::nothrow) char[size]) {
    const int file = bytes_ == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    std::size_t all = 0;
    ssize_t got = 0;
    while ((got = read(file, bytes_.get() + all, size - 1 - all)) > 0)
      all += static_cast<std::size_t>(got);
    bytes_[all] = 0;
    text = bytes_.get();
    close(file);
  }
  // The number behind a word that begins a line; 0 when there is none.
  std::uint64_t number(const char* word) const noexcept {
    const std::size_t length = std::strlen(word);
    for (const char* line = text; line != nullptr && *line != 0;) {
      if (std::strncmp(line, word, length) == 0) return std::strtoull(line + length, nullptr, 10);
      line = std::strchr(line, '\n');
      if (line != nullptr) ++line;
    }
    return 0;
  }
  const char* text = "";

 private:
  static constexpr std::size_t size = 6000;
  std::unique_ptr<char[]> bytes_;
};

// A folder of a control group; up() removes its last name.
class group_folder {
 public:
  group_folder(const char* root, const char* mount, const char* group) noexcept {
    const int top = std::snprintf(path_, sizeof path_, "%s%s", root, mount);
    const auto length = static_cast<std::size_t>(top);
    if (top < 0 || length >= sizeof path_) return;
    top_ = length;
    std::size_t i = 0;
    for (; group[i] != 0 && group[i] != '\n' && length + i + 1 < sizeof path_; ++i)
      path_[length + i] = group[i];
    path_[length + i] = 0;
  }
  bool up() noexcept {
    char* last = std::strrchr(path_ + top_, '/');
    if (last == nullptr) return false;
    *last = 0;
    return true;
  }
  small_file read(const char* name) const noexcept {
    char path[path_bytes + 40];
    std::snprintf(path, sizeof path, "%s/%s", path_, name);
    return small_file(path);
  }
  // The value of a file that holds one number; unknown for "max" and if there is none.
  std::uint64_t number(const char* name) const noexcept {
    const small_file f = read(name);
    return f.text[0] < '0' || f.text[0] > '9' ? unknown : std::strtoull(f.text, nullptr, 10);
  }

 private:
  char path_[path_bytes] = "";
  std::size_t top_ = 0;
};

std::uint64_t left_of(std::uint64_t limit, std::uint64_t used) noexcept {
  if (limit == unknown || used == unknown) return unknown;
  return limit > used ? limit - used : 0;
}

// Version 2 and version 1 have the same numbers by other names.
struct group_names {
  const char* limit;
  const char* used;
  const char* pages[2];  // in memory.stat: pages of files
  bool has_swap;         // a limit of its own
};
constexpr group_names of_version_2 = {
    "memory.max", "memory.current", {"inactive_file ", "active_file "}, true};
constexpr group_names of_version_1 = {"memory.limit_in_bytes",
                                      "memory.usage_in_bytes",
                                      {"total_inactive_file ", "total_active_file "},
                                      false};

void look_at_groups(group_folder at, const group_names& n, std::uint64_t swap,
                    memory_left& least) noexcept {
  do {
    std::uint64_t left = left_of(at.number(n.limit), at.number(n.used));
    if (left == unknown) continue;
    const small_file about = at.read("memory.stat");
    for (const char* pages : n.pages) left = add_known(left, about.number(pages));
    const std::uint64_t own_swap =
        n.has_swap ? left_of(at.number("memory.swap.max"), at.number("memory.swap.current"))
                   : unknown;
    left = add_known(left, smaller(own_swap, swap));
    if (left < least.bytes) least = {left, "this process's control group (memory.max)"};
  } while (at.up());
}

bool is_limited(__rlimit_resource_t what) noexcept {
  rlimit limit{};
  return getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// The number in a file that holds no more; 0 when it cannot be read.
std::uint64_t number_in(const char* root, const char* name) noexcept {
  char path[path_bytes];
  std::snprintf(path, sizeof path, "%s%s", root, name);
  return std::strtoull(small_file(path).text, nullptr, 10);
}

std::uint64_t count_lines(const char* root, const char* name) noexcept {
  char part[path_bytes];
  std::snprintf(part, sizeof part, "%s%s", root, name);
  const int file = open(part, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::uint64_t lines = 0;
  ssize_t got = 0;
  while ((got = read(file, part, sizeof part)) > 0)
    lines += static_cast<std::uint64_t>(std::count(part, part + got, '\n'));
  close(file);
  return lines;
}

// Whether what this process starts is in another PID namespace than itself. One that has no process
// yet cannot be read; kernels before 4.12 have no file for it.
bool has_left_its_namespace() noexcept {
  constexpr const char* next_path = "/proc/thread-self/ns/pid_for_children";
  char own[64];
  char next[64];
  const ssize_t a = readlink("/proc/thread-self/ns/pid", own, sizeof own);
  const ssize_t b = readlink(next_path, next, sizeof next);
  if (a <= 0) return false;
  if (b <= 0)
    return errno == ENOENT && faccessat(AT_FDCWD, next_path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return a != b || std::memcmp(own, next, static_cast<std::size_t>(a)) != 0;
}

}  // namespace

memory_limit find_memory_limit(const char* root) noexcept {
  if (is_limited(RLIMIT_AS)) return memory_limit::address_space;
  if (is_limited(RLIMIT_DATA)) return memory_limit::data;
  constexpr std::uint64_t near = 64;  // a failed step has given some back
  const std::uint64_t maps_max = number_in(root, "/proc/sys/vm/max_map_count");
  if (maps_max != 0 && count_lines(root, "/proc/thread-self/maps") + near >= maps_max)
    return memory_limit::mappings;
  constexpr std::uint64_t never_overcommits = 2;
  if (number_in(root, "/proc/sys/vm/overcommit_memory") == never_overcommits)
    return memory_limit::promises;
  return memory_limit::not_seen;
}

memory_left find_memory_left(const char* root) noexcept {
  char path[path_bytes];
  std::snprintf(path, sizeof path, "%s/proc/meminfo", root);
  const small_file machine(path);
  memory_left least;
  const std::uint64_t swap = machine.number("SwapFree:") * 1024;
  if (const std::uint64_t kib = machine.number("MemAvailable:"); kib != 0)
    least.bytes = kib * 1024 + swap;
  std::snprintf(path, sizeof path, "%s/proc/thread-self/cgroup", root);
  const small_file groups(path);
  for (const char* line = groups.text; line != nullptr && *line != 0;) {
    const char* const kind = std::strchr(line, ':');
    const char* const group = kind == nullptr ? nullptr : std::strchr(kind + 1, ':');
    if (group == nullptr) break;
    if (group == kind + 1) {  // version 2, alone or beside version 1
      look_at_groups({root, "/sys/fs/cgroup", group + 1}, of_version_2, swap, least);
      look_at_groups({root, "/sys/fs/cgroup/unified", group + 1}, of_version_2, swap, least);
    } else if (std::strncmp(kind, ":memory:", 8) == 0) {
      look_at_groups({root, "/sys/fs/cgroup/memory", group + 1}, of_version_1, swap, least);
    }
    line = std::strchr(group, '\n');
    if (line != nullptr) ++line;
  }
  return least;
}

no_write_signals::no_write_signals() noexcept {
  const int code = errno;
  sigset_t pending;
  sigset_t both;
  sigpending(&pending);
  sigemptyset(&both);
  sigemptyset(&taken_);
  for (const int number : {SIGXFSZ, SIGPIPE}) {
    sigaddset(&both, number);
    if (sigismember(&pending, number) == 0) sigaddset(&taken_, number);
  }
  pthread_sigmask(SIG_BLOCK, &both, &before_);
  errno = code;
}

no_write_signals::~no_write_signals() {
  const int code = errno;
  constexpr timespec at_once{};
  while (sigtimedwait(&taken_, nullptr, &at_once) > 0 || errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = code;
}

const char* raise_memory_limit(memory_limit found) noexcept {
  switch (found) {
    case memory_limit::address_space:
      return "; raise the limit on address space (ulimit -v)";
    case memory_limit::data:
      return "; raise the limit on data (ulimit -d)";
    case memory_limit::mappings:
      return "; this process has as many mappings as the system lets it have (vm.max_map_count)";
    case memory_limit::promises:
      return "; the system promises no more memory than it has (vm.overcommit_memory is 2)";
    case memory_limit::not_seen:
      break;
  }
  return "; free some";
}

const char* next_step(int code) noexcept {
  switch (code) {
    case EINVAL:
      if (has_left_its_namespace())
        return "; after unshare(CLONE_NEWPID) only the processes that it starts can have threads";
      return "";
    case EMFILE:
      return "; ask for fewer workers (config.workers) or raise the limit on files (ulimit -n)";
    case ENFILE:
      return "; the system has no open files left: ask for fewer workers (config.workers)";
    case EAGAIN:
      return "; ask for fewer workers (config.workers) or raise that on processes (ulimit -u)";
    case ENOMEM:
      switch (const memory_limit found = find_memory_limit()) {
        case memory_limit::address_space:
          return "; lower config.local_store_bytes or workers, or raise the limit on address space "
                 "(ulimit -v)";
        case memory_limit::data:
          return "; lower config.local_store_bytes or workers, or raise the limit on data "
                 "(ulimit -d)";
        case memory_limit::not_seen:
          if (has_left_its_namespace())
            return "; after unshare(CLONE_NEWPID) no process can be started any more when the "
                   "first one has ended";
          return "; lower config.local_store_bytes or workers";
        default:
          return raise_memory_limit(found);
      }
    case EFBIG:
      return "; memory that processes share counts as a file: raise the limit on the size of files "
             "(ulimit -f)";
    case ENOSPC:
      return "; the system has no memory left: free some";
    default:
      return "";
  }
}

const char* next_step_of_memory(int code) noexcept {
  switch (code) {
    case EMFILE:
      return "; raise the limit on files (ulimit -n)";
    case ENFILE:
      return "; the system has no open files left";
    case ENOMEM:
      return raise_memory_limit(find_memory_limit());
    default:
      return next_step(code);
  }
}

bool is_shortage(int code) noexcept {
  return code == ENOMEM || code == EAGAIN || code == EMFILE || code == ENFILE || code == ENOSPC ||
         code == ENOBUFS || code == EFBIG;
}

}  // namespace lev
