// The keeper's side: who its members are, which lanes each worker serves, and who died.
#include "machines/processes/keeper.hpp"

#include "share/faults.hpp"
#include "share/zone.hpp"
#include "sync/futex.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace lev::processes {

namespace {

// How long a keeper waits for its first member.
constexpr int first_member_ms_max = 20'000;

void close_file(int* file) noexcept {
  if (*file >= 0) close(*file);
  *file = -1;
}

// Where one member's lane to one worker is.
struct lane_place {
  std::uint64_t begin = 0;
  int file = -1;
  bool is_attached = false;
};

struct member {
  int socket = -1;  // -1: there is none of this number
  pid_t pid = 0;
  int pidfd = -1;
  bool is_met = false;
  introduction about;
  int files[3] = {-1, -1, -1};
  std::vector<lane_place> lanes;  // by worker
  std::deque<report> untold;      // its socket was full
};

struct worker_seat {
  pid_t pid = 0;
  int notes = -1;
  std::uint32_t killed_for = 0;  // the member that wanted it, plus 1; 0: none
};

class keeper {
 public:
  keeper(int listener, const fork_hooks& hooks) noexcept : listener_(listener), hooks_(hooks) {}

  [[noreturn]] void run();

 private:
  bool open() noexcept;
  void admit();
  void welcome(int socket) noexcept;
  void hear(std::uint32_t m);
  void meet(std::uint32_t m) noexcept;
  const char* objection(const introduction& about) const noexcept;
  bool is_taken(std::uint32_t m, std::uint64_t begin, std::uint64_t bytes) const noexcept;
  void refuse(std::uint32_t m, const char* why, int code) noexcept;
  void take_order(std::uint32_t m, const order& o, int file);
  void start(std::uint32_t m, const order& o, int file);
  bool is_running(std::uint32_t worker);
  void attach(std::uint32_t m, std::uint32_t worker) noexcept;
  void send_note(std::uint32_t worker, const note& n, const int* files, unsigned count) noexcept;
  void kill_if_serving(std::uint32_t m, std::uint32_t worker) noexcept;
  void part(std::uint32_t m) noexcept;
  void reap();
  void report_death(std::uint32_t worker, int how);
  void tell(std::uint32_t m, const report& r, int file = -1);
  void tell_untold(std::uint32_t m);
  void end_if_alone() noexcept;
  [[noreturn]] void begin_worker(std::uint32_t worker, pid_t parent, int notes);

  int listener_;
  fork_hooks hooks_;
  int signals_ = -1;
  int berth_file_ = -1;
  berth<>* berths_ = nullptr;
  member members_[members_max];
  worker_seat workers_[workers_max];
  std::uint32_t present_ = 0;
  bool had_members_ = false;
  introduction rule_;  // the first member's: others must agree with it
};

constexpr std::size_t berth_bytes = sizeof(berth<>) * workers_max;

bool keeper::open() noexcept {
  if (fcntl(listener_, F_SETFL, O_NONBLOCK) != 0) return false;
  signals_ = listen_for_deaths();
  berth_file_ = make_memory_file("leveret-berths", berth_bytes);
  if (signals_ < 0 || berth_file_ < 0) return false;
  void* p = mmap(nullptr, berth_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, berth_file_, 0);
  if (p == MAP_FAILED) return false;
  berths_ = new (p) berth<>[workers_max];
  return seal_memory_file(berth_file_, true);
}

// Those who wait at the door. A program of another user does not get in.
void keeper::admit() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return;
    welcome(socket);
  }
}

void keeper::welcome(int socket) noexcept {
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool is_known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0;
  std::uint32_t m = 0;
  while (m < members_max && members_[m].socket >= 0) ++m;
  report r;
  r.what = report::refused;
  if (!is_known || who.uid != geteuid()) {
    std::snprintf(r.text, sizeof r.text, "the pool belongs to another user");
  } else if (m == members_max) {
    std::snprintf(r.text, sizeof r.text, "the pool has its %u hosts", members_max);
  } else {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0));
    r.number = errno;
    std::snprintf(r.text, sizeof r.text, "watching the host process");
    if (pidfd >= 0) {
      members_[m].socket = socket;
      members_[m].pid = who.pid;
      members_[m].pidfd = pidfd;
      ++present_;
      return;
    }
  }
  send_message(socket, &r, sizeof r, nullptr, 0, MSG_DONTWAIT);
  close(socket);
}

// Whether an address range is used by another member. Runtimes of one process have one heap.
bool keeper::is_taken(std::uint32_t m, std::uint64_t begin, std::uint64_t bytes) const noexcept {
  const auto meets = [&](std::uint64_t other, std::uint64_t other_bytes) {
    return begin < other + other_bytes && other < begin + bytes;
  };
  for (std::uint32_t i = 0; i < members_max; ++i) {
    const member& other = members_[i];
    if (i == m || other.socket < 0 || !other.is_met) continue;
    const bool is_same = other.pid == members_[m].pid && begin == other.about.heap_begin;
    if (!is_same && meets(other.about.heap_begin, other.about.heap_bytes)) return true;
    for (const lane_place& l : other.lanes) {
      if (l.file >= 0 && meets(l.begin, other.about.lane_bytes)) return true;
    }
  }
  return false;
}

// What keeps a host from becoming a member; null: nothing.
const char* keeper::objection(const introduction& about) const noexcept {
  if (about.program != rule_.program)
    return "the pool runs the workers of another program; use another config.pool";
  if (about.level != rule_.level)
    return "config.isolation is not that of the pool's first host; use another config.pool";
  if (about.data_bytes_max != rule_.data_bytes_max)
    return "config.worker_bytes_max is not that of the pool's first host";
  if (about.cpu_seconds_max != rule_.cpu_seconds_max)
    return "config.worker_cpu_seconds_max is not that of the pool's first host";
  return nullptr;
}

void keeper::refuse(std::uint32_t m, const char* why, int code) noexcept {
  report r;
  r.what = report::refused;
  r.number = code;
  std::snprintf(r.text, sizeof r.text, "%s", why);
  send_message(members_[m].socket, &r, sizeof r, nullptr, 0, MSG_DONTWAIT);
  part(m);
}

void keeper::meet(std::uint32_t m) noexcept {
  member& it = members_[m];
  const ssize_t got =
      receive_message(it.socket, &it.about, sizeof it.about, it.files, 3, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got == 0) return part(m);
  if (got != sizeof it.about || it.about.tag != introduction::magic ||
      it.about.version != introduction().version || it.files[2] < 0)
    return refuse(m, "the pool's first host uses another version of Leveret", 0);
  if (!had_members_) rule_ = it.about;
  if (const char* why = objection(it.about)) return refuse(m, why, 0);
  if (is_taken(m, it.about.heap_begin, it.about.heap_bytes))
    return refuse(m, "another host of the pool has its shared memory at the same place", 0);
  auto* plan = reinterpret_cast<fault_plan*>(it.about.faults);
  if (plan != nullptr && map_at(it.about.heap_begin, it.files[0], it.about.heap_bytes, true))
    arm_faults(plan, plan);
  fault_at("zygote.met");
  had_members_ = it.is_met = true;
  report r;
  r.member = m;
  fault_at("zygote.ready");
  tell(m, r, berth_file_);
}

// Its socket has something to say, or its end is gone.
void keeper::hear(std::uint32_t m) {
  member& it = members_[m];
  if (!it.is_met) return meet(m);
  order o;
  int file = -1;
  if (fault_at("zygote.receive_order")) return;
  const ssize_t got = receive_message(it.socket, &o, sizeof o, &file, 1, MSG_DONTWAIT);
  if (got == 0) return part(m);
  if (got == sizeof o && o.worker < workers_max) return take_order(m, o, file);
  close_file(&file);
}

void keeper::take_order(std::uint32_t m, const order& o, int file) {
  if (o.what == order::start) return start(m, o, file);
  close_file(&file);
  if (o.what == order::kill) kill_if_serving(m, o.worker);
}

void keeper::start(std::uint32_t m, const order& o, int file) {
  report r;
  r.worker = o.worker;
  r.what = report::not_started;
  r.number = file < 0 || fault_at("zygote.receive_lane") ? EMFILE : EADDRINUSE;
  const bool has_place =
      r.number != EMFILE && !is_taken(m, o.lane_begin, members_[m].about.lane_bytes);
  if (!has_place || !is_running(o.worker)) {
    if (has_place) r.number = errno;
    close_file(&file);
    return tell(m, r);
  }
  member& it = members_[m];
  if (it.lanes.size() <= o.worker) it.lanes.resize(o.worker + 1);
  lane_place& l = it.lanes[o.worker];
  close_file(&l.file);
  l = {o.lane_begin, file, true};
  r.what = report::started;
  r.pid = workers_[o.worker].pid;
  int pidfd = static_cast<int>(syscall(SYS_pidfd_open, r.pid, 0));
  fault_at("zygote.tell_started");
  tell(m, r, pidfd);
  close_file(&pidfd);
  fault_at("zygote.told_started");
  attach(m, o.worker);
}

// Sees to it that the worker is there. False, with errno set: the system refuses.
bool keeper::is_running(std::uint32_t worker) {
  worker_seat& w = workers_[worker];
  if (w.pid != 0) return true;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return false;
  berths_[worker].serving.store(0, memory_order_relaxed);
  berths_[worker].has_worked.store(0, memory_order_relaxed);
  struct child {
    keeper* self;
    std::uint32_t worker;
    int notes;
  } context{this, worker, ends[1]};
  int pidfd = fork_worker(
      hooks_, &w.pid,
      [](void* c, pid_t parent) {
        const auto& [self, number, notes] = *static_cast<child*>(c);
        self->begin_worker(number, parent, notes);
      },
      &context);
  const int code = errno;
  close(ends[1]);
  w.notes = ends[0];
  w.killed_for = 0;
  const bool is_there = pidfd >= 0;
  close_file(&pidfd);
  if (!is_there) {
    w.pid = 0;
    close_file(&w.notes);
  }
  errno = code;
  return is_there;
}

// What the worker must not hold: as long as it had one of them, its end would not be seen.
[[noreturn]] void keeper::begin_worker(std::uint32_t worker, pid_t parent, int notes) {
  become_worker(rule_, parent);
  close(listener_);
  close(signals_);
  close(berth_file_);
  for (worker_seat& w : workers_) close_file(&w.notes);
  for (member& m : members_) {
    close_file(&m.socket);
    close_file(&m.pidfd);
    for (int& f : m.files) close_file(&f);
    for (lane_place& l : m.lanes) close_file(&l.file);
  }
  fault_at("worker.begin");
  serve_members(berths_[worker], notes);
}

// A worker that does not read its notes any more is of no use: its death starts it anew.
void keeper::send_note(std::uint32_t worker, const note& n, const int* files,
                       unsigned count) noexcept {
  const worker_seat& w = workers_[worker];
  if (!send_message(w.notes, &n, sizeof n, files, count, MSG_DONTWAIT)) kill(w.pid, SIGKILL);
  berths_[worker].tell();
  wake_sleeper(berths_[worker].notes, sleepers::anywhere);
}

void keeper::attach(std::uint32_t m, std::uint32_t worker) noexcept {
  const member& it = members_[m];
  note n;
  n.member = m;
  n.lane_begin = it.lanes[worker].begin;
  n.about = it.about;
  const int files[] = {it.files[0], it.files[1], it.files[2], it.lanes[worker].file};
  send_note(worker, n, files, 4);
}

void keeper::kill_if_serving(std::uint32_t m, std::uint32_t worker) noexcept {
  worker_seat& w = workers_[worker];
  if (w.pid == 0 || !berths_[worker].doom(m)) return;
  w.killed_for = m + 1;
  kill(w.pid, SIGKILL);
}

// The member has left, or is dead: none of its tasks begins any more, and none goes on.
void keeper::part(std::uint32_t m) noexcept {
  member& it = members_[m];
  note n;
  n.what = note::detach;
  n.member = m;
  for (std::uint32_t w = 0; w < it.lanes.size(); ++w) {
    if (it.lanes[w].is_attached && workers_[w].pid != 0) {
      send_note(w, n, nullptr, 0);
      kill_if_serving(m, w);
    }
    close_file(&it.lanes[w].file);
  }
  close_file(&it.socket);
  close_file(&it.pidfd);
  for (int& f : it.files) close_file(&f);
  it.lanes.clear();
  it.untold.clear();
  it.is_met = false;
  --present_;
}

void keeper::reap() {
  fault_at("zygote.reap");
  signalfd_siginfo told[8];
  while (read(signals_, told, sizeof told) > 0) {
  }
  int how = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
    for (std::uint32_t i = 0; i < workers_max; ++i) {
      if (workers_[i].pid == pid) report_death(i, how);
    }
  }
}

void keeper::report_death(std::uint32_t worker, int how) {
  worker_seat& w = workers_[worker];
  report r;
  r.what = report::died;
  r.worker = worker;
  r.pid = w.pid;
  r.number = how;
  r.had_work = berths_[worker].has_worked.load(memory_order_relaxed) != 0;
  w.pid = 0;
  close_file(&w.notes);
  for (std::uint32_t m = 0; m < members_max; ++m) {
    if (members_[m].socket < 0 || worker >= members_[m].lanes.size()) continue;
    lane_place& l = members_[m].lanes[worker];
    if (!l.is_attached) continue;
    l.is_attached = false;
    r.was_ordered = w.killed_for == m + 1;
    tell(m, r);
  }
}

// A member that is stopped, or busy, must not keep the others waiting.
void keeper::tell(std::uint32_t m, const report& r, int file) {
  member& it = members_[m];
  if (it.untold.empty() &&
      send_message(it.socket, &r, sizeof r, &file, file < 0 ? 0 : 1, MSG_DONTWAIT))
    return;
  it.untold.push_back(r);
}

void keeper::tell_untold(std::uint32_t m) {
  member& it = members_[m];
  while (!it.untold.empty()) {
    const report& r = it.untold.front();
    int file = -1;
    // Who died since is reported by what follows.
    const bool is_old = r.what == report::started && workers_[r.worker].pid != r.pid;
    if (r.what == report::started && !is_old)
      file = static_cast<int>(syscall(SYS_pidfd_open, r.pid, 0));
    const bool is_told =
        is_old || send_message(it.socket, &r, sizeof r, &file, file < 0 ? 0 : 1, MSG_DONTWAIT);
    close_file(&file);
    if (!is_told) return;
    it.untold.pop_front();
  }
}

// A host that knocks in this moment finds the door gone, and starts another keeper.
void keeper::end_if_alone() noexcept {
  if (present_ != 0) return;
  fault_at("zygote.end");
  close(listener_);
  for (worker_seat& w : workers_) {
    if (w.pid > 0) kill(w.pid, SIGKILL);
  }
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  _exit(0);
}

[[noreturn]] void keeper::run() {
  if (!open()) _exit(1);
  std::vector<pollfd> watched;
  std::vector<std::uint32_t> whose;
  for (;;) {
    watched.assign({{signals_, POLLIN, 0}, {listener_, POLLIN, 0}});
    whose.clear();
    for (std::uint32_t m = 0; m < members_max; ++m) {
      const member& it = members_[m];
      if (it.socket < 0) continue;
      const auto wanted = static_cast<short>(it.untold.empty() ? POLLIN : POLLIN | POLLOUT);
      watched.push_back({it.socket, wanted, 0});
      watched.push_back({it.pidfd, POLLIN, 0});
      whose.push_back(m);
    }
    const int ready = poll(watched.data(), watched.size(), had_members_ ? -1 : first_member_ms_max);
    if (ready == 0) end_if_alone();
    if (ready <= 0) continue;
    // Deaths first: a start on the same lane follows the report of the death.
    if (watched[0].revents != 0) reap();
    for (std::size_t i = 0; i < whose.size(); ++i) {
      const pollfd* of = &watched[2 + 2 * i];
      if ((of[0].revents & POLLOUT) != 0) tell_untold(whose[i]);
      if (of[1].revents != 0) {
        part(whose[i]);
      } else if ((of[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        hear(whose[i]);
      }
    }
    if (watched[1].revents != 0) admit();
    if (had_members_) end_if_alone();
  }
}

// It must not be its first member's child: it outlives it, and nobody would wait for its end. And
// it has a session of its own, so that a terminal's end is not its end.
void become_orphan(const fork_hooks& hooks) noexcept {
  if (hooks.before_fork != nullptr) hooks.before_fork();
  const pid_t pid = fork();
  if (pid != 0) _exit(pid > 0 ? 0 : 1);
  if (hooks.in_worker != nullptr) hooks.in_worker();
  setsid();
}

}  // namespace

[[noreturn]] void run_keeper(int listener, const fork_hooks& hooks) noexcept {
  become_orphan(hooks);
  prctl(PR_SET_NAME, "leveret-keeper");
  static keeper* self = new keeper(listener, hooks);
  self->run();
}

}  // namespace lev::processes
