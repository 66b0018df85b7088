// The zygote's main loop: its members, who come, ask for workers, and leave.
#include "base/kernel_numbers.hpp"
#include "machines/processes/output.hpp"
#include "machines/processes/zygote_process.hpp"
#include "share/faults.hpp"
#include "share/own_files.hpp"
#include "share/role.hpp"
#include "share/shortage.hpp"
#include "share/zone.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace lev::processes {

namespace {

// How long the keeper waits for its first connection.
constexpr int first_visitor_ms_max = 20'000;

// How often the keeper looks whether a worker that has too many notes has read them. (The worker
// reads one in a tenth of a millisecond if it has nothing else to do.)
constexpr int late_ms = 5;

// How often the keeper tries to admit a host for which it has lacked something.
constexpr int shortage_ms = 10;

// What a host is told that the pool does not take, or can serve no longer; `code` is errno or 0.
report report_why(std::uint32_t what, const char* why, int code) noexcept {
  report r;
  r.what = what;
  r.number = code;
  std::snprintf(r.text, sizeof r.text, "%s", why);
  return r;
}

// Whether the system lets this process hear of its children's ends: it is not its own child.
bool can_wait() noexcept {
  return waitpid(getpid(), nullptr, WNOHANG) >= 0 || errno == ECHILD;
}

}  // namespace

bool zygote_process::open() noexcept {
  if (listener_ >= 0) return open_door();
  const int host = open_host(only_);  // -1: it cannot be watched
  if (host < 0 && errno == ESRCH) return false;
  take_in(0, std::exchange(only_, -1), 0, host);
  return true;
}

// Makes the memory that sharing hosts have in common. The files are not written to: fresh memory is
// zero, the initial value of all words, and a page fault takes longer than the start of a worker.
bool zygote_process::open_door() noexcept {
  if (fcntl(listener_, F_SETFL, O_NONBLOCK) != 0) return false;
  LEV_ASSERT(page_ == nullptr && alarms_ == nullptr);
  page_file_ = make_memory_file("leveret-pool", sizeof(pool_page));
  alarms_file_ = make_memory_file("leveret-alarms", sizeof(pool_alarms));
  if (page_file_ < 0 || alarms_file_ < 0) return false;
  void* page = mmap(nullptr, sizeof(pool_page), PROT_READ | PROT_WRITE, MAP_SHARED, page_file_, 0);
  void* alarms =
      mmap(nullptr, sizeof(pool_alarms), PROT_READ | PROT_WRITE, MAP_SHARED, alarms_file_, 0);
  if (page == MAP_FAILED || alarms == MAP_FAILED) return false;
  page_ = static_cast<pool_page*>(page);
  alarms_ = static_cast<pool_alarms*>(alarms);
  return seal_memory_file(page_file_, true) && seal_memory_file(alarms_file_, false);
}

void zygote_process::take_in(std::uint32_t m, int socket, pid_t pid, int pidfd) noexcept {
  members_[m].socket = socket;
  members_[m].pid = pid;
  members_[m].pidfd = pidfd;
  had_visitors_ = true;
  ++present_;
  if (page_ != nullptr) page_->members.store(present_, memory_order_relaxed);
  LEV_ASSERT(present_ <= members_max && !members_[m].is_met && members_[m].lanes.empty());
}

// Takes in the hosts that wait at the listening socket. A program of another user is refused. A
// keeper that may not accept (a filter of system calls) can only serve the hosts that it has.
void zygote_process::admit() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) break;
    answer_visitor(socket);
  }
  const int code = errno;
  if (code == EAGAIN || code == EINTR || code == ECONNABORTED) return;
  (is_shortage(code) ? lacks_for_visitor_ : is_door_shut_) = true;
  if (is_door_shut_ && present_ == 0) had_visitors_ = true;  // there will be no other
}

void zygote_process::answer_visitor(int socket) noexcept {
  ucred who{};
  std::uint32_t m = 0;
  while (m < members_max && members_[m].socket >= 0) ++m;
  report r;  // which a host reads also if it finds the socket closed when it introduces itself
  if (!made_by(socket, &who) || who.uid != geteuid()) {
    r = report_why(report::refused, "the pool belongs to another user", 0);
  } else if (m == members_max) {
    static_assert(members_max == 64);
    r = report_why(report::unavailable, "the pool has its 64 hosts", 0);
  } else {
    had_visitors_ = true;
    const int pidfd = static_cast<int>(syscall(kernel::pidfd_open, who.pid, 0));
    if (pidfd >= 0) return take_in(m, socket, who.pid, pidfd);
    r = report_why(report::refused, "watching the host process", errno);
  }
  send_message(socket, r);
  close(socket);
}

// Whether an address range is used by another member. Runtimes of one process have one heap.
bool zygote_process::is_taken(std::uint32_t m, std::uint64_t begin,
                              std::uint64_t bytes) const noexcept {
  const auto meets = [&](std::uint64_t other, std::uint64_t other_bytes) {
    return begin < other + other_bytes && other < begin + bytes;
  };
  for (std::uint32_t i = 0; i < members_max; ++i) {
    const member& other = members_[i];
    if (i == m || other.socket < 0 || !other.is_met) continue;
    const bool is_same = other.pid == members_[m].pid && begin == other.about.heap_begin;
    if (!is_same && meets(other.about.heap_begin, other.about.heap_bytes)) return true;
    for (const lane_place& l : other.lanes) {
      if (l.begin != 0 && meets(l.begin, other.about.lane_bytes)) return true;
    }
  }
  return false;
}

// The reason that keeps a host from becoming a member; null: none.
const char* zygote_process::objection(const introduction& about) const noexcept {
  if (about.program != rule_.program)
    return "the pool runs the workers of another program (by its file, or "
           "config.processes.worker_command); use another pool";
  if (about.level != rule_.level)
    return "config.processes.isolation is not that of the pool's first host; use another "
           "config.processes.pool";
  if (about.data_bytes_max != rule_.data_bytes_max)
    return "config.processes.worker_bytes_max is not that of the pool's first host";
  if (about.cpu_seconds_max != rule_.cpu_seconds_max)
    return "config.processes.worker_cpu_seconds_max is not that of the pool's first host";
  return nullptr;
}

void zygote_process::refuse(std::uint32_t m, const char* why, int code,
                            std::uint32_t how) noexcept {
  send_message(members_[m].socket, report_why(how, why, code));
  drop_member(m);
}

// Null, or the step that the system refused, with the reason in errno. A member's heap is mapped
// only to check that it can be, and if it has a test's plan.
const char* zygote_process::map_memory(member& it) noexcept {
  const introduction& a = it.about;
  auto* plan = reinterpret_cast<fault_plan*>(a.faults);
  bool is_there = plan_of_.heap_begin == a.heap_begin;
  if (!is_there && (has_own_workers() || plan != nullptr)) {
    const bool is_writable = a.level != lev::isolation::confined;
    is_there = map_at(a.heap_begin, it.files[file_of::heap], a.heap_bytes, is_writable);
    if (!is_there && has_own_workers()) return "the shared memory's place is taken";
  }
  if (plan != nullptr && is_there) {
    plan_of_ = a;
    arm_faults(plan, plan);
  }
  fault_at("zygote.met");
  void* mapped = fault_at("zygote.map_board") ? MAP_FAILED
                                              : mmap(nullptr, sizeof(board), PROT_READ, MAP_SHARED,
                                                     it.files[file_of::board], 0);
  if (mapped == MAP_FAILED) return "mapping the book of procedures";
  it.board = static_cast<const board*>(mapped);
  return nullptr;
}

void zygote_process::read_introduction(std::uint32_t m) noexcept {
  member& it = members_[m];
  const ssize_t got = receive_message(it.socket, it.about, it.files);
  if (got < 0 && errno == EAGAIN) return;
  if (got == 0) return drop_member(m);
  if (got != sizeof it.about || it.about.tag != introduction::magic ||
      it.about.version != introduction().version)
    return refuse(m, "the first message is not one of this version of Leveret", 0);
  if (it.files[(listener_ < 0 ? file_of::own_count : file_of::member_count) - 1] < 0)
    return refuse(m, "the keeper of the workers had no number free for the host's files", EMFILE);
  if (!had_members_) rule_ = it.about;
  if (const char* why = objection(it.about)) return refuse(m, why, 0);
  if (is_taken(m, it.about.heap_begin, it.about.heap_bytes))
    return refuse(m, "another host of the pool has its shared memory at the same place", 0);
  if (const char* why = map_memory(it)) return refuse(m, why, errno);
  if (signals_ < 0) signals_ = listen_for_deaths();
  if (signals_ < 0) return refuse(m, "signalfd", errno);
  if (!can_wait()) return refuse(m, "waiting for processes", errno, report::unavailable);
  if (const char* why = try_out(it)) return refuse(m, why, errno, report::unavailable);
  LEV_ASSERT(!it.is_met && it.untold.empty());
  had_members_ = it.is_met = true;
  report r;
  r.member = m;
  fault_at("zygote.ready");
  report_to(m, r, -1, fault_at("zygote.tell_ready"));
}

// Called when the member's socket has a message, or its other end is closed.
void zygote_process::read_message(std::uint32_t m) {
  member& it = members_[m];
  if (!it.is_met) return read_introduction(m);
  order o;
  int file = -1;
  if (fault_at("zygote.receive_order")) return;
  const ssize_t got = receive_message(it.socket, o, {&file, 1});
  if (got == 0) return drop_member(m);
  if (got == sizeof o && o.worker < workers_max) return take_order(m, o, file);
  close_file(&file);
}

// The member has left, or is dead: none of its tasks begins or goes on any more.
void zygote_process::drop_member(std::uint32_t m) noexcept {
  member& it = members_[m];
  LEV_ASSERT(it.socket >= 0 && present_ != 0);
  for (std::uint32_t w = 0; w < it.lanes.size(); ++w) {
    if (it.lanes[w].is_attached && workers_[w].pid != 0) {
      detach(m, w);
      if (!it.is_leaving) kill_if_serving(m, w);
    }
  }
  for (kept_worker& w : workers_) w.is_for_gone |= w.killed_for == m + 1;
  end_own(m);
  if (it.board != nullptr) munmap(const_cast<board*>(it.board), sizeof(board));
  it.board = nullptr;
  close_file(&it.socket);
  close_file(&it.pidfd);
  for (int& f : it.files) close_file(&f);
  it.known.clear();
  it.lanes.clear();
  it.untold.clear();
  it.is_met = it.is_leaving = false;
  --present_;
  if (page_ != nullptr) page_->members.store(present_, memory_order_relaxed);
}

// A member that is stopped, or busy, must not keep the others waiting.
bool zygote_process::send(std::uint32_t m, const report& r, int pidfd) noexcept {
  const int files[] = {r.what == report::ready ? page_file_ : pidfd, alarms_file_};
  const bool brings_page = r.what == report::ready && listener_ >= 0;
  const unsigned count = brings_page ? 2 : pidfd < 0 ? 0 : 1;
  return send_message(members_[m].socket, r, std::span(files).first(count));
}

void zygote_process::report_to(std::uint32_t m, const report& r, int pidfd, bool is_full) {
  member& it = members_[m];
  LEV_ASSERT(it.socket >= 0 && it.is_met);  // or the report would go to the next one
  if (is_full || !it.untold.empty() || !send(m, r, pidfd)) it.untold.push_back(r);
}

void zygote_process::report_untold(std::uint32_t m) {
  member& it = members_[m];
  while (!it.untold.empty()) {
    const report& r = it.untold.front();
    int pidfd = -1;
    bool is_old = false;
    if (r.what == report::started) {
      LEV_ASSERT(r.worker < it.lanes.size());
      // A worker that died since then is reported below.
      const pid_t now = has_own_workers() ? it.lanes[r.worker].own : workers_[r.worker].pid;
      is_old = now != r.pid;
      if (!is_old) pidfd = static_cast<int>(syscall(kernel::pidfd_open, r.pid, 0));
    }
    const bool is_told = is_old || send(m, r, pidfd);
    close_file(&pidfd);
    if (!is_told) return;
    it.untold.pop_front();
  }
}

// A host that closes its runtime before it ends has sent order::leave.
void zygote_process::drop_dead_member(std::uint32_t m) {
  const member& it = members_[m];
  order o;
  int file = -1;
  while (it.is_met && receive_message(it.socket, o, {&file, 1}) == sizeof o) {
    members_[m].is_leaving |= o.what == order::leave;
    close_file(&file);
  }
  drop_member(m);
}

// A host that connects at this moment finds the socket gone, and starts another keeper. Only
// workers are waited for: a body may have made this process the parent of others (CLONE_PARENT).
// One that has become another user's cannot be killed, and is not waited for.
void zygote_process::end_if_alone() noexcept {
  if (present_ != 0) return;
  fault_at("zygote.end");
  close_file(&listener_);
  for (const kept_worker& w : workers_) {
    if (w.pid > 0) kill(w.pid, SIGKILL);
  }
  for (const kept_worker& w : workers_) {
    if (w.pid > 0 && kill(w.pid, SIGKILL) == 0) wait_for_end(w.pid);
  }
  _exit(0);
}

// Without it the zygote would never hear of anything, and use up a core for it.
[[noreturn]] void zygote_process::end_as_deaf(int code) noexcept {
  const report r = report_why(report::unavailable, "waiting for messages of hosts", code);
  for (const member& it : members_) {
    if (it.socket >= 0) send_message(it.socket, r);
  }
  _exit(1);
}

// Deaths, the door of a shared pool, and then each member: its messages, if need be room for
// reports to it, and its end.
void zygote_process::list_watched(std::vector<pollfd>& watched,
                                  std::vector<std::uint32_t>& whose) const {
  const bool is_door_watched = !is_door_shut_ && !lacks_for_visitor_;
  watched.assign({{signals_, POLLIN, 0}, {is_door_watched ? listener_ : -1, POLLIN, 0}});
  whose.clear();
  for (std::uint32_t m = 0; m < members_max; ++m) {
    const member& it = members_[m];
    if (it.socket < 0) continue;
    const auto wanted = static_cast<short>(it.untold.empty() ? POLLIN : POLLIN | POLLOUT);
    watched.push_back({it.socket, wanted, 0});
    watched.push_back({it.pidfd, POLLIN, 0});
    whose.push_back(m);
  }
}

int zygote_process::longest_wait_ms(bool is_one_late) const noexcept {
  if (is_one_late) return late_ms;
  if (lacks_for_visitor_) return shortage_ms;
  return had_visitors_ ? -1 : first_visitor_ms_max;
}

// What poll() has said of a member.
void zygote_process::hear_member(std::uint32_t m, const pollfd& socket, const pollfd& process) {
  if ((socket.revents & POLLOUT) != 0) report_untold(m);
  if (process.revents != 0) {
    drop_dead_member(m);
  } else if ((socket.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    read_message(m);
  }
}

[[noreturn]] void zygote_process::run() {
  if (!open()) _exit(1);
  std::vector<pollfd> watched;
  std::vector<std::uint32_t> whose;
  for (;;) {
    list_watched(watched, whose);
    const int wait_ms = longest_wait_ms(!tell_late());
    const int ready = poll(watched.data(), watched.size(), wait_ms);
    // EINVAL: more files than its limit, which somebody has lowered, and may raise.
    if (ready < 0 && errno != EINTR && errno != EINVAL && !is_shortage(errno)) end_as_deaf(errno);
    const bool was_short = std::exchange(lacks_for_visitor_, false);
    if (ready == 0 && !was_short) end_if_alone();
    if (ready <= 0) continue;
    // Deaths first: a start on the same lane follows the report of the death.
    if (watched[0].revents != 0) reap();
    for (std::size_t i = 0; i < whose.size(); ++i)
      hear_member(whose[i], watched[2 + 2 * i], watched[3 + 2 * i]);
    if (watched[1].revents != 0) admit();
    if (had_visitors_) end_if_alone();
  }
}

namespace {

// The keeper must not be its first member's child: it outlives that member, and no process would
// wait for its end. And it has a session of its own, so that it does not end with a terminal. To
// the program's fork hooks it is the parent that goes on, not a worker.
void become_orphan(const fork_hooks& hooks) noexcept {
  if (hooks.before_fork != nullptr) hooks.before_fork();
  const pid_t pid = fork();
  if (pid != 0) _exit(pid > 0 ? 0 : 1);
  if (hooks.after_fork != nullptr) hooks.after_fork();
  setsid();
  drop_output();
}

}  // namespace

[[noreturn]] void run_zygote(int socket, const fork_hooks& hooks) noexcept {
  take_role(process_role::worker);
  int listens = 0;
  socklen_t bytes = sizeof listens;
  const bool is_door =
      getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0;
  if (is_door) become_orphan(hooks);
  prctl(PR_SET_NAME, is_door ? "leveret-keeper" : "leveret-zygote");
  static zygote_process* self = new zygote_process(socket, is_door, hooks);
  self->run();
}

}  // namespace lev::processes
