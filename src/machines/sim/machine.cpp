// The machine `sim`: virtual time on one thread. See README.md beside this file.
//
// Every worker is a context, the host program is the thread's own. An actor runs until it polls,
// waits, copies or passes the cost of a task; then the one with the earliest time goes on. Times
// have unit costs plus a little seeded jitter, so that a seed is a schedule; equal times are
// ordered by a seeded number. Nothing else decides, so equal seeds give equal runs.
//
// If every actor sleeps and none has a deadline, nothing will ever happen: the host waits for what
// cannot come, or a wake-up was lost. On real threads that would hang, here the host's wait ends
// with would_deadlock.
#include "machine/machine.hpp"
#include "machine/store_memory.hpp"

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "base/random.hpp"
#include "context/context.hpp"

#include <memory>
#include <new>

namespace lev::sim {

// Unit costs in cycles of one nanosecond. The parameters of a Cell come later; these only have its
// order of magnitude.
constexpr std::uint64_t poll_cycles = 100;
constexpr std::uint64_t poll_jitter_cycles = 32;
constexpr std::uint64_t yield_cycles = 4'670;        // a switch of the host (SLED: 14 us for 3)
constexpr std::uint64_t wake_cycles = 400;           // PPE to local store: half of TPC's 800
constexpr std::uint64_t copy_issue_cycles = 60;      // MFC issue
constexpr std::uint64_t copy_latency_cycles = 1000;  // CellMT Figure 2: 312 ns for 1 KB
constexpr std::uint64_t copy_bytes_per_cycle = 8;    // 25.6 GB/s of a chip at 3.2 GHz
constexpr std::uint32_t tags = 512;                  // of the pipeline and of tasks; a Cell has 32
constexpr std::size_t stack_bytes = 8 << 20;         // as a thread has; committed as it is used

struct actor {
  enum class condition { ready, asleep, finished };
  context flow;
  condition now = condition::ready;
  std::uint64_t time = 0;      // when it goes on; asleep: its deadline
  std::uint64_t order = 0;     // among equal times
  const void* word = nullptr;  // asleep: what it waits for
  void* bound = nullptr;       // current_actor() while it runs
  std::uint64_t tag_done[tags] = {};
};

class sim_machine final : public machine {
 public:
  explicit sim_machine(const config& c) noexcept : random_(c.seed) {}

  capability capabilities() const noexcept override { return {false, true, true, false}; }

  bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept override;
  void join() noexcept override {
    for (std::uint32_t i = 1; i < count_; ++i) {
      while (actors_[i].now != actor::condition::finished) relax();
    }
  }

  std::uint64_t now_ns() noexcept override { return count_ == 0 ? 0 : me().time; }
  bool is_stuck() noexcept override { return is_stuck_; }
  void relax() noexcept override { pass_time(poll_cycles + random_.below(poll_jitter_cycles)); }
  void yield_core() noexcept override { pass_time(yield_cycles); }
  void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns) noexcept override;
  void wake_word(atomic<std::uint32_t>& word) noexcept override;

  void* open_store(std::size_t bytes) noexcept override { return map_store(bytes); }
  void close_store(void* store, std::size_t bytes) noexcept override { unmap_store(store, bytes); }

  void get(std::uint32_t tag, void* local, const argument& remote) noexcept override {
    copy(tag, local, remote, true);
  }
  void put(std::uint32_t tag, const void* local, const argument& remote) noexcept override {
    copy(tag, const_cast<void*>(local), remote, false);
  }
  void wait_tag(std::uint32_t tag) noexcept override {
    const std::uint64_t done = me().tag_done[tag % tags];
    if (done > me().time) pass_time(done - me().time);
  }
  bool is_tag_done(std::uint32_t tag) noexcept override {
    return me().tag_done[tag % tags] <= me().time;
  }
  void cost(std::uint64_t cycles) noexcept override { pass_time(cycles); }

 private:
  struct launch {
    sim_machine* home;
    std::uint32_t worker;
  };
  static void run(void* argument) {
    const launch l = *static_cast<launch*>(argument);
    l.home->entry_(l.home->context_, l.worker);
    l.home->me().now = actor::condition::finished;
    actor& from = l.home->me();
    actor& to = l.home->choose();
    l.home->current_ = static_cast<std::uint32_t>(&to - l.home->actors_.get());
    set_current_actor(to.bound);
    context::finish_to(from.flow, to.flow);
  }

  actor& me() noexcept { return actors_[current_]; }
  void copy(std::uint32_t tag, void* local, const argument& remote, bool to_local) noexcept;
  void pass_time(std::uint64_t cycles) noexcept {
    me().time += cycles;
    me().order = random_.next();
    yield();
  }
  actor& choose() noexcept;
  void yield() noexcept;

  random_source random_;
  std::unique_ptr<actor[]> actors_;  // the host, then the workers
  std::unique_ptr<launch[]> launches_;
  std::uint32_t count_ = 0;
  std::uint32_t current_ = 0;
  std::uint64_t now_ = 0;  // the time of the actor that ran last
  bool is_stuck_ = false;
  worker_entry entry_ = nullptr;
  void* context_ = nullptr;
};

bool sim_machine::start(std::uint32_t workers, worker_entry entry, void* context) noexcept {
  actors_.reset(new (std::nothrow) actor[workers + 1]);
  launches_.reset(new (std::nothrow) launch[workers]);
  if (actors_ == nullptr || launches_ == nullptr) return false;
  entry_ = entry;
  context_ = context;
  for (std::uint32_t i = 0; i < workers; ++i) {
    launches_[i] = {this, i};
    if (!actors_[i + 1].flow.open(stack_bytes, &run, &launches_[i])) return false;
    actors_[i + 1].order = random_.next();
  }
  count_ = workers + 1;
  return true;
}

// The actor that goes on: the earliest, a sleeper counting from its deadline.
actor& sim_machine::choose() noexcept {
  actor* best = nullptr;
  for (std::uint32_t i = 0; i < count_; ++i) {
    actor& a = actors_[i];
    if (a.now == actor::condition::finished ||
        (a.now == actor::condition::asleep && a.time == no_deadline))
      continue;
    if (best == nullptr || a.time < best->time || (a.time == best->time && a.order < best->order))
      best = &a;
  }
  is_stuck_ = best == nullptr;
  if (is_stuck_) {
    best = &actors_[0];  // the host
    best->time = now_;
  }
  best->now = actor::condition::ready;
  now_ = larger(now_, best->time);
  return *best;
}

void sim_machine::yield() noexcept {
  actor& from = me();
  actor& to = choose();
  if (&from == &to) return;
  from.bound = current_actor();
  current_ = static_cast<std::uint32_t>(&to - actors_.get());
  set_current_actor(to.bound);
  context::switch_to(from.flow, to.flow);
}

void sim_machine::wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                            std::uint64_t deadline_ns) noexcept {
  if (word.load(memory_order_relaxed) != expected) return;
  actor& self = me();
  const std::uint64_t started = self.time;
  self.word = &word;
  self.now = actor::condition::asleep;
  self.time = deadline_ns == no_deadline ? no_deadline : larger(deadline_ns, started);
  self.order = random_.next();
  yield();
  self.word = nullptr;
}

void sim_machine::wake_word(atomic<std::uint32_t>& word) noexcept {
  const std::uint64_t at = me().time + wake_cycles;
  for (std::uint32_t i = 0; i < count_; ++i) {
    actor& a = actors_[i];
    if (a.now != actor::condition::asleep || a.word != &word) continue;
    a.now = actor::condition::ready;
    a.time = smaller(a.time, at);
  }
}

void sim_machine::copy(std::uint32_t tag, void* local, const argument& remote,
                       bool to_local) noexcept {
  copy_rows(local, remote, to_local);
  actor& self = me();
  const std::uint64_t bytes = remote.row_bytes * remote.rows;
  std::uint64_t& done = self.tag_done[tag % tags];
  done = larger(done, self.time + copy_latency_cycles) + bytes / copy_bytes_per_cycle;
  pass_time(copy_issue_cycles);
}

}  // namespace lev::sim

namespace lev {

extern const machine_kind sim_kind;
const machine_kind sim_kind = {
    "sim", []() noexcept -> const char* { return nullptr; },
    [](const config& c) noexcept -> machine* { return new (std::nothrow) sim::sim_machine(c); }};

}  // namespace lev
