// zygote: a small process, the host program started again, that forks workers, waits for their
// deaths and tells the host, over one socket. When the socket's other end is gone, or the host is
// (a child that it forked may hold that end, too), the zygote kills its workers and ends.
// berth.hpp says what is different in a shared pool, whose zygote is called its keeper.
#pragma once

#include <leveret/config.hpp>
#include <leveret/worker_program.hpp>

#include "machines/processes/book.hpp"
#include "machines/processes/sign.hpp"

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <span>
#include <utility>

namespace lev::processes {

// introduction: the settings that a runtime's workers have in common; the first message. It brings
// three files: heap, board, bell. For a shared pool it brings two more, standard output and error:
// a task prints where its host does. All fields are set, and the settings are compared, because it
// is sent to other programs as well.
struct introduction {
  static constexpr std::uint32_t magic = 0x6c657672;
  std::uint32_t tag = magic;
  std::uint32_t version = 2;
  std::uint64_t heap_begin = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t store_bytes = 0;
  std::uint64_t lane_bytes = 0;  // with its store
  std::uint32_t spin_ns = 0;
  std::uint64_t data_bytes_max = 0;   // RLIMIT_DATA of a worker; 0: none
  std::uint32_t cpu_seconds_max = 0;  // RLIMIT_CPU of a worker; 0: none
  std::uint32_t chaos = 0;            // config.processes.chaos
  std::uint64_t seed = 0;
  lev::isolation level = lev::isolation::crash;
  std::uint64_t faults = 0;   // a fault_plan in the heap, for tests; 0: none
  std::uint64_t program = 0;  // of a shared pool: tells worker programs apart
};

static_assert(std::is_trivially_copyable_v<introduction>);  // sent as it is
static_assert(offsetof(introduction, tag) == 0 && offsetof(introduction, version) == 4);

// board: the memory that a runtime's workers share besides the heap, in one file that they see
// read-only.
struct board {
  sign shown;
  end_watch<> watch;
  book procedures;
};
static_assert(std::is_standard_layout_v<board> && offsetof(board, shown) == 0);

// order: from a host. Start a worker on a lane, whose file comes along; kill it; or give it up
// because it is of no use. A worker that serves several hosts is killed only while it serves this
// one, and a worker that is given up ends before its next task. In a shared pool also: this host
// leaves, and has no task under way.
struct order {
  enum : std::uint32_t { start = 0, kill = 1, leave = 2, give_up = 3 };
  std::uint32_t what = start;
  std::uint32_t worker = 0;
  std::uint64_t lane_begin = 0;  // kill: the order's number
};

// report: from the zygote. `started` brings the worker's pidfd along, `ready` of a shared pool its
// page.
struct report {
  enum : std::uint32_t {
    ready = 0,
    refused = 1,
    started = 2,
    not_started = 3,
    died = 4,
    unavailable = 5,  // refused: the system lacks something, and no other number of workers helps
    spared = 6        // for shared workers: the one to be killed did not serve this host
  };
  std::uint32_t what = ready;
  std::uint32_t worker = 0;
  std::int32_t pid = 0;
  // died: the status of waitpid(); refused, not_started: errno or 0; spared: the order's number
  std::int32_t number = 0;
  // For a shared pool. ready: the host's number; died: whether the worker had ever begun a task of
  // any host, whether this host had it killed, and whether it served another host, or this one.
  std::uint32_t member = 0;
  bool had_work = false;
  bool was_ordered = false;
  bool was_away = false;
  bool was_here = false;
  char text[120] = {};  // refused, unavailable: the step that failed
};
static_assert(std::is_trivially_copyable_v<order> && std::is_trivially_copyable_v<report>);
// A received message is checked by its size.
static_assert(sizeof(order) != sizeof(introduction) && sizeof(report) != sizeof(introduction));

// The number is forgotten first: a process that another thread forks here must not close another
// file that gets the number.
inline void close_file(int* file) noexcept {
  const int number = std::exchange(*file, -1);
  if (number >= 0) close(number);
}

// send_message() and receive_message() move one message, with files; fewer files than there is room
// for leave -1. Receiving returns the number of bytes, 0 when the other end is gone, -1 when there
// is none now or the system failed.
bool send_bytes(int socket, std::span<const std::byte> bytes, std::span<const int> files,
                int flags) noexcept;
ssize_t receive_bytes(int socket, std::span<std::byte> bytes, std::span<int> files) noexcept;
template <class Message>
bool send_message(int socket, const Message& m, std::span<const int> files = {},
                  int flags = MSG_DONTWAIT) noexcept {
  static_assert(std::is_trivially_copyable_v<Message>);
  return send_bytes(socket, std::as_bytes(std::span(&m, 1)), files, flags);
}
template <class Message>
ssize_t receive_message(int socket, Message& m, std::span<int> files) noexcept {
  static_assert(std::is_trivially_copyable_v<Message>);
  return receive_bytes(socket, std::as_writable_bytes(std::span(&m, 1)), files);
}

// run_zygote() is a zygote's main function (zygote_members.cpp). Its hosts connect to `socket`, or
// its only one is at the other end.
[[noreturn]] void run_zygote(int socket, const fork_hooks& hooks) noexcept;

// Steps in the life of a zygote and of its workers.
int listen_for_deaths() noexcept;  // a signalfd
// fork_worker() starts a process as fork() does: it returns in both, and *pid is 0 in the new one,
// which is a worker by then (become_worker()). The parent gets its pidfd, or -1 with errno set;
// then there is no process.
int fork_worker(const fork_hooks& hooks, const introduction& about, pid_t* pid) noexcept;
// become_worker() makes the new process die with its parent and gives it its name and limits.
void become_worker(const introduction& about, pid_t parent) noexcept;
// leave_group() gives this process a group of its own: a task that signals its group reaches itself
// and its children, and neither the zygote nor other workers. Until then a host that adopts orphans
// finds it by the zygote's group (pool::reap_untold()).
void leave_group() noexcept;
// explain() explains a worker's death by `how`, the status of waitpid(); -1: not known.
void explain(int how, bool is_confined, remote_death& d) noexcept;
// has_ended() tells whether waitpid()'s status of a child is an end. It is not if the child has
// made its parent its tracer (PTRACE_TRACEME), and a signal has stopped it: then the child goes on,
// without a tracer, and gets the signal.
bool has_ended(pid_t child, int how) noexcept;
// wait_for_end() is waitpid() for the end of a child that is about to end; returns how.
int wait_for_end(pid_t child) noexcept;
// A process that a task forks is not the worker: it must not go on in the worker's place, nor write
// after the worker's death.
void keep_from_forks(std::uintptr_t begin, std::size_t bytes) noexcept;
// end_if_forked() ends such a process as by _exit() when its body returns.
[[gnu::visibility("hidden")]] extern bool is_forked_by_task;
inline void end_if_forked(bool has_failed) noexcept {
  if (is_forked_by_task) [[unlikely]]
    _exit(has_failed ? 1 : 0);
}

// call_at_end() sets the function that a worker calls when it ends normally; see fork_hooks.
void call_at_end(void (*hook)()) noexcept;

// The exit code of a confined worker that was given a task of a library that it has not loaded. It
// has not begun the task; its successor loads the library first.
constexpr int new_library_code = 75;

// The variable that tells the restarted host program to be a zygote, and the name that it is
// started by. Defined beside the constructor that looks for them: a program that uses them links
// the constructor.
extern const char* const zygote_variable;
extern const char* const zygote_name;

}  // namespace lev::processes
