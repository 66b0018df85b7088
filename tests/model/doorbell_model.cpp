// doorbell, with the queues and the parkers around it: no task waits while a worker sleeps.
//
// Every task ends only when another one has started, and a worker runs one task. So a task that is
// left in a queue while a worker sleeps stops everybody, and the checker reports a deadlock.
//
// The two sides are ring() and push_own() of worker/wake.hpp and enqueue.hpp, idle(), sleep() and
// turn_to_work() of worker/worker.cpp, without what does not concern the doorbell;
// pipeline_model.cpp runs the originals.
#include "explore.hpp"

#include "flow/ready_queue.hpp"
#include "queue/inbox.hpp"
#include "sync/doorbell.hpp"
#include "sync/parker.hpp"

namespace {

using namespace model;

constexpr fault_name no_last_look = "sleep: no last look";
constexpr fault_name early_look = "sleep: the last look comes before the announcement";
constexpr fault_name early_ring = "submit: rings before the task is queued";
constexpr fault_name no_second_look = "turn_to_work: does not look for more work";
constexpr fault_name no_confirm = "push_own: a plain push is not confirmed";
constexpr fault_name first_ring = "sleep: the last look is at the first ring";
constexpr std::uint32_t workers_max = 3;
constexpr std::uint32_t tasks_max = 3;

struct hall {
  hall() {
    for (std::uint32_t i = 0; i < workers_max; ++i) flags[i] = &asleep[i];
  }
  void open(std::uint32_t count, std::uint32_t rings = 1) {
    workers = count;
    ready.open(cells, 2, rings);
    for (std::uint32_t i = 0; i < workers_max; ++i) places[i] = ready.place_of(i);
    doorbell.open(flags, count);
  }

  void ring(std::uint32_t near) {
    if (!doorbell.someone_needed()) return;
    const std::uint32_t who = doorbell.wake_one(near < workers ? near : 0);
    if (who != lev::no_one) parks[who].unpark(place);
  }
  void submit(std::uint32_t who, const std::uint32_t* tasks, std::uint32_t count) {
    if (fault(early_ring)) ring(0);
    while (!places[who].home->try_push_all(tasks, count)) env::pause();
    if (!fault(early_ring)) ring(0);
  }
  void push_own(std::uint32_t self, std::uint32_t task) {
    const bool heard = doorbell.someone_sleeps() || !env::asymmetric();
    require(boxes[self].try_push(task, heard), "there is room");
    if (!heard && doorbell.someone_sleeps() && !fault(no_confirm)) boxes[self].confirm();
    ring(self + 1);
  }

  bool looks_idle() {
    if (fault(first_ring) ? !ready.first().looks_empty() : !ready.looks_empty()) return false;
    for (std::uint32_t i = 0; i < workers; ++i) {
      if (!boxes[i].looks_empty()) return false;
    }
    return true;
  }
  bool take(std::uint32_t self, std::uint32_t* task) {
    if (ready.nearest(places[self], false).try_pop(task)) return true;
    for (std::uint32_t i = 1; i < workers; ++i) {
      if (boxes[(self + i) % workers].try_steal(task)) return true;
    }
    return false;
  }
  // A worker finds one task and has it in hand.
  std::uint32_t find(std::uint32_t self) {
    bool was_last_poller = false;
    std::uint32_t task = 0;
    while (!take(self, &task)) {
      doorbell.start_polling();
      if (looks_idle()) sleep(self);
      was_last_poller = doorbell.stop_polling();
      env::pause();
    }
    turn_to_work(self, was_last_poller);
    return task;
  }
  void turn_to_work(std::uint32_t self, bool was_last_poller) {
    if (was_last_poller && !fault(no_second_look) && !looks_idle()) ring(self + 1);
  }
  void sleep(std::uint32_t self) {
    const bool early = fault(early_look) && looks_idle();
    doorbell.start_sleeping(self);
    if (fault(early_look) ? early : fault(no_last_look) || looks_idle()) {
      parks[self].park(place, sleeper::never);
    }
    doorbell.stop_sleeping(self);
  }

  // A task runs: it has started, and it ends when `other` has.
  void run(std::uint32_t task, std::uint32_t other) {
    started[task].store(1, std::memory_order_relaxed);
    for (auto& body : bodies) body.unpark(place);
    while (started[other].load(std::memory_order_relaxed) == 0) {
      bodies[task].park(place, sleeper::never);
    }
  }

  lev::doorbell<env> doorbell;
  lev::doorbell<env>::flag asleep[workers_max];
  lev::doorbell<env>::flag* flags[workers_max];
  std::uint32_t workers = 0;
  lev::ready_queue<env> ready;
  lev::index_ring<env>::cell cells[2 * 2];
  lev::ready_queue<env>::place places[workers_max];
  lev::inbox<env, 2> boxes[workers_max];
  lev::parker<env> parks[workers_max];
  lev::parker<env> bodies[tasks_max];
  atomic<std::uint32_t> started[tasks_max];
  sleeper place;
};

// Two workers, two tasks that wait for each other.
template <int Submitters, bool Batch, std::uint32_t Rings = 1>
struct two_tasks : scenario<two_tasks<Submitters, Batch, Rings>, Submitters + 2> {
  void before() { h->open(2, Rings); }
  void thread(unsigned index) {
    static constexpr std::uint32_t tasks[] = {0, 1};
    if (index < 2) {
      const std::uint32_t task = h->find(index);
      h->run(task, 1 - task);
    } else if (Submitters == 2) {
      h->submit(index - 2, tasks + index - 2, 1);
    } else if (Batch) {
      h->submit(0, tasks, 2);
    } else {
      h->submit(0, tasks, 1);
      h->submit(0, tasks + 1, 1);
    }
  }
  boxed<hall> h;
};

// Worker 0 pushes a child into its inbox and waits until it runs. Worker 2 polls, gets a letter
// (task 2) and turns to it; it waits for the child as well. So worker 1 must find the child in the
// inbox.
template <bool Asymmetric>
struct child : scenario<child<Asymmetric>, 3> {
  static constexpr bool is_asymmetric = Asymmetric;
  void before() {
    h->open(3);
    h->doorbell.start_polling();
  }
  void thread(unsigned index) {
    if (index == 0) {
      h->push_own(0, 1);
      h->run(0, 1);
    } else if (index == 1) {
      h->run(h->find(1), 0);
    } else {
      h->turn_to_work(2, h->doorbell.stop_polling());
      h->run(2, 1);
    }
  }
  boxed<hall> h;
};

// A submitter announces a letter and looks whether the worker sleeps; the worker announces its
// sleep and looks for a letter.
struct letter : scenario<letter, 2> {
  void before() { h->open(1); }
  void thread(unsigned index) {
    if (index == 0) {
      announced.fetch_add(1, std::memory_order_seq_cst);
      if (h->doorbell.sleeps(0) && h->doorbell.claim(0)) h->parks[0].unpark(h->place);
    } else {
      h->doorbell.start_polling();
      h->doorbell.start_sleeping(0);
      if (announced.load(std::memory_order_seq_cst) == 0)
        h->parks[0].park(h->place, sleeper::never);
      h->doorbell.stop_sleeping(0);
      (void)h->doorbell.stop_polling();
    }
  }
  void after() {
    require(h->doorbell.sleeper_count() == 0 && !h->doorbell.someone_needed(), "all awake");
  }
  boxed<hall> h;
  atomic<std::uint32_t> announced;
};

constexpr const char* last_look = "the looks that count follow stop_polling and start_sleeping";
constexpr const char* with_count = "the flag is acquired with the count";
constexpr const char* in_order = "Relacy runs a thread's steps in order";

}  // namespace

int main() {
  return explorer("doorbell",
                  {.bounded = 60'000, .random_planted = 8'000, .bounded_planted = 3'000},
                  {"sync/doorbell.hpp"})
      .check<two_tasks<1, true>>("a batch")
      .check<two_tasks<1, false>>("one submitter")
      .check<two_tasks<2, false>>("two submitters")
      .check<two_tasks<2, false, 2>>("two rings")
      .check<letter>("letter")
      .check<child<false>>("child")
      .check<child<true>>("child, asymmetric")
      .plant("doorbell: the flag is down before the count is right", "a batch")
      .plant("doorbell: a sleeper does not wait for its waker", "a batch")
      .plant("doorbell: the last poller wakes no other")
      .plant("doorbell: one sleeper is let lie")
      .plant("doorbell: no heavy fence", "child, asymmetric")
      .plant(no_last_look)
      .plant(first_ring, "two rings")
      .plant(early_look)
      .plant(early_ring)
      .plant(no_second_look)
      .plant(no_confirm, "child, asymmetric")
      .spare("start_polling change seq_cst -> acq_rel", last_look)
      .spare("start_polling change seq_cst -> relaxed", last_look)
      .spare("claim#1 change seq_cst -> acq_rel", last_look)
      .spare("claim#1 change seq_cst -> relaxed", last_look)
      .spare("claim#2 change seq_cst -> acq_rel", last_look)
      .spare("claim#2 change seq_cst -> relaxed", last_look)
      .spare("claim load seq_cst -> acquire", with_count)
      .spare("claim load seq_cst -> relaxed", with_count)
      .spare("claim store release -> relaxed", in_order)
      .spare("stop_sleeping load acquire -> relaxed", in_order)
      .end();
}
