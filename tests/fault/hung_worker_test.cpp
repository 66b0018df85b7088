// Workers that hang before they are ready for their first task, as in a fork handler of a library
// that waits for a lock: here they stop. Tasks that wait for them can be ended, a worker that is
// not ready in time is replaced, and in the end the pool says that there is none. And a zygote that
// is stopped.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <sched.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <string>

#include "fault/pool_hosts.hpp"
#include "share/faults.hpp"

namespace lev::test::hung {
namespace {

constexpr std::int64_t limit_ns = 20'000'000'000;
constexpr std::uint32_t arrival_ms = 200;
constexpr std::uint32_t arrival_ms_long = 1'000;
constexpr std::uint32_t arrival_ms_never = 3'600'000;

const auto nothing = define("hung.nothing", [] {});
const auto crash = define("hung.crash", [] { raise(SIGKILL); });
const auto hang = define("hung.hang", [] {
  for (;;) pause();
});
const auto tell_parent = define("hung.tell_parent", [](result<int> pid) { pid = getppid(); });

class hung : public testing::TestWithParam<bool> {
 protected:
  hung() { arm_faults(nullptr, plan_); }
  ~hung() override {
    arm_faults(nullptr, nullptr);
    faults::arrival_ms_max = usual_ms_;
  }
  // The worker after the first `passes` ones stops as it starts.
  config settings(std::uint32_t passes, std::uint32_t arrival_ms_max) {
    const fault_name begin = "worker.begin";
    plan_->point = begin.index;
    plan_->action = fault_action::stop;
    plan_->passes = passes;
    faults::arrival_ms_max = arrival_ms_max;
    config c;
    c.machine = "processes";
    c.workers = 1;
    if (GetParam()) c.processes.pool = name_.c_str();
    return c;
  }
  bool has_hung() {
    return comes([&] { return plan_->stopped != 0; });
  }

  const std::uint32_t usual_ms_ = faults::arrival_ms_max;
  // A pool of its own for each test: the one before may still have its keeper.
  const std::string name_ = "hung-" + std::to_string(getpid()) + "-" + std::to_string(++pools_);
  static inline int pools_ = 0;
  shared_array<fault_plan> plans_{1};
  fault_plan* plan_ = new (plans_.data()) fault_plan;
};
INSTANTIATE_TEST_SUITE_P(worker, hung, testing::Bool(), [](const auto& i) {
  return std::string(i.param ? "of_a_shared_pool" : "of_a_host");
});

TEST_P(hung, is_no_hindrance_to_the_end_of_its_tasks) {
  runtime r(settings(0, arrival_ms_never));
  EXPECT_TRUE(has_hung());
  ticket t = r.submit(nothing);
  ticket behind = r.submit(nothing);
  EXPECT_EQ(t.end(), status::ok);
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::cancelled);
  EXPECT_EQ(r.close(1, true, true), status::ok);
  EXPECT_EQ(behind.wait_outcome(limit_ns).code, status::cancelled);
}

TEST_P(hung, is_replaced) {
  runtime r(settings(1, arrival_ms_long));
  EXPECT_EQ(r.submit(options().max_attempts(1), crash).wait_outcome(limit_ns).code, status::poison);
  EXPECT_TRUE(has_hung());
  // Over long before its worker is replaced; a worker that loses its core in it has half a second.
  const options limited = options().task_ns_max(500'000'000).max_attempts(1);
  EXPECT_EQ(r.submit(limited, nothing).wait_outcome(limit_ns).code, status::ok)
      << "its time begins with it";
}

TEST_P(hung, again_and_again_brings_the_pool_down) {
  plan_->is_lasting = true;
  runtime r(settings(0, arrival_ms));
  ticket t = r.submit(nothing);
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::pool_down);
}

// It reports no death, and starts no worker.
TEST(stopped_zygote, goes_on_when_it_owes_a_report) {
  config c;
  c.machine = "processes";
  c.workers = 1;
  runtime r(c);
  int zygote = 0;
  r.submit(tell_parent, zygote).wait();
  for (const auto& what : {crash, hang}) {
    kill(zygote, SIGSTOP);
    EXPECT_TRUE(comes([&] { return state_of(zygote) == 'T'; }));
    ticket t = r.submit(options().max_attempts(1).task_ns_max(1'000'000), what);
    EXPECT_NE(t.wait_outcome(limit_ns).code, status::timed_out);
  }
  kill(zygote, SIGSTOP);
  ticket t = r.submit(hang);
  EXPECT_EQ(r.close(1, true, true), status::ok);
}

// Its tracer, which alone can let it go on, is stopped, and owes the host no report.
const auto stop_tracer = define("hung.stop_tracer", [] {
  std::signal(SIGUSR1, [](int) {});
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  kill(getppid(), SIGSTOP);
  while (state_of(getppid()) != 'T') sched_yield();
  raise(SIGUSR1);
});

TEST(stopped_zygote, goes_on_for_a_worker_that_it_traces) {
  config c;
  c.machine = "processes";
  c.workers = 1;
  runtime r(c);
  EXPECT_EQ(r.submit(stop_tracer).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(r.submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

}  // namespace
}  // namespace lev::test::hung
