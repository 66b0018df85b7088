// Two runtimes at one pool of workers, which meet at moments that tests with many hosts seldom come
// upon: one leaves while a worker stands still, waits for a worker that has turned to the other, or
// has the next task each time the other's tasks end a worker.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>
#include <optional>
#include <string>

#include "fault/pool_hosts.hpp"
#include "share/faults.hpp"

namespace lev::test {
namespace {

// In memory that host and workers share.
struct shared_words {
  std::atomic<int> has_begun{0};
  std::atomic<int> may_end{0};
  fault_plan plan;
};

struct words_of {
  shared_words* all;
};
// Its worker stops when the task's end is published, before it looks at what comes next.
const auto stop_behind = define("two_hosts.stop_behind", [](words_of w) {
  w.all->has_begun = 1;
  while (w.all->may_end == 0) sched_yield();
  w.all->plan.passes = 0;
});
// Keeps its worker until it may end.
struct gate_words {
  std::atomic<int> process{0};  // the worker's, when it has begun
  std::atomic<int> may_end{0};
};
struct gate_of {
  gate_words* words;
};
const auto hold = define("two_hosts.hold", [](gate_of g) {
  g.words->process = getpid();
  while (g.words->may_end == 0) sched_yield();
});
const auto nothing = define("two_hosts.nothing", [] {});
// The other host has all that time to post behind it.
const auto wait_and_die = define("two_hosts.wait_and_die", [] {
  poll(nullptr, 0, 15);
  raise(SIGKILL);
});

class two_hosts : public testing::Test {
 protected:
  void SetUp() override {
    words_ = new (shared_allocate(sizeof(shared_words))) shared_words;
    words_->plan.point = fault_name("worker.finished").index;
    words_->plan.action = fault_action::stop;
    words_->plan.passes = fault_plan::never;
  }
  void TearDown() override {
    if (words_ != nullptr) shared_free(words_);
  }
  config at_pool() const {
    config c;
    c.machine = "processes";
    c.processes.pool = name_.c_str();
    c.workers = 2;
    return c;
  }
  // Runs tasks behind one that ends last, on a worker that then stands still.
  void work_and_leave() {
    arm_faults(nullptr, &words_->plan);
    std::optional<runtime> r(at_pool());
    arm_faults(nullptr, nullptr);
    ticket last = r->submit(stop_behind, words_of{words_});
    ASSERT_TRUE(comes([&] { return words_->has_begun != 0; }));
    // So many that some are posted behind the one that runs; they are taken back.
    ticket others = r->submit_bulk(64, [](std::size_t, descriptor& d) { d = pack(nothing); });
    ASSERT_EQ(others.wait_outcome().code, status::ok);
    words_->may_end = 1;
    ASSERT_EQ(last.wait_outcome().code, status::ok);
    // It says which process it is before it stops: a SIGCONT in between would be lost.
    ASSERT_TRUE(comes([&] {
      const pid_t pid = words_->plan.stopped;
      return pid != 0 && state_of(pid) == 'T';
    }));
    r.reset();
    kill(words_->plan.stopped, SIGCONT);
  }

  const std::string name_ = "two-hosts-" + std::to_string(getpid());
  shared_words* words_ = nullptr;
};

// No worker is killed for it, also if one has not passed by yet what was posted to it and taken
// back.
TEST_F(two_hosts, one_leaves_and_kills_no_worker) {
  runtime stays(at_pool());
  ASSERT_NO_FATAL_FAILURE(work_and_leave());
  // Both workers begin a task: one after the other might all go to the same worker.
  shared_array<gate_words> gates(2);
  ticket held[2];
  for (int i = 0; i < 2; ++i) held[i] = stays.submit(hold, gate_of{&gates[i]});
  EXPECT_TRUE(comes([&] { return gates[0].process != 0 && gates[1].process != 0; }));
  EXPECT_TRUE(gates[0].process == words_->plan.stopped || gates[1].process == words_->plan.stopped);
  for (int i = 0; i < 2; ++i) gates[i].may_end = 1;
  for (ticket& h : held) EXPECT_EQ(h.wait_outcome().code, status::ok);
  EXPECT_EQ(stays.count().deaths, 0u);
}

// A task that was posted while both workers were busy for the other host does not wait for the one
// that stays busy when the other one is free.
TEST_F(two_hosts, no_task_waits_for_a_worker_that_is_away) {
  for (int free = 0; free < 2; ++free) {
    shared_array<gate_words> gates(2);
    runtime other(at_pool());
    runtime waits(at_pool());
    ticket held[2];
    for (int i = 0; i < 2; ++i) held[i] = other.submit(hold, gate_of{&gates[i]});
    ASSERT_TRUE(comes([&] { return gates[0].process != 0 && gates[1].process != 0; }));
    ticket t = waits.submit(nothing);
    EXPECT_FALSE(t.done());
    gates[free].may_end = 1;
    EXPECT_EQ(t.wait_outcome(std::int64_t{answer_ms_max} * 1'000'000).code, status::ok);
    gates[1 - free].may_end = 1;
    for (ticket& h : held) EXPECT_EQ(h.wait_outcome().code, status::ok);
  }
}

// A task that waits behind the tasks of another host is not blamed for any number of workers that
// those end.
TEST_F(two_hosts, the_next_task_is_innocent_of_deaths_in_tasks_of_another) {
  constexpr int deaths = 60;
  config c = at_pool();
  c.workers = 1;
  c.processes.max_attempts = 1;
  runtime dies(c);
  // So it asks for each new worker when that has already begun a task of the other.
  c.processes.on_death.call = [](void*, int, int) { poll(nullptr, 0, 5); };
  runtime waits(c);
  ticket killers[deaths];
  for (ticket& k : killers) k = dies.submit(wait_and_die);
  for (int i = 0; !killers[deaths - 1].done(); ++i) {
    ASSERT_EQ(waits.submit(nothing).wait_outcome().code, status::ok) << i;
  }
  for (ticket& k : killers) EXPECT_EQ(k.wait_outcome().code, status::poison);
}

}  // namespace
}  // namespace lev::test
