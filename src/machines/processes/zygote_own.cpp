// The zygote's workers that serve one member: starting them, and their deaths. Everything that
// confined ones must not have is found out and forgotten before the first is forked.
#include "machines/processes/confine.hpp"
#include "machines/processes/start_again.hpp"
#include "machines/processes/zygote_process.hpp"
#include "share/faults.hpp"
#include "share/role.hpp"
#include "sync/futex.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

namespace lev::processes {

namespace {

// Confines a trial process: workers that would be confined less than promised are not started.
// Null, or the step that failed, with the reason in errno.
const char* try_confining(const introduction& about, int bell) noexcept {
  struct answer {
    const char* why = nullptr;  // the same address in parent and child
    int number = 0;
  };
  void* page =
      mmap(nullptr, sizeof(answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return "mapping a page";
  const auto* got = new (page) answer;
  const pid_t pid = fork();
  if (pid < 0) return "starting a process";
  if (pid == 0) {
    become_worker(about, getppid());
    leave_group();
    const char* why = confine({bell, about.heap_begin, about.heap_bytes, about.data_bytes_max});
    if (why != nullptr) *static_cast<answer*>(page) = {why, errno};
    _exit(0);
  }
  const int how = wait_for_end(pid);
  const answer said = *got;
  munmap(page, sizeof(answer));
  errno = said.number;
  if (said.why != nullptr || how == 0) return said.why;
  errno = ENOSYS;
  return "confined workers: the process that tried it died";
}

}  // namespace

const char* zygote_process::try_out(const member& it) noexcept {
  const introduction& a = it.about;
  const char* why = nullptr;
  if (a.level == lev::isolation::confined) {
    if (!had_members_ && !forget_start()) why = "confined workers need /proc";
    if (why == nullptr) why = try_confining(a, it.files[file_of::bell]);
  }
  const int code = errno;
  if (has_own_workers() && plan_of_.heap_begin != a.heap_begin)
    munmap(reinterpret_cast<void*>(a.heap_begin), a.heap_bytes);
  errno = code;
  return why;
}

void zygote_process::start_own(std::uint32_t m, const order& o, int file) {
  member& it = members_[m];
  report r;
  r.worker = o.worker;
  r.number = EMFILE;  // no number was free for the lane's file
  const bool has_lane = !fault_at("zygote.receive_lane") && file >= 0;
  if (it.lanes.size() <= o.worker) it.lanes.resize(o.worker + 1);
  lane_place& l = it.lanes[o.worker];
  const bool is_free = l.own == 0 && !is_taken(m, o.lane_begin, it.about.lane_bytes);
  if (has_lane) r.number = EADDRINUSE;
  if (it.about.level == lev::isolation::confined)
    try_libraries(it.board->procedures, it.about, hooks_, it.socket, it.known);
  int pidfd = -1;
  if (has_lane && is_free) {
    pidfd = fork_worker(hooks_, it.about, &r.pid);
    if (r.pid == 0) begin_own(m, o, file);
    r.number = errno;
  }
  r.what = pidfd < 0 ? report::not_started : report::started;
  LEV_ASSERT(pidfd < 0 || r.pid > 0);
  close_file(&file);
  if (pidfd >= 0) l = {o.lane_begin, true, r.pid};
  report_to(m, r, pidfd, fault_at("zygote.tell_started"));
  fault_at("zygote.told_started");
  // A confined worker may not leave the group itself. Others do when they are ordered to work.
  if (pidfd >= 0 && it.about.level == lev::isolation::confined) setpgid(r.pid, r.pid);
  close_file(&pidfd);
}

// Kills a worker for a host that may not do so itself. The host orders a successor when it has been
// told of the death.
void zygote_process::kill_own(std::uint32_t m, std::uint32_t worker) noexcept {
  if (worker >= members_[m].lanes.size()) return;
  const pid_t pid = members_[m].lanes[worker].own;
  if (pid > 0) kill(pid, SIGKILL);
}

// The child's part of a start. It waits for the host's word before it takes a task. If the zygote
// dies before it has told the host of this process, no process will wait for it, so it must not
// work.
void zygote_process::begin_own(std::uint32_t m, const order& o, int lane_file) {
  member& it = members_[m];
  take_worker_number(static_cast<int>(o.worker));
  leave_files();
  for (member& other : members_) {
    for (int& f : other.files) {
      if (&other != &it) close_file(&f);
    }
  }
  note n;
  n.member = m;
  n.lane_begin = o.lane_begin;
  n.about = it.about;
  int files[file_of::note_count];
  std::copy_n(it.files, file_of::member_count, files);
  files[file_of::lane] = lane_file;
  serve_one({leave_common(o.worker), &n, files, &it.known});
}

// Gives up the memory that a shared pool's workers have in common, except for this one's berth.
berth<>* zygote_process::leave_common(std::uint32_t worker) noexcept {
  if (page_ == nullptr) return nullptr;
  munmap(alarms_, sizeof *alarms_);
  return &leave_berths(worker);
}

// Gives up the berths of other workers: a body that writes all over its memory reaches none of
// them.
berth<>& zygote_process::leave_berths(std::uint32_t worker) noexcept {
  berth<>* own = &page_->berths[worker];
  auto* begin = reinterpret_cast<char*>(page_);
  auto* after = reinterpret_cast<char*>(own + 1);
  munmap(begin, static_cast<std::size_t>(reinterpret_cast<char*>(own) - begin));
  munmap(after, static_cast<std::size_t>(reinterpret_cast<char*>(page_ + 1) - after));
  return *own;
}

bool zygote_process::has_own(std::uint32_t m, std::uint32_t worker) const noexcept {
  return m < members_max && worker < members_[m].lanes.size() && members_[m].lanes[worker].own > 0;
}

// A worker of that number has died. It may have had the turn, or its body have given it to any
// member, or to none that there is.
void zygote_process::pass_turn(std::uint32_t worker) noexcept {
  if (page_ == nullptr) return;
  berth<>& place = page_->berths[worker];
  const std::uint32_t holder = place.holder();
  if (holder == 0) place.leave_for_nobody();
  if (holder != 0 && !has_own(holder - 1, worker)) place.leave_for(holder - 1);
  // Also if it had no turn: it may have been woken to take one, or have left its own and woken
  // nobody yet. The one that is woken instead takes the turn, or says that it wants it.
  wake_sleeper(place.serving, sleepers::anywhere);
}

bool zygote_process::report_own_death(pid_t pid, int how) {
  for (std::uint32_t m = 0; m < members_max; ++m) {
    for (std::uint32_t w = 0; w < members_[m].lanes.size(); ++w) {
      lane_place& l = members_[m].lanes[w];
      if (l.own != pid) continue;
      report r;
      r.what = report::died;
      r.worker = w;
      r.pid = pid;
      r.number = how;
      l = {};
      pass_turn(w);
      report_to(m, r, -1, fault_at("zygote.tell_died"));
      fault_at("zygote.told_died");
      return true;
    }
  }
  return false;
}

// The member's number is free for another when its workers are gone.
void zygote_process::end_own(std::uint32_t m) noexcept {
  for (std::uint32_t w = 0; w < members_[m].lanes.size(); ++w) {
    const pid_t pid = members_[m].lanes[w].own;
    if (pid > 0) kill(pid, SIGKILL);
  }
  for (std::uint32_t w = 0; w < members_[m].lanes.size(); ++w) {
    const pid_t pid = std::exchange(members_[m].lanes[w].own, 0);
    if (pid <= 0) continue;
    if (kill(pid, SIGKILL) == 0) wait_for_end(pid);
    pass_turn(w);
  }
}

}  // namespace lev::processes
