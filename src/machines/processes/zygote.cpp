// The zygote process, and how the host program becomes one.
#include "machines/processes/zygote.hpp"

#include "machines/processes/confine.hpp"
#include "machines/processes/keeper.hpp"
#include "machines/processes/start_strings.hpp"
#include "machines/processes/trial.hpp"
#include "share/faults.hpp"
#include "share/role.hpp"
#include "share/zone.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lev::processes {

namespace {

struct zygote {
  int socket = -1;
  int host = -1;  // its pidfd; -1 where it cannot be watched
  int bell = -1;
  int signals = -1;
  introduction about;
  fork_hooks hooks;
  const common* shared = nullptr;
  verdicts known;  // of the book's libraries
  pid_t pids[workers_max] = {};
};

// Waits until the host has sent something, or takes something. False: it has ended. Its end of the
// socket does not tell, as a process that it forked may hold that, too.
bool await_host(const zygote& z, short what) noexcept {
  pollfd watched[2] = {{z.socket, what, 0}, {z.host, POLLIN, 0}};
  while (poll(watched, 2, -1) < 0 && errno == EINTR) {
  }
  return watched[1].revents == 0;
}

[[nodiscard]] bool tell(const zygote& z, const report& r, int file = -1) noexcept {
  while (!send_message(z.socket, &r, sizeof r, &file, file < 0 ? 0 : 1, MSG_DONTWAIT)) {
    if (errno != EAGAIN || !await_host(z, POLLOUT)) return false;
  }
  return true;
}

// When the host is gone, and when it could not be told something: it would wait for ever for a
// report that is lost, and sees the end of the zygote instead.
[[noreturn]] void end_all(const zygote& z) noexcept {
  fault_at("zygote.end");
  for (const pid_t pid : z.pids) {
    if (pid > 0) kill(pid, SIGKILL);
  }
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  _exit(0);
}

[[noreturn]] void refuse(const zygote& z, const char* what,
                         std::uint32_t what_kind = report::refused) noexcept {
  report r;
  r.what = what_kind;
  r.number = errno;
  std::snprintf(r.text, sizeof r.text, "%s", what);
  _exit(tell(z, r) ? 1 : 2);
}

// Confines a process that does nothing else: workers that get less than was promised are not
// started.
void try_confining(const zygote& z) noexcept {
  struct answer {
    const char* why = nullptr;  // the same address in parent and child
    int number = 0;
  };
  void* page =
      mmap(nullptr, sizeof(answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) refuse(z, "mapping a page");
  const auto* got = new (page) answer;
  const pid_t pid = fork();
  if (pid < 0) refuse(z, "starting a process");
  if (pid == 0) {
    become_worker(z.about, getppid());
    const char* why =
        confine({z.bell, z.about.heap_begin, z.about.heap_bytes, z.about.data_bytes_max});
    if (why != nullptr) *static_cast<answer*>(page) = {why, errno};
    _exit(0);
  }
  int how = 0;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
  errno = got->number;
  if (got->why != nullptr) refuse(z, got->why, report::unavailable);
  errno = ENOSYS;
  if (how != 0) refuse(z, "confined workers: the process that tried it died", report::unavailable);
  munmap(page, sizeof(answer));
}

void meet_host(zygote& z) noexcept {
  z.host = open_host(z.socket);
  if ((z.host < 0 && errno == ESRCH) || !await_host(z, POLLIN)) _exit(0);
  int files[3];
  const ssize_t got = receive_message(z.socket, &z.about, sizeof z.about, files, 3, 0);
  if (got != sizeof z.about || z.about.tag != introduction::magic || files[2] < 0)
    refuse(z, "the first message is not one of this version of Leveret");
  const bool is_confined = z.about.level == lev::isolation::confined;
  if (!map_at(z.about.heap_begin, files[0], z.about.heap_bytes, !is_confined))
    refuse(z, "the shared memory's place is taken");
  adopt_zone(z.about.heap_begin, z.about.heap_begin + z.about.heap_bytes);
  auto* plan = reinterpret_cast<fault_plan*>(z.about.faults);
  arm_faults(plan, plan);
  fault_at("zygote.met");
  void* shared = fault_at("zygote.map_board")
                     ? MAP_FAILED
                     : mmap(nullptr, sizeof(common), PROT_READ, MAP_SHARED, files[1], 0);
  if (shared == MAP_FAILED) refuse(z, "mapping the book of procedures");
  z.shared = static_cast<const common*>(shared);
  close(files[0]);
  close(files[1]);
  z.bell = above_stdio(files[2]);
  if (is_confined && !forget_start()) refuse(z, "confined workers need /proc", report::unavailable);
  if (is_confined) try_confining(z);
  z.signals = listen_for_deaths();
  if (z.signals < 0) refuse(z, "signalfd");
  fault_at("zygote.ready");
  if (!tell(z, report{})) end_all(z);
}

struct lane_order {
  zygote& z;
  const order& what;
  int lane_file;
};

// The child's part of a start. It waits for the host's word before it takes a task: if the zygote
// dies before it has told the host of this process, nobody will wait for it, and it must not work.
void begin_worker(void* context, pid_t parent) {
  const auto& [z, o, lane_file] = *static_cast<const lane_order*>(context);
  become_worker(z.about, parent);
  take_worker_number(static_cast<int>(o.worker));
  close(z.socket);
  close(z.signals);
  if (z.host >= 0) close(z.host);
  fault_at("worker.begin");
  if (fault_at("worker.map_lane") || !map_at(o.lane_begin, lane_file, z.about.lane_bytes, true))
    _exit(1);
  close(lane_file);
  keep_from_forks(o.lane_begin, z.about.lane_bytes);
  keep_from_forks(z.about.heap_begin, z.about.heap_bytes);
  serve({&z.about, z.shared, reinterpret_cast<lane<>*>(o.lane_begin), z.bell, &z.known});
}

void start_worker(zygote& z, const order& o, int lane_file) {
  report r;
  r.worker = o.worker;
  errno = EMFILE;  // if no number was free for the lane's file
  const bool has_lane = !fault_at("zygote.receive_lane") && lane_file >= 0;
  lane_order child{z, o, lane_file};
  int pidfd = -1;
  if (z.about.level == lev::isolation::confined)
    try_libraries(z.shared->procedures, z.about, z.hooks, z.socket, z.known);
  if (has_lane && o.worker < workers_max)
    pidfd = fork_worker(z.hooks, &r.pid, &begin_worker, &child);
  r.number = errno;
  r.what = pidfd < 0 ? report::not_started : report::started;
  // A start on a seat follows the report of the death there.
  LEV_ASSERT(pidfd < 0 || (r.pid > 0 && z.pids[o.worker] == 0));
  if (pidfd >= 0) z.pids[o.worker] = r.pid;
  if (fault_at("zygote.tell_started") || !tell(z, r, pidfd)) end_all(z);
  fault_at("zygote.told_started");
  if (pidfd >= 0) close(pidfd);
}

void reap(zygote& z) noexcept {
  fault_at("zygote.reap");
  signalfd_siginfo told[8];
  while (read(z.signals, told, sizeof told) > 0) {
  }
  int how = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
    for (std::uint32_t i = 0; i < workers_max; ++i) {
      if (z.pids[i] != pid) continue;
      z.pids[i] = 0;
      report r;
      r.what = report::died;
      r.worker = i;
      r.pid = pid;
      r.number = how;
      if (fault_at("zygote.tell_died") || !tell(z, r)) end_all(z);
      fault_at("zygote.told_died");
    }
  }
}

}  // namespace

[[noreturn]] void run_zygote(int socket, const fork_hooks& hooks) noexcept {
  take_role(process_role::worker);
  int listens = 0;
  socklen_t bytes = sizeof listens;
  if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0)
    run_keeper(socket, hooks);
  static zygote z;
  z.hooks = hooks;
  z.socket = socket;
  prctl(PR_SET_NAME, "leveret-zygote");
  meet_host(z);
  for (;;) {
    pollfd watched[3] = {{z.socket, POLLIN, 0}, {z.signals, POLLIN, 0}, {z.host, POLLIN, 0}};
    if (poll(watched, 3, -1) < 0) continue;
    if (watched[2].revents != 0) end_all(z);
    // Deaths first: a start on the same lane follows the report of the death.
    if (watched[1].revents != 0) reap(z);
    if (watched[0].revents == 0) continue;
    order o;
    int lane_file = -1;
    if (fault_at("zygote.receive_order")) continue;
    const ssize_t got = receive_message(z.socket, &o, sizeof o, &lane_file, 1, MSG_DONTWAIT);
    if (got == 0) end_all(z);
    if (got == sizeof o) start_worker(z, o, lane_file);
    if (lane_file >= 0) close(lane_file);
  }
}

const char* const zygote_variable = started_again_variable;
const char* const zygote_name = "leveret-zygote";

namespace {

using initialiser = void (*)(int, char**, char**);

void become_zygote(int argc, char** argv, char** environment);

struct initialisers {
  initialiser* begin = nullptr;
  initialiser* end = nullptr;
};

// The constructors of a loaded module, as its dynamic section lists them.
initialisers constructors_of(const link_map& module) noexcept {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  for (const ElfW(Dyn)* d = module.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_INIT_ARRAY) begin = module.l_addr + d->d_un.d_ptr;
    if (d->d_tag == DT_INIT_ARRAYSZ) bytes = d->d_un.d_val;
  }
  if (begin == 0) return {};
  auto* first = reinterpret_cast<initialiser*>(begin);
  return {first, first + bytes / sizeof(initialiser)};
}

// The constructors that would have followed: those of this file's module, and, if that is a shared
// library, the program's. A task's body finds its static objects made, as in the host.
void run_other_constructors(int argc, char** argv, char** environment) {
  Dl_info info;
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&become_zygote), &info, &extra, RTLD_DL_LINKMAP) == 0 ||
      extra == nullptr)
    return;  // a program without a dynamic section
  const auto* own = static_cast<const link_map*>(extra);
  const initialisers ours = constructors_of(*own);
  initialiser* next = ours.begin;
  while (next != ours.end && *next != &become_zygote) ++next;
  if (next != ours.end) ++next;
  for (; next != ours.end; ++next) (*next)(argc, argv, environment);
  const link_map* program = own;
  while (program->l_prev != nullptr) program = program->l_prev;
  if (program == own) return;
  const initialisers theirs = constructors_of(*program);
  for (next = theirs.begin; next != theirs.end; ++next) (*next)(argc, argv, environment);
}

// Runs while the program loads. In every program but a zygote it looks for one variable and
// returns. A program that a host has started, and whose socket cannot be believed, must not come to
// its main(), which would do everything once more.
[[gnu::constructor]] void become_zygote(int argc, char** argv, char** environment) {
  const int socket = role() == process_role::starting ? host_socket(zygote_variable) : -1;
  if (socket < 0) {
    const bool is_meant = argc > 0 && std::strcmp(argv[0], zygote_name) == 0;
    if (is_meant && secure_getenv(zygote_variable) != nullptr) _exit(1);
    return;
  }
  take_role(process_role::starting);
  unsetenv(zygote_variable);
  run_other_constructors(argc, argv, environment);
  run_zygote(socket, {});
}

}  // namespace

}  // namespace lev::processes

namespace lev {

void run_worker_program(const fork_hooks& hooks) noexcept {
  const int socket = role() == process_role::starting ? host_socket(worker_program_variable) : -1;
  if (socket < 0) return;
  unsetenv(worker_program_variable);
  processes::run_zygote(socket, hooks);
}

}  // namespace lev
