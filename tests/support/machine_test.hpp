// machine_test: a test that runs on every machine. The parameter is a machine with a number of
// workers, a staging mode and a seed; the fixture opens the runtime and, at the end, closes it and
// checks that nothing leaked. To add a machine, add its cases to every_machine().
//
// No test may hang: waits have a limit, and an alarm ends the process should a call not return.
#pragma once

#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/leaks.hpp"

namespace lev::test {

struct machine_case {
  const char* name;
  const char* machine;
  int workers;
  lev::staging staging;
  std::uint64_t seed;
  bool is_shared = false;  // config.processes.pool
};

inline void PrintTo(const machine_case& c, std::ostream* out) {
  *out << c.machine << ", " << c.workers << " workers, staging " << static_cast<int>(c.staging)
       << ", seed " << c.seed;
}

// A sanitizer looks at what runs, which is slow and the same on similar machines: it has one of
// each kind.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool is_every_kind_once = true;
#else
constexpr bool is_every_kind_once = false;
#endif

inline std::vector<machine_case> threads_only() {
  std::vector<machine_case> all{{"threads_1", "threads", 1, staging::automatic, 1},
                                {"threads_4", "threads", 4, staging::automatic, 3},
                                {"threads_copy", "threads", 2, staging::copy, 4}};
  if (!is_every_kind_once) all.push_back({"threads_2", "threads", 2, staging::automatic, 2});
  return all;
}

// On sim all of a program is one thread, in which ThreadSanitizer has nothing to find.
inline std::vector<machine_case> sim_only() {
#if defined(__SANITIZE_THREAD__)
  return {};
#else
  const std::uint64_t seed = base_seed();
  std::vector<machine_case> all{{"sim_4", "sim", 4, staging::automatic, seed}};
  if (is_every_kind_once) return all;
  all.push_back({"sim_1", "sim", 1, staging::automatic, seed});
  all.push_back({"sim_4_other_seed", "sim", 4, staging::automatic, seed + 1000});
  return all;
#endif
}

// ThreadSanitizer sees one process: what host and workers do to each other is nothing to it.
// AddressSanitizer's workers start slowly.
inline std::vector<machine_case> processes_only() {
#if defined(__SANITIZE_THREAD__)
  return {};
#elif defined(__SANITIZE_ADDRESS__)
  return {{"processes_2", "processes", 2, staging::automatic, 2}};
#else
  return {{"processes_1", "processes", 1, staging::automatic, 1},
          {"processes_2", "processes", 2, staging::automatic, 2},
          {"processes_copy", "processes", 2, staging::copy, 3},
          {"processes_shared", "processes", 2, staging::automatic, 4, true}};
#endif
}

inline std::vector<machine_case> every_machine() {
  std::vector<machine_case> all = threads_only();
  const std::vector<machine_case> processes = processes_only();
  all.insert(all.end(), processes.begin(), processes.end());
  const std::vector<machine_case> sim = sim_only();
  all.insert(all.end(), sim.begin(), sim.end());
  return all;
}

// Those whose tasks may submit and wait, and reach the host's objects.
inline std::vector<machine_case> local_machines() {
  std::vector<machine_case> all = threads_only();
  const std::vector<machine_case> sim = sim_only();
  all.insert(all.end(), sim.begin(), sim.end());
  return all;
}

// Those with more than one host thread.
inline std::vector<machine_case> machines_of_many_hosts() {
  std::vector<machine_case> all = threads_only();
  const std::vector<machine_case> processes = processes_only();
  all.insert(all.end(), processes.begin(), processes.end());
  return all;
}

// A test on machines, which main() makes known to GoogleTest once for each case of its suite
// (main.cpp). TEST_P does the same, and has 23 functions compiled for a test and 90 for a suite,
// where this has 5 and 1: half of all functions, and a third of what compiling these tests took.
struct noted_test {
  const char* suite;
  const char* name;
  const char* file;
  int line;
  testing::Test* (*make)();
};
using machine_cases = std::vector<machine_case> (*)();

inline std::vector<noted_test>& noted_tests() {
  static std::vector<noted_test> all;
  return all;
}
inline std::map<std::string, machine_cases>& cases_of_suites() {
  static std::map<std::string, machine_cases> all;
  return all;
}
inline bool note_test(const noted_test& t) {
  noted_tests().push_back(t);
  return true;
}
// A suite that is given cases twice has none, which main() refuses.
inline bool note_cases(const char* suite, machine_cases cases) {
  const auto [place, is_new] = cases_of_suites().emplace(suite, cases);
  if (!is_new) place->second = nullptr;
  return is_new;
}
inline const machine_case* current_case = nullptr;  // that of the test that runs

// A suite is a class, or another name of machine_test where it adds nothing.
#define LEV_TEST(suite, name)                                                                      \
  struct suite##_##name : suite {                                                                  \
    void TestBody() override;                                                                      \
  };                                                                                               \
  [[maybe_unused]] const bool suite##_##name##_is_noted = ::lev::test::note_test(                  \
      {#suite, #name, __FILE__, __LINE__, []() -> testing::Test* { return new suite##_##name; }}); \
  void suite##_##name::TestBody()

#define LEV_ON(suite, cases)                      \
  [[maybe_unused]] const bool suite##_has_cases = \
      ::lev::test::note_cases(#suite, &::lev::test::cases)
#define LEV_ON_EVERY_MACHINE(suite) LEV_ON(suite, every_machine)
#define LEV_ON_LOCAL_MACHINES(suite) LEV_ON(suite, local_machines)
#define LEV_ON_MACHINES_OF_MANY_HOSTS(suite) LEV_ON(suite, machines_of_many_hosts)
#define LEV_ON_THREADS(suite) LEV_ON(suite, threads_only)
#define LEV_ON_SIM(suite) LEV_ON(suite, sim_only)
#define LEV_ON_PROCESSES(suite) LEV_ON(suite, processes_only)

// For tests whose tasks submit, or touch the host's own objects.
#define LEV_SKIP_IF_REMOTE()                                                              \
  if (std::strcmp(GetParam().machine, "processes") == 0)                                  \
  GTEST_SKIP() << "tasks in worker processes do not reach the host's objects, and do not" \
                  " submit"

// The alarm of a test that hangs.
constexpr unsigned alarm_seconds = 100;
inline void on_alarm(int) {
  constexpr char text[] = "\nthe test hangs: ended by its alarm\n";
  [[maybe_unused]] const auto n = write(STDERR_FILENO, text, sizeof text - 1);
  std::_Exit(3);
}
inline void start_alarm() {
  std::signal(SIGALRM, &on_alarm);
  alarm(alarm_seconds);
}

class machine_test : public testing::Test {
 protected:
  static const machine_case& GetParam() { return *current_case; }

  void SetUp() override {
    if (const char* why = machine_unavailable(GetParam().machine)) GTEST_SKIP() << why;
    start_alarm();
  }
  void TearDown() override {
    close();
    alarm(0);
  }

  // The configuration of the case, for a test to change before open().
  static config settings() {
    config c;
    c.machine = GetParam().machine;
    c.workers = GetParam().workers;
    c.staging = GetParam().staging;
    c.seed = GetParam().seed;
    c.tickets = 1024;
    c.host_threads = 8;
    static const std::string pool = "test-" + std::to_string(getpid());
    if (GetParam().is_shared) c.processes.pool = pool.c_str();
    return c;
  }
  static bool is_sim() { return std::strcmp(GetParam().machine, "sim") == 0; }
  static bool is_remote() { return std::strcmp(GetParam().machine, "processes") == 0; }
  // Whether memory that fits in place is copied. A new machine copies, unless it is named here.
  static bool copies() {
    return std::strcmp(GetParam().machine, "threads") != 0 || GetParam().staging == staging::copy;
  }
  // No correct wait takes that long; virtual time is shorter, as it takes longer to pass.
  static std::int64_t wait_limit_ns() { return is_sim() ? 2'000'000'000 : 60'000'000'000; }

  runtime& open(const config& c) {
    close();
    runtime_ = std::make_unique<runtime>(c);
    return *runtime_;
  }
  runtime& open() { return runtime_ != nullptr ? *runtime_ : open(settings()); }

  // Closes the runtime and checks that it holds nothing any more.
  void close() {
    if (runtime_ == nullptr) return;
    const status code = runtime_->close(wait_limit_ns());
    if (code == status::timed_out) {
      const counters n = runtime_->count();
      std::fprintf(stderr, "close() hangs: %llu submitted, %llu completed\n",
                   static_cast<unsigned long long>(n.submitted),
                   static_cast<unsigned long long>(n.completed));
      std::_Exit(2);  // its tasks still use the memory of this test
    }
    EXPECT_EQ(code, status::ok);
    expect_nothing_leaked(*runtime_);
    runtime_.reset();
    if (HasFailure()) {
      std::fprintf(stderr, "case %s, LEVERET_SEED=%llu\n", GetParam().name,
                   static_cast<unsigned long long>(base_seed()));
    }
  }

  // A failure's exception. From a worker process only its text comes back, in a lev::error.
  static void expect_runtime_error(const outcome& o) {
    EXPECT_EQ(o.code, status::task_failed);
    ASSERT_TRUE(o.exception);
    if (is_remote()) {
      EXPECT_THROW(std::rethrow_exception(o.exception), error);
    } else {
      EXPECT_THROW(std::rethrow_exception(o.exception), std::runtime_error);
    }
  }

  static outcome wait(ticket& t) { return t.wait_outcome(wait_limit_ns()); }
  static void expect_ok(ticket& t) { EXPECT_EQ(wait(t).code, status::ok); }
  static void expect_ok(ticket&& t) { EXPECT_EQ(wait(t).code, status::ok); }
  void expect_all_done() {
    EXPECT_EQ(runtime_->wait_for_completion(wait_limit_ns()).code, status::ok);
  }

 private:
  std::unique_ptr<runtime> runtime_;
};

}  // namespace lev::test
