// Starting, watching and replacing worker processes.
#include "machines/processes/pool.hpp"

#include "base/kernel_numbers.hpp"
#include "base/numbers.hpp"
#include "machines/processes/poll_until.hpp"
#include "share/faults.hpp"
#include "share/own_files.hpp"
#include "share/role.hpp"
#include "share/shortage.hpp"
#include "share/zone.hpp"
#include "sync/futex.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace lev::processes {

namespace {

constexpr std::size_t bare_lane_bytes = round_up(sizeof(lane<>), page_bytes);
static_assert(bare_lane_bytes >= sizeof(lane<>));  // a store follows, on a page of its own

using word = lane<>::word;

}  // namespace

pool::pool(const config& c) noexcept : settings_(c) {}

pool::~pool() {
  close();
  // The page is not unmapped before: while a runtime closes, threads whose submit it refuses may
  // still look at it.
  if (page_ != nullptr) munmap(const_cast<pool_page*>(page_), sizeof(pool_page));
  if (alarms_ != nullptr) munmap(alarms_, sizeof(pool_alarms));
  for (std::uint32_t i = 0; i < workers_; ++i) {
    if (states_[i].lane != nullptr) munmap(states_[i].lane, lane_bytes_);
    close_file(&states_[i].file);
  }
  if (board_ != nullptr) munmap(board_, sizeof(board));
  if (owns_heap_file_) close_file(&heap_file_);
  close_file(&board_file_);
  close_file(&bell_);
}

bool pool::fail(const char* what) noexcept {
  if (why_[0] == 0) {
    const int code = errno;
    why_status_ = is_shortage(code) ? status::out_of_memory : status::unavailable;
    if (code == 0) {
      std::snprintf(why_, sizeof why_, "%s", what);
    } else {
      std::snprintf(why_, sizeof why_, "%s: %s%s", what, std::strerror(code), next_step(code));
    }
  }
  return false;
}

bool pool::open_heap() noexcept {
  const zone* z = open_zone();
  if (z == nullptr) return fail("reserving shared memory");
  // Confined workers read the heap only, and cannot make their mapping writable.
  heap_file_ = is_confined() ? open_to_read(z->heap_file) : z->heap_file;
  owns_heap_file_ = is_confined();
  if (heap_file_ < 0) return fail("opening the shared memory to read (is /proc there?)");
  about_.heap_begin = z->heap_begin;
  about_.heap_bytes = z->heap_end - z->heap_begin;
  return true;
}

bool pool::open_board() noexcept {
  board_file_ = make_memory_file(board_name, sizeof(board));
  if (board_file_ < 0) return fail("making a memory file");
  void* mapped = fault_at("host.map_board") ? MAP_FAILED
                                            : mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE,
                                                   MAP_SHARED, board_file_, 0);
  if (mapped == MAP_FAILED) return fail("mapping a memory file");
  board_ = new (mapped) board;
  procedures_.open(&board_->procedures);
  // From here on no process can map it to write: not even a worker, which runs as the same user.
  if (fault_at("host.seal_board") || !seal_memory_file(board_file_, true))
    return fail("sealing a memory file");
  return true;
}

bool pool::open_lane(std::uint32_t worker) noexcept {
  worker_state& s = states_[worker];
  s.file = make_memory_file("leveret-lane", lane_bytes_);
  if (s.file < 0) return fail("making a worker's memory file");
  if (!seal_memory_file(s.file, false)) return fail("sealing a worker's memory file");
  void* begin = map_near(s.file, lane_bytes_);
  if (begin == nullptr) return fail("mapping a worker's memory file");
  s.lane = new (begin) lane<>;
  const std::uint32_t last = faults::lanes_begin_after.load(memory_order_relaxed);
  s.posted.store(last, memory_order_relaxed);
  s.collected.store(last, memory_order_relaxed);
  show_lane(worker);
  return true;
}

bool pool::open_files(std::uint32_t workers) {
  LEV_ASSERT(workers != 0 && workers <= workers_max && states_ == nullptr);
  if (!open_heap() || !open_board()) return false;
  bell_ = fault_at("host.eventfd") ? -1 : out_of_the_way(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (bell_ < 0) return fail("eventfd");
  lane_bytes_ = bare_lane_bytes + settings_.local_store_bytes;
  states_.reset(new worker_state[workers]);
  deaths_.reserve(workers);  // nothing is allocated when one comes
  workers_ = workers;
  for (std::uint32_t i = 0; i < workers; ++i) {
    if (!open_lane(i)) return false;
  }
  return true;
}

// Keeps copies of the caller's strings: a zygote may have to be started again when the strings are
// gone.
void pool::keep_names() {
  LEV_ASSERT(command_.empty());  // or settings_ would name strings that move
  if (settings_.processes.pool != nullptr) {
    pool_name_ = settings_.processes.pool;
    settings_.processes.pool = pool_name_.c_str();
  }
  if (settings_.processes.worker_command == nullptr) return;
  for (const char* const* w = settings_.processes.worker_command; *w != nullptr; ++w)
    command_words_.emplace_back(*w);
  for (const std::string& w : command_words_) command_.push_back(w.c_str());
  command_.push_back(nullptr);
  settings_.processes.worker_command = command_.data();
}

bool pool::open(std::uint32_t workers) {
  keep_names();
  // A program's static objects are made in its zygote, too; if they opened runtimes there, their
  // workers would start workers without end. A worker's tasks may open runtimes.
  if (role() != process_role::host && worker_number() < 0) {
    errno = 0;
    return fail(
        "this process is to start the workers of another runtime; open it on the machine threads, "
        "or later, in main() or a task");
  }
  if (!open_files(workers)) return false;
  why_not_itself_ = why_not_itself();
  about_.store_bytes = settings_.local_store_bytes;
  about_.lane_bytes = lane_bytes_;
  about_.spin_ns = cores_ == 1 ? 0 : settings_.spin_ns;  // a poller would have the core
  about_.data_bytes_max = settings_.processes.worker_bytes_max;
  about_.cpu_seconds_max = settings_.processes.worker_cpu_seconds_max;
  about_.chaos = settings_.processes.chaos;
  about_.seed = settings_.seed;
  about_.level = settings_.processes.isolation;
  about_.program = is_shared() ? program_mark() : 0;
  about_.faults = reinterpret_cast<std::uintptr_t>(faults::in_workers.load(memory_order_relaxed));
  if (!start_zygote()) return false;
  for (std::uint32_t i = 0; i < workers; ++i) {
    if (!start_worker(i)) return fail("asking the zygote for a worker");
    if (!take_start_reports(0)) return false;  // or both sides could wait for room to send
  }
  for (std::uint32_t i = 0; i < workers; ++i) {
    while (states_[i].is_awaited) {
      if (!take_start_reports(start_ms_max)) return false;
    }
  }
  show_pool();
  return true;
}

ssize_t pool::receive_report(report* r, int* file) noexcept {
  if (fault_at("host.receive_report")) return -1;
  const ssize_t got = receive_message(socket_, *r, {file, 1});
  if (*file >= 0 && fault_at("host.receive_pidfd")) close_file(file);
  return got;
}

// Takes the reports that have come, after waiting for one for `wait_ms`. False: a worker that must
// exist when the runtime opens will not.
bool pool::take_start_reports(int wait_ms) {
  pollfd watched[2] = {{socket_, POLLIN, 0}, {zygote_file_, POLLIN, 0}};
  const int ready = poll_until(watched, in_ms(wait_ms));
  const bool is_over = watched[1].revents != 0;
  errno = ETIMEDOUT;
  if (ready == 0) return wait_ms == 0 || fail("waiting for a worker process to start");
  for (;;) {
    report r;
    int file = -1;
    const ssize_t got = receive_report(&r, &file);
    if (got < 0 && !is_over) return true;
    errno = EPIPE;
    if (got <= 0) return fail("the zygote process ended while it started workers");
    errno = r.what == report::not_started ? r.number : EMFILE;
    const bool has_started =
        r.what != report::not_started && (r.what != report::started || file >= 0);
    if (got == sizeof r) take_report(r, file);
    if (!has_started) return fail("starting a worker process");
  }
}

bool pool::start_worker(std::uint32_t worker) noexcept {
  worker_state& s = at(worker);
  LEV_ASSERT(!s.is_alive && s.pidfd < 0 && socket_ >= 0);
  const std::uint32_t posted = s.posted.load(memory_order_relaxed);
  const std::uint32_t line = posted - s.collected.load(memory_order_relaxed);
  LEV_ASSERT(line <= lane_records);
  // The last worker is dead, and the next one waits for its orders.
  s.lane->reset(posted + 1);
  board_->shown.worker_signs[worker].returned.fetch_add(line, memory_order_relaxed);
  s.collected.store(posted, memory_order_relaxed);
  s.first = posted + 1;
  s.was_ordered = s.is_spared = s.is_late = false;
  s.roused = posted;  // none of its own
  s.start_code = 0;
  s.is_awaited = true;
  // The line has no task, and its turn is held.
  s.has_arrived.store(0, memory_order_relaxed);
  s.awaited_since_ns = monotonic_ns();
  const order o{order::start, worker, reinterpret_cast<std::uintptr_t>(s.lane)};
  LEV_DCHECK(s.first == s.posted.load(memory_order_relaxed) + 1);
  s.is_alive = !fault_at("host.send_order") && send_message(socket_, o, {&s.file, 1}, 0);
  if (s.is_alive) ++arriving_;
  return s.is_alive;
}

// The pool's sign: what look.cpp reads.
void pool::show_lane(std::uint32_t worker) noexcept {
  LEV_ASSERT(worker < workers_max && at(worker).file >= 0);
  worker_sign& shown = board_->shown.worker_signs[worker];
  struct stat about;
  if (fstat(states_[worker].file, &about) == 0) shown.inode = about.st_ino;
  shown.file = states_[worker].file;
  shown.returned.store(states_[worker].posted.load(memory_order_relaxed), memory_order_relaxed);
}

void pool::show_pool() noexcept {
  sign& shown = board_->shown;
  shown.board_bytes = sizeof(board);
  shown.host = static_cast<std::uint32_t>(getpid());
  shown.workers = workers_;
  // Pairs with the looker's read of the whole: another process, which checks what it gets.
  LEV_ASSERT(shown.magic.load(memory_order_relaxed) == 0 && workers_ <= workers_max);
  shown.magic.store(sign::open_pool, memory_order_release);
}

void* pool::store_of(std::uint32_t worker) noexcept {
  return reinterpret_cast<char*>(states_[worker].lane) + bare_lane_bytes;
}

void pool::wake(std::uint32_t worker) noexcept {
  fault_at("host.wake");
  if (!shares_workers()) return wake_sleeper(at(worker).lane->asleep, sleepers::anywhere);
  alarms_->of[worker].ring();
  wake_sleeper(alarms_->of[worker].rings, sleepers::anywhere);
}

void pool::give_order(std::uint32_t worker, std::uint32_t order) noexcept {
  LEV_DCHECK(order == lane<>::order_work || order == lane<>::order_stop);
  lane<>& its_lane = *at(worker).lane;
  // Pairs with the worker's last look before it sleeps.
  its_lane.orders.store(order, memory_order_seq_cst);
  if (its_lane.wake()) wake(worker);
}

void pool::notify() noexcept {
  fault_at("host.ring");
  const std::uint64_t one = 1;
  // Not write(), which is a point of cancellation: a host rings in its submits. Full: it rings
  // already.
  [[maybe_unused]] const long n = syscall(SYS_write, bell_, &one, sizeof one);
}

void pool::wait(std::uint64_t deadline_ns) noexcept {
  if (arriving_ != 0) deadline_ns = smaller(deadline_ns, late_ns());
  pollfd watched[3] = {{bell_, POLLIN, 0}, {socket_, POLLIN, 0}, {zygote_file_, POLLIN, 0}};
  const std::size_t count = is_zygote_lost_ ? 1 : 3;
  if (fault_at("host.sleep") || poll_until({watched, count}, deadline_ns) <= 0) return;
  // A program may have closed the files of all its libraries. The zygote is out of reach then.
  const bool is_deaf = (watched[0].revents & POLLNVAL) != 0;
  is_zygote_over_ |=
      count == 3 && (is_deaf || watched[2].revents != 0 || (watched[1].revents & POLLNVAL) != 0);
  if (is_deaf) poll(nullptr, 0, 1);  // no worker can ring: looks every millisecond
  if (watched[0].revents == 0) return;
  std::uint64_t rings;
  [[maybe_unused]] const ssize_t n = read(bell_, &rings, sizeof rings);
  for (std::uint32_t i = 0; i < workers_; ++i) {
    word& rung = states_[i].lane->rung;
    // Pairs with the worker's ring: the service looks at the ends after this.
    if (rung.load(memory_order_relaxed) != 0) rung.exchange(0, memory_order_seq_cst);
  }
}

// Shows the task in which the worker died, if any. The worker may have overwritten its lane:
// lookers check the number. A holder of the line's turn may post more meanwhile, but to no record
// of a task that it has not collected.
void pool::show_victim(std::uint32_t worker) noexcept {
  const worker_state& s = states_[worker];
  const std::uint32_t claimed = s.lane->claimed.load(memory_order_relaxed);
  const std::uint32_t before = s.collected.load(memory_order_relaxed);
  // Pairs with post(): the record of a posted task is there.
  const std::uint32_t line = s.posted.load(memory_order_acquire) - before;
  const std::uint32_t after = claimed - before;
  if (after == 0 || after > line || line > lane_records || s.lane->has_end(claimed)) return;
  board_->shown.worker_signs[worker].died_in.store(s.lane->record_of(claimed).procedure,
                                                   memory_order_relaxed);
}

void pool::note_death(std::uint32_t worker, int how, const report* told) {
  worker_state& s = states_[worker];
  if (!s.is_alive) return;
  fault_at("host.bury");
  s.is_alive = false;
  const bool has_arrived = s.has_arrived.load(memory_order_relaxed) != 0;
  LEV_ASSERT(has_arrived || arriving_ != 0);
  if (!has_arrived) --arriving_;
  s.is_awaited = false;
  const bool was_there = s.start_code == 0 || s.pid != 0;
  s.pid = 0;
  board_->shown.worker_signs[worker].pid.store(0, memory_order_relaxed);
  board_->shown.worker_signs[worker].deaths.fetch_add(1, memory_order_relaxed);
  show_victim(worker);
  close_file(&s.pidfd);
  remote_death d;
  d.worker = worker;
  explain(how, is_confined(), d);
  d.step = s.lane->died_at.load(memory_order_relaxed);
  // The word of confined workers does not count: a body that hides its begin must not bring the
  // pool down.
  d.had_work = is_confined() ? has_arrived && s.posted.load(memory_order_relaxed) + 1 != s.first
                             : s.lane->claimed.load(memory_order_relaxed) + 1 != s.first;
  d.was_ordered = s.was_ordered;
  if (shares_workers() &&
      told != nullptr) {  // it may have worked, and been killed, for other hosts
    if (!told->was_here) d.had_work = told->had_work;  // its first task of this host may kill it
    d.was_ordered = told->was_ordered;
    d.was_away = told->was_away;
  }
  d.is_late = s.is_late && !has_arrived;
  d.start_code = s.start_code;
  d.was_there = was_there;
  if (d.is_late || d.start_code != 0) d.was_ordered = false;  // for no task's sake
  deaths_.push_back(d);
  LEV_ASSERT(deaths_.size() <= workers_);  // one a worker: it is replaced when its death is told
}

// No number was free for the worker's file, so its death could not be confirmed. Another host's
// task may run in it.
void pool::refuse_worker(const report& r) noexcept {
  if (!send_message(socket_, order{order::give_up, r.worker, 0})) ::kill(r.pid, SIGKILL);
}

void pool::take_report(const report& r, int file) {
  if (r.worker >= workers_) return close_file(&file);
  worker_state& s = states_[r.worker];
  switch (r.what) {
    case report::started:
      s.is_awaited = false;
      s.pid = r.pid;
      board_->shown.worker_signs[r.worker].pid.store(static_cast<std::uint32_t>(r.pid),
                                                     memory_order_relaxed);
      close_file(&s.pidfd);
      s.pidfd = file;
      if (file < 0) {
        s.start_code = EMFILE;
        return refuse_worker(r);
      }
      order_to_work(r.worker);
      return;
    case report::not_started:
      s.start_code = r.number;
      note_death(r.worker, -1);
      break;
    case report::died:
      note_death(r.worker, r.number, &r);
      break;
    case report::spared:
      s.is_spared = static_cast<std::uint32_t>(r.number) == s.kills;
      break;
    default:
      break;
  }
  close_file(&file);
}

bool pool::next_death(remote_death* death) {
  // This is done here and not where the bell is read, because a busy service does not read it.
  const std::uint64_t now = arriving_ == 0 ? 0 : monotonic_ns();
  for (std::uint32_t i = 0; arriving_ != 0 && i < workers_; ++i) await_arrival(i, now);
  while (deaths_.empty() && !is_zygote_lost_) {
    report r;
    int file = -1;
    const ssize_t got = receive_report(&r, &file);
    if (got == 0 || (got < 0 && is_zygote_over_)) {
      close_file(&file);
      zygote_is_gone();
    } else if (got == sizeof r) {
      take_report(r, file);
    } else {
      close_file(&file);
      break;
    }
  }
  if (deaths_.empty()) return false;
  *death = deaths_.front();
  deaths_.erase(deaths_.begin());
  return true;
}

bool pool::replace(std::uint32_t worker) noexcept {
  LEV_ASSERT(!at(worker).is_alive);
  fault_at("host.replace");
  if (is_zygote_lost_) return false;
  if (is_shortage(at(worker).start_code)) pause_for_ms(shortage_pause_ms);
  why_[0] = 0;  // the reason of an earlier failure
  if (start_worker(worker)) return true;
  // The keeper of other hosts is not gone because this one lacks something: their tasks go on.
  constexpr int tries_max = 20;
  constexpr int pause_ms = 5;
  for (int i = 0; shares_workers() && errno != EPIPE && errno != ECONNRESET; ++i) {
    if (i == tries_max) return fail("asking the keeper for a worker");
    pause_for_ms(pause_ms);
    if (start_worker(worker)) return true;
  }
  // A zygote that takes no orders is gone, or as good as gone, though that has not been noticed
  // yet. So may be the next one by the time of its first order.
  constexpr int parents_max = 3;
  for (int i = 0; i < parents_max; ++i) {
    zygote_is_gone();
    if (is_zygote_lost_) return false;
    if (start_worker(worker)) return true;
  }
  return fail("giving a new one its first order");
}

bool pool::kill(std::uint32_t worker, bool is_lost) noexcept {
  worker_state& s = states_[worker];
  // One that has not arrived has begun nothing that could be ended: await_arrival() ends it.
  if (!s.is_alive || s.pidfd < 0 || has_begun_none(worker)) return false;
  if (shares_workers()) {  // the keeper knows whose task it is in
    s.is_spared = false;   // an answer that came when the worker before was dead
    const order o{is_lost ? order::give_up : order::kill, worker, ++s.kills};
    return send_message(socket_, o);
  }
  s.was_ordered = end_process(worker);
  return s.was_ordered;
}

// A host that has given up rights since it opened (a daemon that was started by root) may be
// refused: its zygote has them still. False: it could not be asked.
bool pool::end_process(std::uint32_t worker) noexcept {
  LEV_ASSERT(!shares_workers() && at(worker).pidfd >= 0);
  if (!fault_at("host.end_process") &&
      syscall(kernel::pidfd_send_signal, at(worker).pidfd, SIGKILL, nullptr, 0) == 0)
    return true;
  return errno == ESRCH || send_message(socket_, order{order::kill, worker, 0});
}

void pool::close() noexcept {
  fault_at("host.close");
  if (board_ != nullptr) board_->shown.magic.store(0, memory_order_relaxed);
  if (!shares_workers()) end_workers();
  if (is_shared()) return leave_keeper();
  end_zygote();
  reap_workers();
}

void pool::end_workers() noexcept {
  for (std::uint32_t i = 0; i < workers_; ++i) {
    if (states_[i].lane != nullptr) give_order(i, lane<>::order_stop);
  }
  // Workers that are in a task of a pool that is down, or are stopped, are killed: all of them
  // together have a second.
  constexpr int leave_ms_max = 1'000;
  const std::uint64_t deadline_ns = in_ms(leave_ms_max);
  for (std::uint32_t i = 0; i < workers_; ++i) {
    worker_state& s = states_[i];
    pollfd over{s.pidfd, POLLIN, 0};
    if (s.pidfd >= 0) poll_until({&over, 1}, deadline_ns);
    // If that is refused, the zygote, which is told to end next, does it.
    if (s.pidfd >= 0) syscall(kernel::pidfd_send_signal, s.pidfd, SIGKILL, nullptr, 0);
  }
}

}  // namespace lev::processes
