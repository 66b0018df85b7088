// The main loop of a worker process: take the next record of a lane, run it, report its end.
#include "base/numbers.hpp"
#include "machines/processes/berth.hpp"
#include "machines/processes/client.hpp"
#include "machines/processes/confine.hpp"
#include "share/role.hpp"
#include "share/zone.hpp"
#include "sync/futex.hpp"
#include "sync/linger.hpp"
#include "sync/switches.hpp"
#include "worker/execute.hpp"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace lev::processes {

namespace {

constexpr std::uint32_t looks_per_clock = 64;
// How long a worker polls where another thread has wanted the core. It tells of its ends before it
// sleeps.
constexpr std::uint64_t short_spin_ns = client::patience_ns;

constexpr int kill_ms_max = 1'000;        // in which a keeper kills a worker that it has claimed
bool is_confined = false;                 // this process has given up its rights
std::uint64_t idle_ns_max = no_deadline;  // retire_worker_after()

void (*at_end)() = nullptr;

// A thread that a task has left behind may hold a stream for ever, for example while it waits for a
// line to read. So where there are other threads, one more writes what is buffered in streams that
// are held, and has a second for that.
void write_all_out() noexcept {
  if (!is_confined) write_out();  // as long as its reader takes
  constexpr std::uint64_t limit_ns = 1'000'000'000;
  // Written by the writing thread, when it is done; read by this one.
  static atomic<std::uint32_t> is_over{0};
  const auto write_in_thread = [](void*) -> void* {
    std::fflush(nullptr);
    is_over.store(1, memory_order_relaxed);  // publishes nothing
    wake_sleeper(is_over, sleepers::here);
    return nullptr;
  };
  pthread_t writer;
  if (is_confined || thread_count() == 1 ||
      pthread_create(&writer, nullptr, write_in_thread, nullptr) != 0) {
    std::fflush(nullptr);
    return;
  }
  const std::uint64_t deadline_ns = monotonic_ns() + limit_ns;
  while (is_over.load(memory_order_relaxed) == 0 && monotonic_ns() < deadline_ns)
    sleep_while(is_over, 0, deadline_ns, sleepers::here);
}

[[noreturn]] void leave(int code = 0) noexcept {
  fault_at("worker.leave");
  if (code == 0 && at_end != nullptr) at_end();
  write_all_out();
  _exit(code);
}

// The number of the file's node; 0: no file is open there. Of sockets no two are alike.
ino_t number_of(int file) noexcept {
  struct stat about{};
  return fstat(file, &about) == 0 ? about.st_ino : 0;
}

class worker_process {
 public:
  // Serves one host.
  explicit worker_process(const own_start& start);
  // Serves several hosts, which come by notes.
  worker_process(berth<>& served, const alarm<>& wakes, int notes) noexcept
      : berth_(&served), notes_(notes), notes_number_(number_of(notes)), wakes_(&wakes) {}

  [[noreturn]] void run() noexcept {
    float_mode_ = float_mode();
    for (const auto& c : clients_) c->arrive();
    for (;;) {
      client& c = await();
      if (berth_ == nullptr && c.is_plain()) {
        c.run_plainly(float_mode_);
        if (is_retiring) leave();
        continue;
      }
      if (c.lacks_library()) leave(new_library_code);
      c.pass(chaos_step::received, "worker.received");
      if (berth_ == nullptr) {
        run_task(c);
      } else if (has_notes()) {
        run_shared(c);
      } else {
        run_in_turn(c);
      }
    }
  }

 private:
  void run_task(client& c) noexcept {
    c.run();
    restore_float_mode(float_mode_);
    c.pass(chaos_step::finished, "worker.finished");
    if (is_retiring) leave();
    c.go_on();
  }
  void run_shared(client& c) noexcept;
  void run_in_turn(client& c) noexcept;
  void wait_for_turn() noexcept;
  void end_turn() noexcept;
  void turn_to(client& c) noexcept;
  bool has_notes() const noexcept { return notes_ >= 0; }

  // The next client that has a task, in turn; null when none has.
  client* next_client() noexcept {
    if (only_ != nullptr) return only_->has_task() ? only_ : nullptr;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      turn_ = turn_ + 1 < clients_.size() ? turn_ + 1 : 0;
      if (clients_[turn_]->has_task()) return clients_[turn_].get();
    }
    return nullptr;
  }
  client* look_for_task() noexcept {
    for (std::uint32_t look = 0; look < looks_per_clock; ++look) {
      if (client* c = next_client()) return c;
      relax_core();
    }
    return nullptr;
  }
  client& await() noexcept;
  void sleep(std::uint64_t until_ns) noexcept;

  void be_free() noexcept;
  void read_notes() noexcept;
  void note_only() noexcept { only_ = clients_.size() == 1 ? clients_.front().get() : nullptr; }
  // Runtimes of one host process have one heap.
  bool has_heap(const introduction& a) const noexcept {
    for (const auto& c : clients_) {
      if (c->about().heap_begin == a.heap_begin) return true;
    }
    return false;
  }
  client& attach(const note& n, int* files);
  void detach(std::uint32_t member) noexcept;
  void serve_only(std::uint32_t served) noexcept;

  std::vector<std::unique_ptr<client>> clients_;
  client* only_ = nullptr;  // when there is one, which is the usual case
  std::size_t turn_ = 0;
  client* current_ = nullptr;  // is_shared() knows its memory, and output goes to it
  output::mark prints_to_[2];
  std::uint64_t float_mode_ = 0;
  lingerer linger_;
  // In a shared pool only: the berth; and if members come by notes, their socket, and the alarm
  // that wakes this worker.
  berth<>* berth_ = nullptr;
  int notes_ = -1;
  ino_t notes_number_ = 0;  // of the socket: a body may close it, and open another file there
  const alarm<>* wakes_ = nullptr;
  std::uint32_t notes_seen_ = 0;
  std::uint32_t served_ = 0;  // the value of berth::serving
  std::uint64_t turn_since_ns_ = 0;
};

worker_process::worker_process(const own_start& start) : berth_(start.turns) {
  const introduction& a = start.about->about;
  client& c = attach(*start.about, start.files);
  turn_to(c);
  c.pass(chaos_step::started, "worker.started");
  if (!c.is_confined()) return;
  kept_output own;
  const char* why = c.load_all(*start.known);
  own.put_back();
  is_confined = true;
  if (why == nullptr) why = confine({c.bell(), a.heap_begin, a.heap_bytes, a.data_bytes_max});
  c.forbid(why);
}

// Returns when there is a record.
client& worker_process::await() noexcept {
  if (has_notes()) read_notes();
  if (client* c = next_client()) return *c;
  const std::uint64_t begin_ns = monotonic_ns();
  enum { polling, lingering, sleeping } now = polling;
  for (;;) {
    if (client* c = look_for_task()) {
      if (now == lingering) linger_.end();
      return *c;
    }
    if (berth_ != nullptr) be_free();
    const std::uint64_t waited_ns = monotonic_ns() - begin_ns;
    std::uint64_t spin_ns = 0;
    for (const auto& c : clients_) {
      if (c->is_stopped()) leave();
      c->tell_idle(waited_ns);
      spin_ns = larger<std::uint64_t>(spin_ns, c->about().spin_ns);
    }
    // Tasks that the host may have posted since the last look were not begun: they go to the next
    // process.
    if (waited_ns >= idle_ns_max) leave();
    if (linger_.is_wanted()) spin_ns = smaller(spin_ns, short_spin_ns);
    if (waited_ns < spin_ns) continue;
    if (now == polling) now = linger_.begin(&switches_of_thread) ? lingering : sleeping;
    const bool is_over = waited_ns >= spin_ns + lingerer::span_ns(spin_ns);
    if (now == lingering &&
        (is_over || !linger_.offer(&monotonic_ns, &sched_yield, &switches_of_thread)))
      now = sleeping;
    if (now == sleeping) sleep(idle_ns_max == no_deadline ? no_deadline : begin_ns + idle_ns_max);
  }
}

// be_free() is for a worker of a shared pool that has had nothing to do for a while.
void worker_process::be_free() noexcept {
  if (!has_notes()) return end_turn();
  serve_only(0);
  read_notes();
}

void worker_process::sleep(std::uint64_t until_ns) noexcept {
  const std::uint32_t rings = has_notes() ? wakes_->set() : 0;
  for (const auto& c : clients_) c->its_lane().fall_asleep();
  fault_at("worker.fall_asleep");
  LEV_DCHECK(clients_.size() <= members_max);
  bool may_sleep = !has_notes() || !berth_->has_news(notes_seen_);
  for (const auto& c : clients_) may_sleep = c->may_sleep() && may_sleep;
  const auto& rung = has_notes() ? wakes_->rings : only_->its_lane().asleep;
  if (may_sleep) sleep_while(rung, has_notes() ? rings : 1, until_ns, sleepers::anywhere);
  fault_at("worker.woken");
  for (const auto& c : clients_) c->its_lane().wake_up();
}

void worker_process::run_shared(client& c) noexcept {
  LEV_DCHECK(c.number() < members_max && !c.is_confined());
  serve_only(c.number() + 1);
  if (berth_->has_news(notes_seen_)) return;
  if (berth_->has_worked.load(memory_order_relaxed) == 0)
    berth_->has_worked.store(1, memory_order_relaxed);
  if (&c != current_) {
    if (current_ != nullptr) current_->turn_away();
    turn_to(c);
  }
  run_task(c);
}

void worker_process::turn_to(client& c) noexcept {
  const introduction& about = c.about();
  adopt_zone(about.heap_begin, about.heap_begin + about.heap_bytes);
  c.prints().use(prints_to_);
  current_ = &c;
  worker_columns = &c;
}

// run_in_turn() is for one of several workers of its number. A turn for which another worker waits
// lasts this long, because a change of turns costs two process switches.
void worker_process::run_in_turn(client& c) noexcept {
  constexpr std::uint64_t turn_ns = 1'000'000;
  if (served_ == 0) wait_for_turn();
  run_task(c);
  if (berth_->is_wanted() && monotonic_ns() - turn_since_ns_ >= turn_ns) end_turn();
}

// The worker looks at the word now and then: the body of a worker that has the turn may have
// overwritten it, and with it that this one waits, so that nobody wakes this one.
void worker_process::wait_for_turn() noexcept {
  constexpr std::uint64_t look_ns = 100'000'000;
  const std::uint32_t member = current_->number();
  for (bool others_wait = false; !berth_->try_take(member, others_wait);) {
    const std::uint32_t now = berth_->want();
    current_->turn_away();
    if (now != 0) sleep_while(berth_->serving, now, monotonic_ns() + look_ns, sleepers::anywhere);
    others_wait = true;  // the worker that is woken cannot know
  }
  served_ = member + 1;
  turn_since_ns_ = monotonic_ns();
}

// The waiting worker gets a moment to take its turn: it must wake up first.
void worker_process::end_turn() noexcept {
  constexpr std::uint64_t moment_ns = 100'000;
  if (std::exchange(served_, 0) == 0 || !berth_->leave()) return;
  wake_sleeper(berth_->serving, sleepers::anywhere);
  const std::uint64_t end_ns = monotonic_ns() + moment_ns;
  while (berth_->is_free() && monotonic_ns() < end_ns) sched_yield();
}

// A worker that fails to turn is doomed: its keeper is about to kill it. Or a body has overwritten
// the berth: then nobody could end the worker's tasks, or know whose they are, so it ends itself.
// So does one whose mark of doom is a body's, and that nobody kills.
void worker_process::serve_only(std::uint32_t served) noexcept {
  LEV_DCHECK(berth_ != nullptr && served <= members_max);
  if (served == served_ && berth_->names(served)) return;
  while (!berth_->turn(served_, served)) {
    if (!berth_->is_doomed(served_)) {
      berth_->restore(served_);
      leave();
    }
    poll(nullptr, 0, kill_ms_max);
    _exit(1);
  }
  served_ = served;
}

void worker_process::read_notes() noexcept try {
  const std::uint32_t now = berth_->notes.load(memory_order_acquire);  // Pairs with announce_note()
  if (now == notes_seen_) return;
  if (number_of(notes_) != notes_number_) {
    serve_only(0);  // it is no member's affair: no task of any has begun
    leave();
  }
  for (;;) {
    note n;
    int files[file_of::note_count];
    const ssize_t got = receive_message(notes_, n, files);
    if (got == 0) leave();
    if (got != sizeof n) break;
    if (n.what == note::attach) {
      serve_only(n.member + 1);  // a death is then that member's, whatever is wrong with its memory
      client& c = attach(n, files);
      c.pass(chaos_step::started, "worker.started");
      c.arrive();
      serve_only(0);
    } else if (n.what == note::detach) {
      detach(n.member);
    } else {
      serve_only(n.member + 1);  // it is that member's affair
      leave();
    }
  }
  notes_seen_ = now;
} catch (...) {
  leave(1);  // no memory: another process may have more luck
}

client& worker_process::attach(const note& n, int* files) {
  detach(n.member);  // its earlier lane, if it had one
  const introduction& a = n.about;
  using of = file_of;
  // Without output it prints where its keeper does.
  const bool has_output = has_notes() || files[of::output] >= 0;
  const bool has_files = std::find(files, files + of::own_count, -1) == files + of::own_count &&
                         files[of::lane] >= 0 &&
                         (!has_output || (files[of::output] >= 0 && files[of::error] >= 0));
  void* mapped = has_files
                     ? mmap(nullptr, sizeof(board), PROT_READ, MAP_SHARED, files[of::board], 0)
                     : MAP_FAILED;
  if (mapped == MAP_FAILED || (!has_heap(a) && !map_at(a.heap_begin, files[of::heap], a.heap_bytes,
                                                       a.level != lev::isolation::confined)))
    leave(1);
  auto* plan = reinterpret_cast<fault_plan*>(a.faults);
  if (plan != nullptr) arm_faults(plan, plan);
  if (fault_at("worker.map_lane") || !map_at(n.lane_begin, files[of::lane], a.lane_bytes, true))
    leave(1);
  keep_from_forks(a.heap_begin, a.heap_bytes);
  keep_from_forks(n.lane_begin, a.lane_bytes);
  for (const int i : {of::heap, of::board, of::lane}) close(files[i]);
  clients_.push_back(std::make_unique<client>(n, files, *static_cast<const board*>(mapped)));
  note_only();
  return *clients_.back();
}

void worker_process::detach(std::uint32_t member) noexcept {
  std::size_t i = 0;
  while (i < clients_.size() && clients_[i]->number() != member) ++i;
  if (i == clients_.size()) return;
  LEV_DCHECK(clients_[i].get() != only_ || clients_.size() == 1);
  if (served_ == member + 1) serve_only(0);
  std::unique_ptr<client> gone = std::move(clients_[i]);
  clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
  note_only();
  const introduction a = gone->about();
  const auto lane_begin = reinterpret_cast<std::uintptr_t>(&gone->its_lane());
  auto* its_board = const_cast<board*>(&gone->its_board());
  if (gone.get() == current_) {
    adopt_zone(0, 0);
    drop_output();
    prints_to_[0] = prints_to_[1] = {};
    current_ = nullptr;
    worker_columns = nullptr;
  }
  if (a.faults != 0) arm_faults(nullptr, nullptr);
  close(gone->bell());
  gone.reset();  // closes libraries, whose last code may use memory that is unmapped next
  munmap(reinterpret_cast<void*>(lane_begin), a.lane_bytes);
  if (!has_heap(a)) munmap(reinterpret_cast<void*>(a.heap_begin), a.heap_bytes);
  munmap(its_board, sizeof(board));
}

}  // namespace

[[noreturn]] void serve_one(const own_start& start) noexcept {
  static worker_process* self = new worker_process(start);  // outlives atexit handlers
  self->run();
}

[[noreturn]] void serve_members(berth<>& served, const alarm<>& wakes, int notes) noexcept {
  static worker_process* self = new worker_process(served, wakes, notes);
  self->run();
}

void call_at_end(void (*hook)()) noexcept {
  at_end = hook;
}

}  // namespace lev::processes

namespace lev {

void retire_worker() noexcept {
  processes::is_retiring = true;
}

void retire_worker_after(std::uint64_t idle_ns) noexcept {
  constexpr std::uint64_t years_30 = 1'000'000'000'000'000'000;  // added to a clock's time
  processes::idle_ns_max = idle_ns == 0 ? no_deadline : smaller(idle_ns, years_30);
}

int worker_index() noexcept {
  return worker_number();
}

}  // namespace lev
