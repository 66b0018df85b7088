// Looking at the pools of other processes, from outside:
//
//   1. Among a process's open files (/proc/PID/fd) find the board, by its name.
//   2. Copy the sign at its beginning; check what it says about itself.
//   3. For each worker, open and copy the lane, whose file the sign names, and sum it up.
//   4. Look up the name of the running procedure, in the board's book.
//
// Nothing is mapped, so a file that gets shorter causes a short read and no SIGBUS. No byte that is
// read is used as an address or a length. A file is asked for its seals before it is read: only
// memory files have them, so no pipe, device or file system can keep the looker waiting.
#include <leveret/look.hpp>
#include <leveret/status.hpp>

#include "base/numbers.hpp"
#include "machines/processes/text.hpp"
#include "machines/processes/zygote.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace lev {

namespace {

using processes::board;
using processes::board_name;
using processes::book;
using processes::book_entry;
using processes::lane;
using processes::lane_records;
using processes::line_breaks;
using processes::sign;
using processes::worker_sign;

class file {
 public:
  explicit file(int number) noexcept : number_(number) {}
  ~file() {
    if (number_ >= 0) close(number_);
  }
  file(file&&) = delete;
  int number() const noexcept { return number_; }

  bool read_at(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
    return pread(number_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }

 private:
  int number_;
};

struct folder_closer {
  void operator()(DIR* d) const noexcept { closedir(d); }
};
using folder = std::unique_ptr<DIR, folder_closer>;

folder open_folder(const char* path) noexcept {
  return folder(opendir(path));
}

void make_printable(char* text) noexcept {
  text[processes::make_printable(text, std::strlen(text), text, line_breaks::replaced)] = 0;
}

// The content of a small file of /proc, as far as it fits; empty when it cannot be read.
template <std::size_t Size>
void read_text(const char* path, char (&text)[Size]) noexcept {
  const file f(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = f.number() < 0 ? 0 : read(f.number(), text, Size - 1);
  text[got > 0 ? got : 0] = 0;
}

// The number of a process in its own namespace, which its sign has.
std::uint32_t own_number(int pid) noexcept {
  char path[40];
  char text[4096];
  std::snprintf(path, sizeof path, "/proc/%d/status", pid);
  read_text(path, text);
  const char* line = std::strstr(text, "\nNSpid:");
  if (line == nullptr) return static_cast<std::uint32_t>(pid);
  char* at = const_cast<char*>(line) + 7;
  unsigned long number = 0;
  while (*at == ' ' || *at == '\t') number = std::strtoul(at, &at, 10);  // the last one is its own
  return static_cast<std::uint32_t>(number);
}

class process_files {
 public:
  explicit process_files(int pid) noexcept : pid_(pid) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/%d/fd", pid);
    files_ = open_folder(path);
  }
  bool is_open() const noexcept { return files_ != nullptr; }

  // find() adds the pools of the process.
  void find(std::vector<seen_pool>& pools) const {
    while (const dirent* entry = readdir(files_.get())) {
      if (is_board(entry->d_name)) look(entry->d_name, pools);
    }
  }

 private:
  bool is_board(const char* name) const noexcept {
    char target[64];
    const ssize_t length = readlinkat(dirfd(files_.get()), name, target, sizeof target - 1);
    if (length < 0) return false;
    target[length] = 0;
    constexpr char prefix[] = "/memfd:";
    const std::size_t prefix_bytes = sizeof prefix - 1;
    return std::strncmp(target, prefix, prefix_bytes) == 0 &&
           std::strncmp(target + prefix_bytes, board_name, std::strlen(board_name)) == 0;
  }

  // A memory file of the process, or -1.
  int open_memory(const char* name, struct stat* about) const noexcept {
    constexpr int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int number = openat(dirfd(files_.get()), name, how);
    if (number < 0) return -1;
    if (fcntl(number, F_GET_SEALS) >= 0 && fstat(number, about) == 0 && S_ISREG(about->st_mode))
      return number;
    close(number);
    return -1;
  }

  void look(const char* name, std::vector<seen_pool>& pools) const;
  bool look_at_lane(const worker_sign& its, lane<>* copy) const noexcept;

  int pid_;
  folder files_;
};

// A board of a newer or older Leveret, or something else, is skipped.
bool is_known(const sign& s, const struct stat& about) noexcept {
  // Pairs with pool::show_pool(), as far as a copy of another process's memory can.
  return s.magic.load(memory_order_acquire) == sign::open_pool && s.version == sign::this_version &&
         s.board_bytes == sizeof(board) && s.lane_bytes == sizeof(lane<>) &&
         s.workers <= workers_max && static_cast<std::uint64_t>(about.st_size) >= sizeof(board);
}

// The newest number of a ring, counted from the one before the worker's first task; 0 is none.
template <class NumberAt>
std::uint32_t newest(const NumberAt& number_at, std::uint32_t before_first) noexcept {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < lane_records; ++i) {
    const std::uint32_t number = number_at(i);
    const std::uint32_t after = number - before_first;
    if (number % lane_records == i && after <= ~0u / 2) most = larger(most, after);
  }
  return most;
}

// A worker can write anything to its lane, and goes on while the lane is copied. Whatever the
// numbers are, the result is a line no longer than a line can be.
procedure_id sum_up(const lane<>& seen, std::uint32_t returned, seen_worker& worker) noexcept {
  const std::uint32_t before_first = seen.first - 1;
  const auto record_at = [&](std::uint32_t i) {
    return seen.records[i].number.load(memory_order_relaxed);
  };
  const auto end_at = [&](std::uint32_t i) {
    return lane<>::number_of(seen.ended[i].load(memory_order_relaxed));
  };
  const std::uint32_t posted = newest(record_at, before_first);
  const std::uint32_t done = smaller(newest(end_at, before_first), posted);
  LEV_DCHECK(done <= posted);
  const std::uint32_t line = smaller(posted - done, lane_records);
  worker.posted = before_first + posted - returned;
  worker.done = worker.posted - line;
  worker.waiting = line;
  const std::uint32_t claimed = seen.claimed.load(memory_order_relaxed) - before_first;
  if (line == 0 || claimed <= done || claimed > posted) return 0;
  const auto& task = seen.records[(before_first + claimed) % lane_records];
  --worker.waiting;
  worker.attempt = task.attempt == 0 ? 1u : task.attempt;
  return task.procedure;
}

template <std::size_t Size>
void read_name(const file& from, procedure_id id, char (&name)[Size]) noexcept {
  // A name of the book fits, with the zero that terminates it.
  static_assert(sizeof(book_entry::name) <= Size);
  const std::size_t entry =
      offsetof(board, procedures) + offsetof(book, entries) + std::size_t{id} * sizeof(book_entry);
  const bool is_there = id != 0 && id <= procedure_count_max &&
                        from.read_at(entry + offsetof(book_entry, name), name, Size);
  if (!is_there || name[0] == 0) std::snprintf(name, Size, "?");
  name[Size - 1] = 0;
  make_printable(name);
}

bool process_files::look_at_lane(const worker_sign& its, lane<>* copy) const noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%d", its.file);
  struct stat about;
  const file f(open_memory(name, &about));
  return f.number() >= 0 && about.st_ino == its.inode && f.read_at(0, copy, sizeof *copy);
}

void process_files::look(const char* name, std::vector<seen_pool>& pools) const {
  struct stat about;
  const file board_file(open_memory(name, &about));
  const auto shown = std::make_unique<sign>();
  if (board_file.number() < 0 || !board_file.read_at(0, shown.get(), sizeof(sign))) return;
  // A process that was forked from the host, and did not start another program, has its files.
  if (!is_known(*shown, about) || shown->host != own_number(pid_)) return;
  seen_pool pool;
  pool.pid = pid_;
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/comm", pid_);
  read_text(path, pool.program);
  if (char* end = std::strchr(pool.program, '\n')) *end = 0;
  make_printable(pool.program);
  const auto copy = std::make_unique<lane<>>();
  for (std::uint32_t i = 0; i < shown->workers; ++i) {
    const worker_sign& its = shown->worker_signs[i];
    seen_worker worker;
    worker.pid = static_cast<int>(its.pid.load(memory_order_relaxed));
    worker.deaths = its.deaths.load(memory_order_relaxed);
    if (!look_at_lane(its, copy.get())) return;  // the pool ends
    const procedure_id id = sum_up(*copy, its.returned.load(memory_order_relaxed), worker);
    if (worker.attempt != 0) read_name(board_file, id, worker.procedure);
    const procedure_id died_in = its.died_in.load(memory_order_relaxed);
    if (died_in != 0) read_name(board_file, died_in, worker.died_in);
    pool.workers.push_back(worker);
  }
  pools.push_back(std::move(pool));
}

[[noreturn]] void refuse(int pid, const char* why) {
  char text[160];
  std::snprintf(text, sizeof text, "process %d %s", pid, why);
  throw error(status::unavailable, -1, text);
}

void look_at_all(std::vector<seen_pool>& pools) {
  const folder all = open_folder("/proc");
  if (all == nullptr) throw error(status::unavailable, -1, "there is no /proc to look at");
  while (const dirent* entry = readdir(all.get())) {
    const int pid = std::atoi(entry->d_name);
    struct stat about;
    if (pid <= 0 || fstatat(dirfd(all.get()), entry->d_name, &about, 0) != 0 ||
        about.st_uid != geteuid())
      continue;
    const process_files files(pid);
    if (files.is_open()) files.find(pools);
  }
}

}  // namespace

std::vector<seen_pool> look_at_pools(int pid) {
  std::vector<seen_pool> pools;
  if (pid == 0) {
    look_at_all(pools);
    return pools;
  }
  if (pid < 0) refuse(pid, "is none: its number must be above 0");
  const process_files files(pid);
  if (!files.is_open())
    refuse(pid, errno == ENOENT ? "is not there" : "may not be looked at: it is another user's");
  files.find(pools);
  if (pools.empty()) refuse(pid, "has no runtime open on the machine `processes`");
  return pools;
}

}  // namespace lev
