// The pipeline itself, from submit to wait: the files of src/runtime, src/worker and src/flow as
// they are, on the checker's atomics (seam/pipeline). Workers and hosts are the checker's threads;
// this file is their machine. Included once per program.
//
// The checker sees the order of all atomic operations, and races on what task bodies touch; not on
// the slots' plain fields.
#pragma once

#include "explore.hpp"

#include "runtime/runtime_state.hpp"
#include "runtime/wait.hpp"
#include "task/plain.hpp"

#include <memory>

namespace model {

namespace detail = lev::detail;

inline bool copies_ahead = false;  // chosen by each scenario

class place final : public lev::machine {
 public:
  lev::capability capabilities() const noexcept override {
    return {
        .in_place = true, .async_copies = copies_ahead, .virtual_time = true, .many_hosts = true};
  }
  bool start(std::uint32_t workers, worker_entry entry, void* context) noexcept override {
    workers_ = workers;
    entry_ = entry;
    context_ = context;
    return true;
  }
  void join() noexcept override {
    while (ended_.load(std::memory_order_acquire) != workers_) relax();
  }
  std::uint64_t now_ns() noexcept override { return now_ += 1'000; }
  void relax() noexcept override { env::pause(); }
  void yield_core() noexcept override { env::pause(); }
  void wait_word(lev::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline) noexcept override {
    sleepers_.wait_word(word, expected, deadline);
  }
  void wake_word(lev::atomic<std::uint32_t>& word) noexcept override { sleepers_.wake_word(word); }
  void* open_store(std::size_t) noexcept override { return nullptr; }
  void close_store(void*, std::size_t) noexcept override {}
  void get(std::uint32_t, void*, const lev::argument&) noexcept override {}
  void put(std::uint32_t, const void*, const lev::argument&) noexcept override {}
  void wait_tag(std::uint32_t) noexcept override {}
  bool is_tag_done(std::uint32_t) noexcept override { return true; }
  void cost(std::uint64_t) noexcept override {}

  // The life of worker `index`.
  void work(std::uint32_t index) {
    entry_(context_, index);
    ended_.fetch_add(1, std::memory_order_release);
  }
  sleeper& sleepers() { return sleepers_; }

 private:
  std::uint32_t workers_ = 0;
  worker_entry entry_ = nullptr;
  void* context_ = nullptr;
  std::uint64_t now_ = 0;
  sleeper sleepers_;
  atomic<std::uint32_t> ended_;
};

inline lev::machine* make_place(const lev::config&, const void*) noexcept {
  return new place;
}
inline const char* is_available() noexcept {
  return nullptr;
}
constexpr lev::machine_kind this_kind{"model", &is_available, &make_place};

}  // namespace model

// Stand-ins for the rest of the library.
namespace lev {

constinit procedure_table procedures;
const machine_kind* machine_kind_at(unsigned) noexcept {
  return &model::this_kind;
}
const machine_kind* find_machine_kind(const char*) noexcept {
  return &model::this_kind;
}
void set_current_actor(void*) noexcept {}
thread_notes swap_notes(const thread_notes&) noexcept {
  return {};
}
void forget_last_runtime() noexcept {}
unsigned available_cores() noexcept {
  return 2;
}
bool asymmetric_fences() noexcept {
  return model::env::asymmetric();
}
void heavy_fence() noexcept {
  model::env::heavy_fence();
}

procedure_id register_own(const procedure_info&) {
  return 0;
}

namespace detail {

procedure_id register_or_throw(const procedure_info&) {
  return 0;
}

// The checker's threads are the workers and then the hosts, in order. A host is bound when it first
// calls in (bind.cpp).
void begin_service(participant&) noexcept {}
participant* here(runtime_state& c) noexcept {
  const std::uint32_t index = rl::thread_index();
  std::uint32_t used = c.participants_used.load(memory_order_relaxed);
  while (used < index + 1 &&
         !c.participants_used.compare_exchange_strong(used, index + 1, memory_order_seq_cst)) {
  }
  try_bind(c, c.participants[index]);
  return &c.participants[index];
}
participant* closer(runtime_state& c) noexcept {
  return here(c);
}
// There is one runtime (guest.cpp).
bool is_guest(const runtime_state&, const participant&) noexcept {
  return false;
}
bool is_in_task_or_bulk(const runtime_state&, const participant& self) noexcept {
  return self.running != nullptr || self.open_joins != 0;
}
const participant* poster_of(const runtime_state&, const participant& self) noexcept {
  return self.running != nullptr ? &self : nullptr;
}
bool await(runtime_state& c, participant& self, awaited& what, std::uint64_t deadline_ns,
           wait_policy how, giving_up when) noexcept {
  return c.crew->await(self, what, deadline_ns, how, when);
}
void announce_open(runtime_state&) {}
void announce_close(runtime_state&) noexcept {}

}  // namespace detail
}  // namespace lev

namespace model {

// A runtime with `Workers` workers; `Hosts` threads call Derived::host(index). Tasks call
// Derived::body(task), a task over a range Derived::loop(range).
template <class Derived, int Workers, int Hosts>
struct pipeline : scenario<Derived, Workers + Hosts> {
  static constexpr bool is_bounded = false;
  static constexpr lev::wait_policy wait_policy = lev::wait_policy::park;
  static constexpr lev::when_full when_full = lev::when_full::wait;
  static constexpr std::uint32_t tickets = 4;
  static constexpr std::uint32_t depth = 1;  // above 1 with copies that run ahead
  static constexpr bool is_straight = false;
  static constexpr bool submits_typed = true;  // where the runtime is straight

  void before() {
    running = static_cast<Derived*>(this);
    describe(1, lev::kind::value, [](const lev::call& c) {
      running->body(detail::parameter<unsigned>::unpack(c.arguments[0]));
      return running->code;
    });
    describe(2, lev::kind::range, [](const lev::call& c) {
      running->loop(detail::parameter<lev::range>::unpack(c.arguments[0]));
      return 0;
    });
    lev::procedures.count = 3;
    lev::config c;
    c.workers = Workers;
    c.host_threads = Hosts;
    c.tickets = Derived::tickets;
    c.wait = Derived::wait_policy;
    c.full = Derived::when_full;
    c.depth = Derived::depth;
    c.spin_ns = 0;
    c.dice_threshold = 1;
    copies_ahead = Derived::depth > 1;
    core = detail::open(c);
    core->is_straight = Derived::is_straight;
    core->straight_procedures =
        Derived::is_straight && core->has_heavy_fence ? lev::procedure_count_max + 1 : 0;
    core->runs_plainly.store(Derived::is_straight ? 1 : 0, std::memory_order_relaxed);
  }
  void thread(unsigned index) {
    if (index < Workers) return static_cast<place*>(core->machine)->work(index);
    running->host(index - Workers);
    if (hosts_ended.fetch_add(1) + 1 == Hosts) detail::close(core);
  }
  void body(unsigned) {}
  void loop(lev::range) {}

  std::uint64_t submit(unsigned task, const lev::options* o = nullptr, bool detached = false) {
    const lev::argument a = detail::parameter<unsigned>::pack(task);
    return submit({1, 1, 0, 0, 0, 0, &a}, o, detached);
  }
  std::uint64_t submit_range(lev::range r, bool detached) {
    const lev::argument a = detail::parameter<lev::range>::pack(r);
    return submit({2, 1, 0, 1, 0, 0, &a}, nullptr, detached);
  }
  std::uint64_t submit(const detail::draft& d, const lev::options* o, bool detached) {
    lev::refusal why;
    const std::uint64_t id = try_submit(d, o, detached, &why);
    require(id != 0, why.message);
    return id;
  }
  std::uint64_t try_submit(const detail::draft& d, const lev::options* o, bool detached,
                           lev::refusal* why) {
    if (!Derived::is_straight || !Derived::submits_typed)
      return detail::try_submit(core, d, o, detached, why);
    try {
      return detail::submit(core, d, o, detached);
    } catch (const lev::error& e) {
      why->code = e.code();
      return 0;
    }
  }
  void wait(std::uint64_t id, lev::status expected = lev::status::ok) {
    require(detail::wait_one(core, id, lev::no_timeout).code == expected, "the outcome");
  }
  void wait_with_time_outs(std::uint64_t id) {
    lev::status s;
    while ((s = detail::wait_one(core, id, 2'000).code) == lev::status::timed_out) env::pause();
    require(s == lev::status::ok, "the outcome");
  }
  void wait_for_completion() {
    detail::wait_quiescent(*core, *detail::here(*core), lev::no_deadline);
  }

  // A body says that it has started, or waits until another one has, without telling the runtime.
  void start(unsigned task) {
    started[task].store(1, std::memory_order_relaxed);
    for (auto& body : bodies) body.unpark(place_of());
  }
  void wait_started(unsigned task) {
    while (started[task].load(std::memory_order_relaxed) == 0) {
      bodies[rl::thread_index()].park(place_of(), sleeper::never);
    }
  }

  static inline Derived* running;
  detail::runtime_state* core = nullptr;
  int code = 0;  // what bodies return
  atomic<std::uint32_t> hosts_ended;
  atomic<std::uint32_t> started[3];
  lev::parker<env> bodies[Workers + Hosts];

 private:
  sleeper& place_of() { return static_cast<place*>(core->machine)->sleepers(); }

  static void describe(unsigned id, lev::kind what, lev::body run) {
    lev::procedure_entry& e = lev::procedures.entries[id];
    e.kinds[0] = what;
    e.info.name = e.name;
    e.info.kinds = e.kinds;
    e.info.kind_count = 1;
    e.info.run = run;
    lev::plan_plain(e);
  }
};

}  // namespace model
