// What a program hears of the lives of its worker processes: their numbers and their deaths.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

constexpr std::int64_t limit_ns = 60'000'000'000;

const auto dies_by = define("life.dies_by", [](int number) { raise(number); });
const auto leaves = define("life.leaves", [](int code) { std::exit(code); });
const auto ends_group = define("life.ends_group", [] { killpg(0, SIGKILL); });
const auto pid_of = define("life.pid", [](result<int> pid) { pid = getpid(); });
volatile sig_atomic_t caught_now = 0;
const auto is_traced = define("life.is_traced", [](int number, result<int> caught) {
  std::signal(SIGUSR1, [](int) { caught_now = 1; });
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(number);
  caught = int{caught_now};
});
// Whether all have come: one worker cannot be all of them.
struct meeting {
  int* there;
};
const auto meets = define("life.meets", [](meeting m, int count, result<int> number) {
  number = worker_index();
  __atomic_add_fetch(m.there, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(m.there, __ATOMIC_SEQ_CST) < count) std::this_thread::yield();
});

// The deaths that a runtime told of.
struct obituaries {
  std::mutex mutex;
  std::vector<std::pair<int, int>> told;  // worker, how

  death_hook hook() {
    return {[](void* self, int worker, int how) {
              auto& o = *static_cast<obituaries*>(self);
              const std::lock_guard lock(o.mutex);
              o.told.emplace_back(worker, how);
            },
            this};
  }
  std::vector<std::pair<int, int>> seen() {
    const std::lock_guard lock(mutex);
    return told;
  }
};

config settings(int workers, obituaries* deaths = nullptr) {
  config c;
  c.machine = "processes";
  c.workers = workers;
  if (deaths != nullptr) c.processes.on_death = deaths->hook();
  return c;
}

TEST(WorkerLife, EachDeathIsToldBeforeTheOutcome) {
  obituaries deaths;
  runtime r(settings(1, &deaths));
  EXPECT_EQ(r.submit(dies_by, SIGKILL).wait_outcome(limit_ns).code, status::poison);
  auto seen = deaths.seen();
  ASSERT_EQ(seen.size(), 3u);
  for (const auto& [worker, how] : seen) {
    EXPECT_EQ(worker, 0);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  }
  EXPECT_EQ(r.submit(leaves, 0).wait_outcome(limit_ns).code, status::poison);
  seen = deaths.seen();
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_TRUE(WIFEXITED(seen.back().second) && WEXITSTATUS(seen.back().second) == 0);
}

TEST(WorkerLife, TasksThatDoNotDieTellNothing) {
  obituaries deaths;
  runtime r(settings(2, &deaths));
  int pid = 0;
  EXPECT_EQ(r.submit(pid_of, pid).wait_outcome(limit_ns).code, status::ok);
  EXPECT_TRUE(deaths.seen().empty());
}

// The zygote and the other worker live on.
TEST(WorkerLife, ATaskThatKillsItsGroupEndsOneWorker) {
  obituaries deaths;
  runtime r(settings(2, &deaths));
  EXPECT_EQ(r.submit(ends_group).wait_outcome(limit_ns).code, status::poison);
  const auto seen = deaths.seen();
  ASSERT_EQ(seen.size(), 3u);
  for (const auto& [worker, how] : seen)
    EXPECT_TRUE(how != -1 && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << worker;
}

// A body that makes its parent its tracer is stopped by its signals: that is no death.
TEST(WorkerLife, ATracedWorkerThatStopsIsNotDead) {
  obituaries deaths;
  runtime r(settings(1, &deaths));
  int caught = 0;
  EXPECT_EQ(r.submit(is_traced, SIGUSR1, caught).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(caught, 1);
  int pid = 0;
  EXPECT_EQ(r.submit(pid_of, pid).wait_outcome(limit_ns).code, status::ok);
  EXPECT_TRUE(deaths.seen().empty());
  // Not SIGSEGV: AddressSanitizer makes an exit of it.
  EXPECT_EQ(r.submit(is_traced, SIGUSR2, caught).wait_outcome(limit_ns).code, status::poison);
  for (const auto& [worker, how] : deaths.seen())
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGUSR2) << std::hex << how;
  EXPECT_EQ(deaths.seen().size(), 3u);
}

TEST(WorkerLife, WorkersKnowTheirNumbers) {
  constexpr int workers = 3;
  EXPECT_EQ(worker_index(), -1);
  runtime r(settings(workers));
  shared_array<int> there(1);
  int numbers[workers] = {};
  std::vector<ticket> tickets;
  for (int& number : numbers)
    tickets.push_back(r.submit(meets, meeting{&there[0]}, workers, number));
  for (ticket& t : tickets) EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(std::set<int>(numbers, numbers + workers), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(r.submit(dies_by, SIGKILL).wait_outcome(limit_ns).code, status::poison);
  int number = -1;
  EXPECT_EQ(r.submit(meets, meeting{&there[0]}, 1, number).wait_outcome(limit_ns).code, status::ok);
  EXPECT_TRUE(number >= 0 && number < workers);
}

}  // namespace
}  // namespace lev::test
