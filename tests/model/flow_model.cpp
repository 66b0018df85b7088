// The steps behind a completion, on the code itself: dependants start once and after all their
// predecessors, mutexes are handed over, pieces are joined, and a barrier returns neither early nor
// never.
#include "pipeline.hpp"

namespace {

using namespace model;

// Two tasks after one that ends meanwhile: both start, and see its output.
template <int Workers>
struct fan_out : pipeline<fan_out<Workers>, Workers, 1> {
  void host(unsigned) {
    const std::uint64_t first = this->submit(0);
    lev::options after;
    after.after_id(first);
    const std::uint64_t second = this->submit(1, &after);
    const std::uint64_t third = this->submit(2, &after);
    this->wait(third);
    this->wait(second);
    this->wait(first);
  }
  void body(unsigned task) {
    if (task == 0) output.set(5);
    if (task != 0) require(output.get() == 5, "its predecessor has ended");
  }
  plain<int> output;
};

// Two hosts add a task after the same one, which ends meanwhile.
struct two_adders : pipeline<two_adders, 1, 2> {
  void host(unsigned index) {
    if (index == 0) first.store(submit(0), std::memory_order_release);
    std::uint64_t id;
    while ((id = first.load(std::memory_order_acquire)) == 0) env::pause();
    lev::options after;
    after.after_id(id);
    wait(submit(1 + index, &after));
    if (has_ended.fetch_add(1) == 1) wait(id);
  }
  void body(unsigned task) {
    if (task == 0) output.set(5);
    if (task != 0) require(output.get() == 5, "its predecessor has ended");
  }
  plain<int> output;
  atomic<std::uint64_t> first;
  atomic<std::uint32_t> has_ended;
};

// One host submits tasks after two, and a callback for one, that another host consumes meanwhile;
// the slots get tasks with successors and callbacks of their own at once. A submit is accepted, or
// refused as stale and leaves nothing; nothing that was accepted is lost, or reaches another task.
struct consumed : pipeline<consumed, 1, 2> {
  static constexpr std::uint32_t tickets = 16;
  void host(unsigned index) {
    index == 0 ? submit_behind() : consume();
    if (has_ended.fetch_add(1) == 0) return;
    wait_for_completion();
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < core->participant_count; ++i)
      kept += core->participants[i].free_edges.count();
    // The worker may be giving its own back, which are in both places for a moment.
    require(core->edges.free_count() + kept >= core->edges.count(), "all edges are back");
  }
  void submit_behind() {
    const std::uint64_t ids[] = {submit(0), submit(1)};
    first.store(ids[0], std::memory_order_release);
    second.store(ids[1], std::memory_order_release);
    lev::options after;
    after.after_id(ids[0]).after_id(ids[1]);
    const lev::argument a = detail::parameter<unsigned>::pack(2u);
    lev::refusal why;
    const std::uint64_t id = detail::try_submit(core, {1, 1, 0, 0, 0, 0, &a}, &after, false, &why);
    require(id != 0 || why.code == lev::status::stale_ticket, "accepted, or refused as stale");
    const lev::status s = detail::on_complete(core, ids[0], &call, &calls[0]);
    require(s == lev::status::ok || s == lev::status::stale_ticket, "set, or refused as stale");
    expected[0] = s == lev::status::ok ? 1 : 0;
    is_accepted = id != 0;
    if (id != 0) wait(id);
  }
  void consume() {
    wait(from(second));
    const std::uint64_t next = submit(3);
    wait(from(first));
    const std::uint64_t last = submit(4);
    const lev::status s = detail::on_complete(core, last, &call, &calls[1]);
    require(s == lev::status::ok, "the callback is set");
    lev::options after;
    after.after_id(next).after_id(last);
    wait(submit(5, &after));
    wait(next);
    wait(last);
  }
  void body(unsigned task) {
    if (task != 2 && task != 5) outputs[task].set(5);
    if (task == 2) require(outputs[0].get() + outputs[1].get() == 10, "both have ended");
    if (task == 2) outputs[2].set(1);
    if (task == 5) require(outputs[3].get() + outputs[4].get() == 10, "both have ended");
  }
  void after() {
    require(outputs[2].get() == (is_accepted ? 1 : 0), "run, or refused");
    require(calls[0].get() == expected[0], "the first callback, if it was set");
    require(calls[1].get() == 1, "the second callback");
  }
  static void call(void* context) {
    auto& count = *static_cast<plain<int>*>(context);
    count.set(count.get() + 1);
  }
  static std::uint64_t from(atomic<std::uint64_t>& place) {
    std::uint64_t id;
    while ((id = place.load(std::memory_order_acquire)) == 0) env::pause();
    return id;
  }
  plain<int> outputs[6];
  plain<int> calls[2];
  int expected[2] = {0, 1};
  bool is_accepted = false;
  atomic<std::uint32_t> has_ended;
  atomic<std::uint64_t> first;
  atomic<std::uint64_t> second;
};

// One task after two, on two workers.
struct fan_in : pipeline<fan_in, 2, 1> {
  void host(unsigned) {
    lev::options after;
    const std::uint64_t first = submit(0);
    const std::uint64_t second = submit(1);
    after.after_id(first).after_id(second);
    wait(submit(2, &after));
    wait(first);
    wait(second);
  }
  void body(unsigned task) {
    if (task < 2) outputs[task].set(5);
    if (task == 2) require(outputs[0].get() + outputs[1].get() == 10, "both have ended");
  }
  plain<int> outputs[2];
};

// A predecessor fails: what comes after it fails without running, and waiters are told.
struct failed : pipeline<failed, 1, 1> {
  void host(unsigned) {
    code = 1;
    const std::uint64_t first = submit(0);
    lev::options after;
    after.after_id(first);
    wait(submit(1, &after), lev::status::dependency_failed);
    wait(first, lev::status::task_failed);
  }
  void body(unsigned task) { require(task == 0, "the first only"); }
};

// A task that submits another one, and a barrier for both.
template <lev::wait_policy Policy>
struct barrier : pipeline<barrier<Policy>, 2, 1> {
  static constexpr lev::wait_policy wait_policy = Policy;
  void host(unsigned) {
    this->submit(0, nullptr, true);
    this->wait_for_completion();
    require(outputs[0].get() + outputs[1].get() == 10, "both have ended");
  }
  void body(unsigned task) {
    if (task == 0) this->submit(1, nullptr, true);
    outputs[task].set(5);
  }
  plain<int> outputs[2];
};

// A barrier while another host submits in bulk: the last of the bulk may be completed by its
// submitter.
struct barrier_and_bulk : pipeline<barrier_and_bulk, 1, 2> {
  void host(unsigned index) {
    if (index == 1) return wait_for_completion();
    const auto fill = [](void*, std::size_t i, lev::descriptor& d) {
      d.procedure = 1;
      d.argument_count = 1;
      d.arguments[0] = detail::parameter<unsigned>::pack(static_cast<unsigned>(i));
    };
    wait(detail::submit_bulk(core, 2, fill, nullptr));
  }
  void body(unsigned) {}
};

// Each host's bulk holds a ticket while it wants another, and there are two.
struct two_bulks : pipeline<two_bulks, 1, 2> {
  static constexpr std::uint32_t tickets = 2;
  void host(unsigned) {
    detail::here(*core);
    called.fetch_add(1, std::memory_order_acq_rel);
    while (called.load(std::memory_order_acquire) != 2) env::pause();
    const auto fill = [](void*, std::size_t, lev::descriptor& d) {
      d.procedure = 1;
      d.argument_count = 1;
      d.arguments[0] = detail::parameter<unsigned>::pack(0u);
    };
    wait(detail::submit_bulk(core, 1, fill, nullptr));
  }
  void body(unsigned) {}
  atomic<std::uint32_t> called;
};

// A task over a range is diced while two workers take its pieces; the barrier, or the ticket's
// waiter, waits for all.
template <bool Detached>
struct diced : pipeline<diced<Detached>, 2, 1> {
  static constexpr std::uint32_t tickets = 16;
  void host(unsigned) {
    const std::uint64_t id = this->submit_range({0, item_count}, Detached);
    Detached ? this->wait_for_completion() : this->wait(id);
    for (auto& i : items) require(i.get() == 1, "every item once");
  }
  void loop(lev::range r) {
    for (auto i = r.begin; i < r.end; ++i) items[i].set(items[i].get() + 1);
  }
  static constexpr unsigned item_count = 2;
  plain<int> items[item_count];
};

// The same where those who take a piece cut it. An item waits for another of its piece, which the
// other worker must take: it is asleep, perhaps, or gone to sleep since.
struct divided : pipeline<divided, 2, 1> {
  static constexpr std::uint32_t tickets = 16;
  static constexpr bool is_straight = true;
  void host(unsigned) {
    wait(submit_range({0, item_count}, false));
    for (auto& i : items) require(i.get() == 1, "every item once");
  }
  void loop(lev::range r) {
    for (auto i = r.begin; i < r.end; ++i) {
      items[i].set(items[i].get() + 1);
      if (i == 1) start(1);
      if (i == 0) wait_started(1);
    }
  }
  static constexpr unsigned item_count = 4;
  plain<int> items[item_count];
};

// Three tasks that need the same mutex, on two workers.
struct mutex : pipeline<mutex, 2, 1> {
  void host(unsigned) {
    lev::mutex_id m = 0;
    require(core->mutexes.make(&m), "a mutex");
    lev::options locked;
    locked.locks(m);
    for (unsigned i = 0; i < 3; ++i) submit(i, &locked, true);
    wait_for_completion();
    require(count.get() == 3, "all have run");
  }
  void body(unsigned) { count.set(count.get() + 1); }
  plain<int> count;
};

// Tasks pass through a filter, and wait for each other on two workers: a pass leaves none behind.
struct filtered : pipeline<filtered, 2, 1> {
  void host(unsigned) {
    const lev::filter f{[](lev::waiting_task*, std::size_t, void*) {}, nullptr};
    lev::participant& self = *detail::here(*core);
    lev::pass_report report(self.counters.submitted);
    core->sched.set_filters(&f, 1, self.free_slots, report);
    submit(0, nullptr, true);
    submit(1, nullptr, true);
  }
  void body(unsigned task) {
    start(task);
    wait_started(1 - task);
  }
};

// Two tickets, of which the first is not done before the second has been reported.
struct any : pipeline<any, 2, 1> {
  void host(unsigned) {
    std::uint64_t ids[] = {submit(0), submit(1)};
    for (const std::size_t expected : {1, 0}) {
      std::size_t done = 0;
      const lev::outcome o = detail::wait_any_id(core, ids, 2, &done, lev::no_timeout);
      require(o.code == lev::status::ok && done == expected, "the one that is done");
      require(outputs[done].get() == 5, "with its output");
      start(2);
    }
  }
  void body(unsigned task) {
    if (task == 0) wait_started(2);
    outputs[task].set(5);
  }
  plain<int> outputs[2];
};

}  // namespace

int main() {
  constexpr budget b{.random = 5'000, .random_planted = 3'000, .steps_max = 20'000};
  return explorer("flow", b, {"worker/complete.cpp", "flow/dependants.hpp", "sync/env.hpp"})
      .check<diced<false>>("diced")
      .check<diced<true>>("diced, barrier")
      .check<divided>("divided")
      .check<fan_in>("fan in")
      .check<fan_out<1>>("fan out")
      .check<fan_out<2>>("fan out, two workers")
      .check<two_adders>("two adders")
      .check<consumed>("consumed")
      .check<failed>("failed")
      .check<barrier<lev::wait_policy::park>>("barrier, host parks")
      .check<barrier<lev::wait_policy::help>>("barrier, host helps")
      .check<barrier_and_bulk>("barrier and bulk")
      .check<two_bulks>("two bulks")
      .check<mutex>("mutex")
      .check<any>("any")
      .check<filtered>("filtered")
      .plant("finish: dependants are taken while their flag stays up", "fan out")
      .plant("add: announces before it has the list", "fan out")
      .plant("add: hangs an edge on whatever the slot has now", "consumed")
      .plant("start_after: a predecessor that was consumed has failed", "consumed")
      .plant("start_after: a refused submit leaves its task behind", "consumed")
      .plant("start_after: a refused submit keeps its edges", "consumed")
      .plant("on_complete: writes the callback before it announces it", "consumed")
      .plant("start_after: the submit holds no count of its own", "fan in")
      .plant("is_quiescent: submissions are read before completions", "barrier, host parks")
      .plant("split: pieces are counted when the pass has ended", "diced, barrier")
      .plant("divide: no ring for its pieces", "divided")
      .plant("settle: the barrier's word is only read", "diced, barrier")
      .plant("submit_bulk: leaves without a look for barrier waiters", "barrier and bulk")
      .plant("reserve_join: all slots may be joins", "two bulks")
      .plant("mutex_table: handed over, but not held", "mutex")
      .plant("await_any: only the first ticket is armed", "any")
      .plant("take: no ring after a pass", "filtered")
      .spare("tell_barrier change seq_cst -> acq_rel", "its change and the waiter's have an order")
      .end();
}
