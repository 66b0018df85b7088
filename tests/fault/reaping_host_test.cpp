// Hosts that leave nobody the ends of their child processes: those that ignore them, and those that
// collect all there are. The zygote is such a child. And hosts that become the parent of what their
// zygote leaves.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include "share/faults.hpp"
#include "support/machine_test.hpp"

namespace lev::test {
namespace {

using clock = std::chrono::steady_clock;

const auto worker_pid = define("reaping.worker_pid", [](result<int> pid) { pid = getpid(); });
const auto zygote_pid = define("reaping.zygote_pid", [](result<int> pid) { pid = getppid(); });
const auto count_up = define("reaping.count_up", [](inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) ++v;
});

bool is_there(int pid) {
  return kill(pid, 0) == 0;
}

// Its worker dies, its zygote dies, and it ends in time and leaves nobody behind.
void live_through_deaths() {
  int worker = 0;
  int zygote = 0;
  clock::time_point closing;
  {
    config c;
    c.machine = "processes";
    c.workers = 2;
    runtime r(c);
    for (int round = 0; round < 3; ++round) {
      r.submit(worker_pid, worker).wait();
      r.submit(zygote_pid, zygote).wait();
      kill(round == 1 ? zygote : worker, SIGKILL);
      std::vector<std::uint64_t> x(500);
      for (std::uint64_t& v : x) r.post(count_up, view(&v, 1));
      EXPECT_EQ(r.wait_for_completion(60'000'000'000).code, status::ok);
      EXPECT_EQ(x, std::vector<std::uint64_t>(500, 1));
    }
    r.submit(zygote_pid, zygote).wait();
    closing = clock::now();
  }
  EXPECT_LT(clock::now() - closing, std::chrono::seconds(60));
  while (is_there(zygote)) std::this_thread::yield();  // the alarm ends it
}

class reaping_host_test : public testing::Test {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
};

TEST_F(reaping_host_test, one_that_ignores_its_children) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  live_through_deaths();
  std::signal(SIGCHLD, before);
}

TEST_F(reaping_host_test, one_that_collects_all_children) {
  std::atomic<bool> is_over{false};
  std::thread collects([&] {
    while (!is_over) {
      waitpid(-1, nullptr, WNOHANG);
      std::this_thread::yield();
    }
  });
  live_through_deaths();
  is_over = true;
  collects.join();
}

TEST_F(reaping_host_test, one_that_adopts_orphans) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  live_through_deaths();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a worker whose zygote was killed is left";
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

// The zygote dies when it has forked a worker, and before it could tell the host of it.
TEST_F(reaping_host_test, one_that_adopts_an_orphan_it_was_not_told_of) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  constexpr int workers = 2;
  shared_array<fault_plan> plans(1);
  fault_plan* plan = new (plans.data()) fault_plan;
  plan->point = fault_name("zygote.forked").index;
  plan->action = fault_action::kill;
  plan->passes = workers;  // of the start
  arm_faults(nullptr, plan);
  {
    config c;
    c.machine = "processes";
    c.workers = workers;
    runtime r(c);
    int worker = 0;
    r.submit(worker_pid, worker).wait();
    kill(worker, SIGKILL);
    while (plan->has_happened.load(memory_order_relaxed) == 0) std::this_thread::yield();
    r.submit(worker_pid, worker).wait();
  }
  arm_faults(nullptr, nullptr);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

}  // namespace
}  // namespace lev::test
