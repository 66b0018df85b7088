// How a pool starts its zygote, replaces it when it is gone, and ends it.
#include "base/kernel_numbers.hpp"
#include "machines/processes/poll_until.hpp"
#include "machines/processes/pool.hpp"
#include "machines/processes/program.hpp"
#include "machines/processes/start_again.hpp"
#include "share/faults.hpp"
#include "share/own_files.hpp"
#include "share/role.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <utility>

namespace lev::processes {

namespace {

constexpr int zygote_socket = 3;                    // its number in the zygote
static_assert(zygote_socket == STDERR_FILENO + 1);  // all files after it are closed
constexpr const char* no_zygote = "the zygote process did not answer; does the program start?";
constexpr const char* no_keeper = "the pool's keeper process did not answer; is it stopped?";

// Whether /proc/self/exe is the loader, with the program as its argument: the program names a
// loader, but the kernel loaded none.
bool was_loaded_by_hand() noexcept {
  if (getauxval(AT_BASE) != 0) return false;
  for (const auto& segment : segments_of_program()) {
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

// A host that has closed its output may have another file there, which others must not get.
bool is_to_be_hidden(int output) noexcept {
  const int flags = fcntl(output, F_GETFD);
  return flags < 0 || (flags & FD_CLOEXEC) != 0;
}

// posix_spawn() does not say which file its error is about: whether it is the one that a new
// process reads, as it is in a chroot() without devices.
bool is_about_null(int error) noexcept {
  const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nowhere < 0) return errno == error;
  ::close(nowhere);
  return false;
}

// A host that adopts orphans is now the parent of a dead worker whose zygote has ended.
void reap_orphan(int file) noexcept {
  siginfo_t about{};
  waitid(static_cast<idtype_t>(kernel::wait_for_pidfd), static_cast<id_t>(file), &about,
         WEXITED | WNOHANG);
}

}  // namespace

// Why the program cannot be started again to be its own zygote; null: it can. Asks the loader: it
// is called while the pool opens, as later a thread in a dlopen() may wait for this pool.
const char* pool::why_not_itself() const {
  if (settings_.processes.worker_command != nullptr) return nullptr;
  if (was_loaded_by_hand())
    return "the program is an argument of its loader (ld.so PROGRAM); start it by its own path";
  if (is_loaded_late())
    return "Leveret came with a library that the program has opened (dlopen): started again, it "
           "would run its main(); link it with the library, or set "
           "config.processes.worker_command";
  return nullptr;
}

bool pool::spawn_zygote(int socket) {
  if (acts_for_another()) {  // since the runtime was opened
    errno = 0;
    return fail(two_users);
  }
  if (why_not_itself_ != nullptr) {
    errno = 0;
    return fail(why_not_itself_);
  }
  LEV_ASSERT(zygote_ == 0 && socket > STDERR_FILENO);  // or a zygote would never be waited for
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, socket, zygote_socket);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    if (is_to_be_hidden(output))
      posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  }
  close_from(actions, zygote_socket + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A group of its own: only the host handles a terminal's signals (Ctrl-C).
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const char* const* command = settings_.processes.worker_command;
  const bool is_own = command == nullptr;
  char variable[64];
  std::snprintf(variable, sizeof variable, "%s=%d",
                is_own ? zygote_variable : worker_program_variable, zygote_socket);
  const std::vector<char*> environment = environment_for(settings_.processes.isolation, variable);
  char* own[] = {const_cast<char*>(zygote_name), nullptr};
  const int code =
      fault_at("host.spawn")
          ? errno
          : posix_spawnp(&zygote_, is_own ? "/proc/self/exe" : command[0], &actions, &attributes,
                         is_own ? own : const_cast<char* const*>(command), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code == 0) {
    zygote_file_ = fault_at("host.pidfd_open")
                       ? -1
                       : out_of_the_way(static_cast<int>(syscall(kernel::pidfd_open, zygote_, 0)));
    return true;
  }
  zygote_ = 0;
  const bool lacks_null = is_about_null(code);
  errno = code;
  if (lacks_null) return fail("opening /dev/null, which a process needs to start");
  if (!is_own) return fail("starting the program that config.processes.worker_command names");
  return fail(code == ENOENT ? "starting the zygote process (is /proc there?)"
                             : "starting the zygote process");
}

bool pool::start_zygote() try {
  if (is_shared()) return join_keeper();
  LEV_ASSERT(socket_ < 0);
  int ends[2];
  if (fault_at("host.socketpair") ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail("socketpair");
  socket_ = out_of_the_way(ends[0]);
  const int its_end = out_of_the_way(ends[1]);
  if (its_end < 0) return fail("socketpair");
  const bool spawned = spawn_zygote(its_end);
  ::close(its_end);
  return spawned && introduce() && await_ready();
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return fail("starting the zygote process");
}

bool pool::introduce() noexcept {
  const int nowhere = is_shared() ? ::open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
  const auto output_or_nowhere = [&](int file) { return is_to_be_hidden(file) ? nowhere : file; };
  LEV_ASSERT(heap_file_ >= 0 && board_file_ >= 0 && bell_ >= 0);
  const int files[] = {heap_file_, board_file_, bell_, output_or_nowhere(STDOUT_FILENO),
                       output_or_nowhere(STDERR_FILENO)};
  const bool is_sent =
      !fault_at("host.introduce") &&
      send_message(socket_, about_,
                   std::span(files).first(is_shared() ? file_of::member_count : file_of::own_count),
                   0);
  if (nowhere >= 0) ::close(nowhere);
  if (is_sent) return true;
  // A zygote that has closed the socket may have said why: await_ready() reads it.
  const bool is_closed = errno == EPIPE || errno == ECONNRESET;
  return is_closed || fail(is_shared() ? no_keeper : no_zygote);
}

bool pool::await_ready() noexcept {
  pollfd watched[2] = {{socket_, POLLIN, 0}, {zygote_file_, POLLIN, 0}};
  const int ready = poll_until(watched, in_ms(start_ms_max));
  report r;
  r.what = report::refused;
  int files[2] = {-1, -1};
  bool is_gone = false;
  errno = ETIMEDOUT;
  if (ready > 0 && !fault_at("host.receive_ready")) {
    const ssize_t got = receive_message(socket_, r, files);
    is_gone = got == 0 || (got < 0 && errno == EAGAIN);
    if (is_gone) errno = EPIPE;
  }
  if (r.what == report::ready) {
    member_.store(r.member, memory_order_relaxed);
    return !is_shared() || map_pages(files);
  }
  for (int& f : files) close_file(&f);
  if (is_shared() && is_gone) return false;  // it was about to end
  if (r.text[0] == 0) return fail(is_shared() ? no_keeper : no_zygote);
  r.text[sizeof r.text - 1] = 0;
  errno = r.number;
  fail(r.text);
  if (r.what == report::unavailable) why_status_ = status::unavailable;
  // No system call failed: the pool does not accept the configuration.
  if (is_shared() && r.what == report::refused && r.number == 0) why_status_ = status::bad_config;
  return false;
}

// Waits for the end of a worker whose zygote has ended. False: it lives on, because a body has
// given it another user. Such a worker does not die with its parent, and this host may not kill it.
bool pool::await_death(std::uint32_t worker) noexcept {
  constexpr int refused_ms_max = 5'000;
  const int file = at(worker).pidfd;
  if (file < 0) return true;
  const bool may_end = syscall(kernel::pidfd_send_signal, file, SIGKILL, nullptr, 0) == 0;
  pollfd over{file, POLLIN, 0};
  if (poll_until({&over, 1}, may_end ? no_deadline : in_ms(refused_ms_max)) == 0) return false;
  reap_orphan(file);
  return true;
}

// The workers die with their zygote (PR_SET_PDEATHSIG); the host waits for the kernel's word for it
// before their tasks are run again. A worker that lives on gets no successor.
void pool::zygote_is_gone() {
  fault_at("host.zygote_gone");
  drop_zygote();
  const std::size_t before = deaths_.size();
  bool are_dead = true;
  for (std::uint32_t i = 0; i < workers_; ++i) {
    are_dead = await_death(i) && are_dead;
    note_death(i, -1);
  }
  for (std::size_t i = before + 1; i < deaths_.size(); ++i) deaths_[i].is_further = true;
  is_zygote_lost_ = !are_dead || !restart_zygote();
}

// The cause of its end may end the next one, too.
bool pool::restart_zygote() {
  constexpr int tries_max = 3;
  int lacked_ms = 0;
  for (int i = 0; i < tries_max;) {
    drop_zygote();
    why_[0] = 0;
    if (start_zygote()) return true;
    if (why_status_ == status::out_of_memory && lacked_ms < shortage_ms_max) {
      pause_for_ms(shortage_pause_ms);
      lacked_ms += shortage_pause_ms;
    } else {
      ++i;
    }
  }
  return false;
}

// Ends the connection, not only this end of it: a child of this process may hold it, too.
void pool::hang_up() noexcept {
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
  close_file(&socket_);
}

// A host that reaps all its children may have freed the zygote's number for another process: if
// there is a pidfd, the signal goes by that.
bool pool::signal_zygote(int number) noexcept {
  if (zygote_file_ < 0) return ::kill(zygote_, number) == 0;
  return syscall(kernel::pidfd_send_signal, zygote_file_, number, nullptr, 0) == 0;
}

// The kernel tells the host of a death, too, but only the zygote's report counts, and the zygote
// starts the next worker. (Only a private zygote is continued: a keeper serves other hosts, too.)
void pool::rouse_zygote() noexcept {
  bool is_late = false;
  for (std::uint32_t i = 0; i < workers_; ++i) {
    worker_state& s = at(i);
    pollfd over{s.pidfd, POLLIN, 0};
    const bool is_owed = s.is_awaited || (s.pidfd >= 0 && poll(&over, 1, 0) == 1);
    is_late |= is_owed && s.is_owed;
    s.is_owed = is_owed;
  }
  if (is_late && zygote_ > 0) signal_zygote(SIGCONT);
}

// The zygote's stop is left to be seen by a program that waits for all its children.
void pool::rouse_tracer() noexcept {
  if (zygote_file_ < 0) return;
  siginfo_t about{};
  if (waitid(static_cast<idtype_t>(kernel::wait_for_pidfd), static_cast<id_t>(zygote_file_), &about,
             WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
      about.si_pid != 0)
    signal_zygote(SIGCONT);
}

// A host that has given up rights may be refused the kill, but may still continue a stopped
// one, which then finds its socket closed.
void pool::kill_zygote() noexcept {
  if (!signal_zygote(SIGKILL)) signal_zygote(SIGCONT);
}

void pool::reap_zygote() noexcept {
  if (zygote_ > 0) wait_for_end(zygote_);
  zygote_ = 0;
  close_file(&zygote_file_);
  is_zygote_over_ = false;
}

// A host that adopts orphans, as the first process of a container does, is now the parent of
// workers of which the zygote had not told it. They die, and are in the zygote's group; what a
// program of worker_command has started itself may live on there.
void pool::reap_untold(pid_t group) noexcept {
  constexpr int die_ms_max = 1'000;
  siginfo_t about{};
  for (int ms = 0; waitid(P_PGID, static_cast<id_t>(group), &about, WEXITED | WNOHANG) == 0;) {
    if (std::exchange(about.si_pid, 0) != 0) continue;
    if (ms++ == die_ms_max) return;
    pause_for_ms(1);
  }
}

void pool::drop_zygote() noexcept {
  hang_up();
  const pid_t group = zygote_;
  if (zygote_ > 0) kill_zygote();
  reap_zygote();
  if (group > 0 && !is_shared()) reap_untold(group);
}

// The zygote ends when its socket is closed; a worker_command program that does not is killed.
void pool::end_zygote() noexcept {
  hang_up();
  if (zygote_ <= 0) return;
  constexpr int leave_ms_max = 2'000;
  pollfd over{zygote_file_, POLLIN, 0};
  if (zygote_file_ < 0 || poll_until({&over, 1}, in_ms(leave_ms_max)) != 1) kill_zygote();
  fault_at("host.wait_zygote");
  const pid_t group = zygote_;
  reap_zygote();
  reap_untold(group);
}

// A zygote that was killed as the runtime was closed has left its workers, which are killed by now.
void pool::reap_workers() noexcept {
  constexpr int die_ms_max = 1'000;
  const std::uint64_t deadline_ns = in_ms(die_ms_max);
  for (std::uint32_t i = 0; i < workers_; ++i) {
    pollfd over{states_[i].pidfd, POLLIN, 0};
    if (over.fd >= 0 && poll_until({&over, 1}, deadline_ns) == 1) reap_orphan(over.fd);
    close_file(&states_[i].pidfd);
  }
}

// In a forked process the pool is its parent's. Its copies of files are closed, so that it keeps
// nothing alive; the lanes stay mapped, but are not used.
void pool::abandon() noexcept {
  close_file(&socket_);
  close_file(&bell_);
  close_file(&zygote_file_);
  close_file(&board_file_);
  if (owns_heap_file_) close_file(&heap_file_);
  for (std::uint32_t i = 0; i < workers_; ++i) {
    close_file(&states_[i].file);
    close_file(&states_[i].pidfd);
  }
}

}  // namespace lev::processes
