// The machine `sim`: virtual time on one thread. See README.md beside this file.
//
// Every worker is a context, the host program is the thread's own. An actor runs until it polls,
// waits, copies or passes the cost of a task; then the one with the earliest time goes on. Prices
// come from a machine file. Polls have a little seeded jitter, so that a seed is a schedule, and a
// seeded number orders equal times. Nothing else decides, so equal seeds give equal runs.
//
// If every actor sleeps and none has a deadline, nothing will ever happen: the host waits for
// something that cannot come, or a wake-up was lost. On real threads that would hang; here the
// host's wait ends with would_deadlock.
#include "machine/machine.hpp"
#include "machine/store_memory.hpp"

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "machines/sim/actors.hpp"
#include "machines/sim/prices.hpp"
#include "sync/exiting.hpp"

#include <leveret/status.hpp>

#include <memory>
#include <new>
#include <string>

namespace lev::sim {

constexpr std::size_t stack_bytes = 8 << 20;  // as a thread has; committed as it is used

class sim_machine final : public machine {
 public:
  sim_machine(const config& c, const cell::machine_file& file) : prices_(c, file), seed_(c.seed) {}

  capability capabilities() const noexcept override {
    return {false, true, true, false, prices_.hosts_work()};
  }

  bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept override;
  void join() noexcept override {
    for (std::uint32_t i = 1; i < all_.count(); ++i) {
      while (!all_[i].is_finished) relax();
    }
  }

  std::uint64_t now_ns() noexcept override {
    return all_.count() == 0 ? 0 : prices_.ns_of(me().time);
  }
  bool is_stuck() noexcept override { return is_stuck_; }
  void relax() noexcept override {
    const cycle_count turn = prices_.poll(current_ == 0);
    pass_time(turn + me().random.below(static_cast<std::uint32_t>(turn / 4 + 1)));
  }
  void yield_core() noexcept override { pass_time(prices_.offer_core()); }
  void wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns) noexcept override;
  void wake_word(atomic<std::uint32_t>& word) noexcept override {
    if (all_.count() != 0) all_.wake(&word, smaller(me().time + prices_.wake(), time_max));
  }

  void* open_store(std::size_t bytes) noexcept override { return map_store(bytes); }
  void close_store(void* store, std::size_t bytes) noexcept override { unmap_store(store, bytes); }

  void get(std::uint32_t tag, void* local, const argument& remote) noexcept override {
    copy(tag, local, remote, true);
  }
  void put(std::uint32_t tag, const void* local, const argument& remote) noexcept override {
    copy(tag, const_cast<void*>(local), remote, false);
  }
  void wait_tag(std::uint32_t tag) noexcept override {
    const cycle_count done = me().tag_done[tag % tags];
    if (done > me().time) pass_time(done - me().time);
  }
  bool is_tag_done(std::uint32_t tag) noexcept override {
    return me().tag_done[tag % tags] <= me().time;
  }
  bool is_in_worker() const noexcept override { return current_ != 0; }
  void cost(std::uint64_t cycles) noexcept override { pass_time(smaller(cycles, cost_max)); }
  void pay_switch() noexcept override { pass_time(prices_.context_switch()); }
  std::uint64_t schedule_hash() const noexcept override { return hash_; }

 private:
  struct launch {
    sim_machine* home;
    std::uint32_t worker;
  };
  static void run(void* argument) {
    const launch l = *static_cast<launch*>(argument);
    l.home->entry_(l.home->context_, l.worker);
    actor& from = l.home->me();
    from.is_finished = true;
    actor& to = l.home->take_next();
    set_current_actor(to.bound);
    context::finish_to(from.own, to.own);
  }

  actor& me() noexcept { return all_[current_]; }
  void copy(std::uint32_t tag, void* local, const argument& remote, bool to_local) noexcept;
  unsigned engines_at_work(cycle_count at) noexcept;
  void pass_time(cycle_count cycles) noexcept;
  actor& take_next() noexcept;
  void go_on(actor& a) noexcept;
  void switch_to(actor& from, actor& to) noexcept;

  prices prices_;
  const std::uint64_t seed_;
  actors all_;  // the host, then the workers; the running one is not in the heap
  std::unique_ptr<launch[]> launches_;
  std::uint32_t current_ = 0;
  cycle_count now_ = 0;  // the time of the actor that ran last
  std::uint64_t hash_ = 0;
  bool is_stuck_ = false;
  bool is_watched_ = false;
  worker_entry entry_ = nullptr;
  void* context_ = nullptr;
};

bool sim_machine::start(std::uint32_t workers, worker_entry entry, void* context) noexcept {
  launches_.reset(new (std::nothrow) launch[workers]);
  if (launches_ == nullptr || !all_.open(workers + 1, seed_)) return false;
  entry_ = entry;
  context_ = context;
  for (std::uint32_t i = 0; i < workers; ++i) {
    launches_[i] = {this, i};
    actor& a = all_[i + 1];
    if (!a.own.open(stack_bytes, &run, &launches_[i])) {
      for (std::uint32_t k = i + 1; k <= workers; ++k) all_[k].is_finished = true;
      return false;
    }
    a.order = a.random.next();
    all_.insert(a);
  }
  return true;
}

// The turn of an actor begins.
void sim_machine::go_on(actor& a) noexcept {
  is_stuck_ = false;
  current_ = a.index;
  now_ = larger(now_, a.time);
  hash_ = (hash_ ^ (a.time + (std::uint64_t{a.index} << 48))) * 0x9e3779b97f4a7c15u;
  hash_ ^= hash_ >> 29;
}

// Takes the actor that goes on: the earliest one, where a sleeper counts from its deadline, or the
// host if there is none.
actor& sim_machine::take_next() noexcept {
  const bool is_stuck = all_.is_empty();
  actor& to = is_stuck ? all_[0] : all_.pop();
  if (is_stuck) to.time = now_;
  go_on(to);
  is_stuck_ = is_stuck;
  return to;
}

void sim_machine::switch_to(actor& from, actor& to) noexcept {
  if (&from == &to) return;
  from.bound = current_actor();
  set_current_actor(to.bound);
  context::switch_to(from.own, to.own);
}

void sim_machine::pass_time(cycle_count cycles) noexcept {
  if (!is_watched_) [[unlikely]] {  // the first call after the runtime was opened
    is_watched_ = true;
    watch_exit(exit_watcher::runtime);
  }
  actor& self = me();
  self.time = smaller(self.time + cycles, time_max);
  self.order = self.random.next();
  if (all_.is_empty() || actors::before(self, all_.first())) return go_on(self);
  actor& to = all_.exchange_first(self);
  go_on(to);
  switch_to(self, to);
}

void sim_machine::wait_word(atomic<std::uint32_t>& word, std::uint32_t expected,
                            std::uint64_t deadline_ns) noexcept {
  if (word.load(memory_order_relaxed) != expected) return;
  actor& self = me();
  all_.begin_sleep(self, &word);
  self.order = self.random.next();
  if (deadline_ns == no_deadline) {
    self.time = never;
  } else {
    self.time = larger(prices_.cycles_of(deadline_ns), self.time);
    all_.insert(self);
  }
  switch_to(self, take_next());
  all_.end_sleep(self);
}

unsigned sim_machine::engines_at_work(cycle_count at) noexcept {
  unsigned count = 1;
  for (std::uint32_t i = 0; i < all_.count(); ++i)
    if (i != current_ && all_[i].engine_done > at) ++count;
  return count;
}

void sim_machine::copy(std::uint32_t tag, void* local, const argument& remote,
                       bool to_local) noexcept {
  copy_rows(local, remote, to_local);
  actor& self = me();
  cycle_count& tag_done = self.tag_done[tag % tags];
  const cycle_count at = self.time;
  const unsigned engine = current_ == 0 ? all_.count() - 1 : current_ - 1;
  const prices::copied c = prices_.copy(engine, to_local, remote, at, engines_at_work(at));
  // Transfers of one tag follow each other.
  const cycle_count behind = tag_done > c.issued ? tag_done - c.issued : 0;
  tag_done = smaller(c.done + behind, time_max);
  self.engine_done = larger(self.engine_done, tag_done);
  pass_time(c.issued - at);
}

}  // namespace lev::sim

namespace lev {

namespace {

// An error of a file begins with its path and ends with what is wrong: of a long one, the end is
// told.
[[noreturn]] void refuse_file(const std::string& what) {
  constexpr std::size_t told_max = 220;
  std::string told = what;
  if (what.size() > told_max) {
    std::size_t from = what.size() - told_max;
    while (from < what.size() && is_inside_character(what[from])) ++from;
    told = "..." + what.substr(from);
  }
  throw error(status::bad_config, -1, ("config.sim_machine: " + told).c_str());
}

// Takes from the file the number of workers, their stores, and whether the host runs tasks. A
// configuration that names no file stays as it is. Returns the file.
std::shared_ptr<const void> settle_sim(config& c) {
  try {
    auto file = std::make_shared<const cell::machine_file>(sim::file_of(c));
    if (c.sim_machine == nullptr) return file;
    const cell::facts facts(*file);
    using cell::fact;
    if (c.workers == 0) c.workers = static_cast<int>(facts.number(fact::spes));
    const std::int64_t reserved = facts.whole(fact::kernel_kib) + facts.whole(fact::stack_kib);
    const std::int64_t store_kib = facts.whole(fact::store_kib) - reserved;
    c.local_store_bytes = smaller(c.local_store_bytes, static_cast<std::size_t>(store_kib) << 10);
    if (facts.number(fact::ppe_runs_tasks) != 0) return file;
    if (c.wait == wait_policy::help) c.wait = wait_policy::park;
    if (c.full == when_full::help) c.full = when_full::wait;
    return file;
  } catch (const cell::error& e) {
    refuse_file(e.what());
  }
}

machine* make_sim(const config& c, const void* file) {
  return new sim::sim_machine(c, *static_cast<const cell::machine_file*>(file));
}

}  // namespace

extern const machine_kind sim_kind;
const machine_kind sim_kind = {"sim", []() noexcept -> const char* { return nullptr; }, &make_sim,
                               false, &settle_sim};

}  // namespace lev
