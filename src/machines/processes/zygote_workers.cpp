// The workers of a keeper, which serve all members: starting them, telling them of members, and
// their deaths.
#include "base/kernel_numbers.hpp"
#include "machines/processes/zygote_process.hpp"
#include "share/faults.hpp"
#include "share/role.hpp"
#include "sync/futex.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace lev::processes {

void zygote_process::take_order(std::uint32_t m, const order& o, int file) {
  if (o.what == order::start) return has_own_workers() ? start_own(m, o, file) : start(m, o, file);
  close_file(&file);
  const bool is_to_end = o.what == order::kill || o.what == order::give_up;
  if (is_to_end && has_own_workers()) return kill_own(m, o.worker);
  if (o.what == order::kill) end_task(m, o);
  if (o.what == order::give_up) give_up(m, o.worker);
  if (o.what == order::leave) members_[m].is_leaving = true;
}

void zygote_process::start(std::uint32_t m, const order& o, int file) {
  report r;
  r.worker = o.worker;
  r.what = report::not_started;
  r.number = file < 0 || fault_at("zygote.receive_lane") ? EMFILE : EADDRINUSE;
  const bool has_place =
      r.number != EMFILE && !is_taken(m, o.lane_begin, members_[m].about.lane_bytes);
  if (!has_place || !ensure_worker(o.worker)) {
    if (has_place) r.number = errno;
    close_file(&file);
    return report_to(m, r);
  }
  member& it = members_[m];
  LEV_ASSERT(workers_[o.worker].pid > 0 && o.worker < workers_max);
  if (it.lanes.size() <= o.worker) it.lanes.resize(o.worker + 1);
  it.lanes[o.worker] = {o.lane_begin, true};
  r.what = report::started;
  r.pid = workers_[o.worker].pid;
  int pidfd = static_cast<int>(syscall(kernel::pidfd_open, r.pid, 0));
  report_to(m, r, pidfd, fault_at("zygote.tell_started"));
  close_file(&pidfd);
  fault_at("zygote.told_started");
  LEV_ASSERT(file >= 0);
  workers_[o.worker].late.push_back({m, file});
  tell_late(o.worker);
}

// Makes sure that the worker exists. False, with errno set: the system refuses.
bool zygote_process::ensure_worker(std::uint32_t worker) {
  kept_worker& w = workers_[worker];
  if (w.pid != 0) return true;
  LEV_ASSERT(w.notes < 0);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return false;
  page_->berths[worker].serving.store(0, memory_order_relaxed);
  page_->berths[worker].has_worked.store(0, memory_order_relaxed);
  int pidfd = fork_worker(hooks_, rule_, &w.pid);
  if (w.pid == 0) begin_worker(worker, ends[1]);
  const int code = errno;
  close(ends[1]);
  w.notes = ends[0];
  w.killed_for = w.unread = 0;
  w.is_for_gone = w.is_deaf = false;
  const bool is_there = pidfd >= 0;
  close_file(&pidfd);
  if (!is_there) {
    w.pid = 0;
    close_file(&w.notes);
  }
  errno = code;
  return is_there;
}

// Closes the files that the worker must not hold: while it held one, no process would see that file
// end.
[[noreturn]] void zygote_process::begin_worker(std::uint32_t worker, int notes) {
  leave_group();
  take_worker_number(static_cast<int>(worker));
  page_->berths[worker].tell_process(static_cast<std::uint32_t>(getpid()));
  leave_files();
  for (member& m : members_) {
    for (int& f : m.files) close_file(&f);
  }
  serve_members(leave_berths(worker), alarms_->of[worker], notes);
}

// A worker whose body has closed its end looks for the note before it begins another task, does not
// find it, and ends.
bool zygote_process::send_note(std::uint32_t worker, const note& n,
                               std::span<const int> files) noexcept {
  kept_worker& w = workers_[worker];
  LEV_ASSERT(w.pid > 0 && w.notes >= 0);
  const bool is_sent = send_message(w.notes, n, files);
  w.is_deaf |= !is_sent && (errno == EPIPE || errno == ECONNRESET);
  if (!is_sent && !w.is_deaf) return false;
  page_->berths[worker].announce_note();
  alarms_->of[worker].ring();
  wake_sleeper(alarms_->of[worker].rings, sleepers::anywhere);
  return is_sent;
}

// A worker that is in a long task reads no notes, and the system lets only so many messages and
// files be under way. So a member that leaves before the worker has been told of it is forgotten,
// and there is room for the rest: the ends of members that it knows.
void zygote_process::tell_late(std::uint32_t worker) noexcept {
  constexpr std::uint32_t unread_max = 16;
  kept_worker& w = workers_[worker];
  while (!w.late.empty() && !w.is_deaf) {
    int unread_bytes = 0;
    if (w.unread == unread_max && ioctl(w.notes, SIOCOUTQ, &unread_bytes) == 0 && unread_bytes == 0)
      w.unread = 0;
    late_note& next = w.late.front();
    if (w.unread == unread_max || !attach(next.member, worker, next.lane_file)) return;
    ++w.unread;
    close_file(&next.lane_file);
    w.late.pop_front();
  }
}

bool zygote_process::tell_late() noexcept {
  bool are_told = true;
  for (std::uint32_t i = 0; i < workers_max; ++i) {
    if (!workers_[i].late.empty()) tell_late(i);
    are_told &= workers_[i].late.empty() || workers_[i].is_deaf;
  }
  return are_told;
}

// True: the worker has not been told of the member.
bool zygote_process::forget_late(std::uint32_t m, std::uint32_t worker) noexcept {
  std::deque<late_note>& late = workers_[worker].late;
  for (auto l = late.begin(); l != late.end(); ++l) {
    if (l->member != m) continue;
    close_file(&l->lane_file);
    late.erase(l);
    return true;
  }
  return false;
}

// A worker that cannot be told is useless: it ends by itself, or is killed, and its death starts
// another.
void zygote_process::detach(std::uint32_t m, std::uint32_t worker) noexcept {
  note n;
  n.what = note::detach;
  n.member = m;
  LEV_ASSERT(workers_[worker].pid > 0);  // kill() of 0 or -1 would reach others
  if (!forget_late(m, worker) && !send_note(worker, n) && !workers_[worker].is_deaf)
    kill(workers_[worker].pid, SIGKILL);
}

bool zygote_process::attach(std::uint32_t m, std::uint32_t worker, int lane_file) noexcept {
  const member& it = members_[m];
  LEV_ASSERT(it.is_met && it.lanes[worker].is_attached);
  note n;
  n.member = m;
  n.lane_begin = it.lanes[worker].begin;
  n.about = it.about;
  int files[file_of::note_count];
  std::copy_n(it.files, file_of::member_count, files);
  files[file_of::lane] = lane_file;
  return send_note(worker, n, files);
}

bool zygote_process::kill_if_serving(std::uint32_t m, std::uint32_t worker) noexcept {
  kept_worker& w = workers_[worker];
  if (w.pid == 0 || !page_->berths[worker].doom(m)) return false;
  LEV_ASSERT(w.pid > 0);
  w.killed_for = m + 1;
  kill(w.pid, SIGKILL);
  return true;
}

// A worker that serves no member is in no task, and will begin none. Its death is the affair of the
// member that asks for it.
bool zygote_process::kill_if_free(std::uint32_t m, std::uint32_t worker) noexcept {
  if (workers_[worker].pid == 0 || !page_->berths[worker].doom_free(m)) return false;
  LEV_ASSERT(workers_[worker].pid > 0);
  kill(workers_[worker].pid, SIGKILL);
  return true;
}

// Closes sockets and memory that a worker does not need, and that would keep others alive or show
// them to it.
void zygote_process::leave_files() noexcept {
  for (int* f : {&listener_, &signals_, &page_file_, &alarms_file_}) close_file(f);
  if (alarms_ != nullptr)
    mprotect(alarms_, sizeof *alarms_, PROT_READ);  // a body's stray write wakes no worker
  for (kept_worker& w : workers_) {
    close_file(&w.notes);
    for (late_note& l : w.late) close_file(&l.lane_file);
  }
  for (member& m : members_) {
    close_file(&m.socket);
    close_file(&m.pidfd);
  }
  fault_at("worker.begin");
  arm_faults(nullptr, nullptr);  // until a member comes that has a plan
  if (plan_of_.heap_begin != 0)
    munmap(reinterpret_cast<void*>(plan_of_.heap_begin), plan_of_.heap_bytes);
  for (member& m : members_) {
    if (m.board != nullptr) munmap(const_cast<board*>(m.board), sizeof(board));
  }
}

// The member posts nothing to the worker until it is told of its death, or of this.
void zygote_process::end_task(std::uint32_t m, const order& o) {
  if (kill_if_serving(m, o.worker)) return;
  report r;
  r.what = report::spared;
  r.worker = o.worker;
  r.number = static_cast<std::int32_t>(o.lane_begin);
  report_to(m, r);
}

// The worker begins none of the member's tasks: the member has found the words of its lane
// overwritten, or the worker does not come to its lane. A task of another member may have done
// that, and yet another may run by now; or the worker hangs before it can read a note.
void zygote_process::give_up(std::uint32_t m, std::uint32_t worker) {
  const std::vector<lane_place>& lanes = members_[m].lanes;
  const bool is_its = worker < lanes.size() && lanes[worker].is_attached;  // no successor's
  if (!is_its || workers_[worker].pid == 0 || kill_if_serving(m, worker) || kill_if_free(m, worker))
    return;
  note n;
  n.what = note::end;
  n.member = m;
  if (!send_note(worker, n) && !workers_[worker].is_deaf) kill(workers_[worker].pid, SIGKILL);
}

void zygote_process::reap() {
  fault_at("zygote.reap");
  signalfd_siginfo told[8];
  while (read(signals_, told, sizeof told) > 0) {
  }
  int how = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
    if (!has_ended(pid, how) || report_own_death(pid, how)) continue;
    for (std::uint32_t i = 0; i < workers_max; ++i) {
      if (workers_[i].pid == pid) report_death(i, how);
    }
  }
}

// The member, plus 1, that the berth of a dead worker names, or that had it killed and is gone; 0:
// none. A body may have written anything there.
std::uint32_t zygote_process::served_last(std::uint32_t worker) const noexcept {
  const std::uint32_t served = page_->berths[worker].served();
  if (served == 0 || served > members_max) return 0;
  const bool is_known = members_[served - 1].is_met || workers_[worker].killed_for == served;
  return is_known ? served : 0;
}

void zygote_process::report_death(std::uint32_t worker, int how) {
  kept_worker& w = workers_[worker];
  LEV_ASSERT(w.pid > 0 && w.killed_for <= members_max);
  report r;
  r.what = report::died;
  r.worker = worker;
  r.pid = w.pid;
  r.number = how;
  r.had_work = page_->berths[worker].has_worked.load(memory_order_relaxed) != 0;
  const std::uint32_t served = served_last(worker);
  w.pid = 0;
  close_file(&w.notes);
  while (!w.late.empty()) forget_late(w.late.front().member, worker);
  for (std::uint32_t m = 0; m < members_max; ++m) {
    if (members_[m].socket < 0 || worker >= members_[m].lanes.size()) continue;
    lane_place& l = members_[m].lanes[worker];
    if (!l.is_attached) continue;
    l.is_attached = false;
    const bool is_its = !w.is_for_gone && served == m + 1;
    r.was_ordered = !w.is_for_gone && w.killed_for == m + 1;
    r.was_away = w.is_for_gone || (served != 0 && !is_its);
    r.was_here = is_its;
    report_to(m, r, -1, fault_at("zygote.tell_died"));
    fault_at("zygote.told_died");
  }
}

}  // namespace lev::processes
