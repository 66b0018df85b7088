// A program hears of the lives of its worker processes: their numbers and their deaths.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fault/family.hpp"
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

// Whether a core dump of this process would have the mapping that holds an address.
bool is_dumped(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  std::ifstream maps("/proc/self/smaps");
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &begin, &end) == 2) {
      is_there = begin <= address && address < end;
    } else if (is_there && line.starts_with("VmFlags:")) {
      return line.find(" dd") == std::string::npos;
    }
  }
  return true;
}
struct seen_from {
  const void* at;
};
const auto looks = define(
    "life.looks", [](seen_from place, result<bool> dumped) { dumped = is_dumped(place.at); });

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

TEST(WorkerLife, WhatAHookThrowsIsAFailureWithoutATicket) {
  config c = settings(1);
  c.processes.max_attempts = 1;
  c.processes.on_death.call = [](void*, int, int) { throw std::runtime_error("the hook's"); };
  runtime r(c);
  EXPECT_EQ(r.submit(dies_by, SIGKILL).wait_outcome(limit_ns).code, status::poison);
  const outcome all = r.wait_for_completion(limit_ns);
  EXPECT_EQ(all.code, status::task_failed);
  EXPECT_EQ(all.failures, 1u);
  ASSERT_NE(all.exception, nullptr);
  EXPECT_THROW(std::rethrow_exception(all.exception), std::runtime_error);
  int pid = 0;
  EXPECT_EQ(r.submit(pid_of, pid).wait_outcome(limit_ns).code, status::ok);
}

// It has nothing of the runtime to come back to.
TEST(WorkerLife, AChildThatAHookForksEndsWhenItReturns) {
  config c = settings(1);
  c.processes.max_attempts = 1;
  int how = -1;
  c.processes.on_death = {[](void* to, int, int) {
                            const pid_t child = fork();
                            if (child > 0) waitpid(child, static_cast<int*>(to), 0);
                          },
                          &how};
  runtime r(c);
  EXPECT_EQ(r.submit(dies_by, SIGKILL).wait_outcome(limit_ns).code, status::poison);
  EXPECT_EQ(how, 0);
}

// A core dump takes 19 s for 64 GiB of addresses with nothing there.
TEST(WorkerLife, TheHeapIsInNoCoreDumpButForWhatTheHostHasAllocated) {
  runtime r(settings(1));
  shared_array<int> block(1'000'000);
  EXPECT_TRUE(is_dumped(&block[0]));
  EXPECT_FALSE(is_dumped(&block[0] + (std::size_t{1} << 30)));
  bool is_dumped_there = true;
  EXPECT_EQ(r.submit(looks, seen_from{&block[0]}, is_dumped_there).wait_outcome(limit_ns).code,
            status::ok);
  EXPECT_FALSE(is_dumped_there);
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

// It leaves them behind.
const auto starts_workers = define("life.starts_workers", [](result<int> pid) {
  auto* const own = new runtime(settings(1));
  int inner = 0;
  own->submit(pid_of, inner).wait();
  pid = inner;
});

TEST(WorkerLife, WorkersOfATaskEndWithItsWorker) {
  adopt_orphans();
  const std::set<pid_t> known = children_of(getpid());
  int pid = 0;
  {
    runtime r(settings(1));
    ASSERT_EQ(r.submit(starts_workers, pid).wait_outcome(limit_ns).code, status::ok);
    EXPECT_EQ(kill(pid, 0), 0);
    int next = 0;
    ASSERT_EQ(r.submit(pid_of, next).wait_outcome(limit_ns).code, status::ok);
    EXPECT_NE(next, pid);
  }
  EXPECT_EQ(orphans_left(known), 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace lev::test
