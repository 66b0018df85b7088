// The fixture's cases, its beginning and its end.
#include "support/machine_test.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace lev::test {

namespace {

constexpr unsigned alarm_seconds = 100;

void on_alarm(int) {
  constexpr char text[] = "\nthe test hangs: ended by its alarm\n";
  [[maybe_unused]] const auto n = write(STDERR_FILENO, text, sizeof text - 1);
  std::_Exit(3);
}

// Its tasks still use the memory of the test: there is no going on.
[[noreturn]] void give_up(const runtime& r) {
  const counters n = r.count();
  std::fprintf(stderr, "close() hangs: %llu submitted, %llu completed\n",
               static_cast<unsigned long long>(n.submitted),
               static_cast<unsigned long long>(n.completed));
  std::_Exit(2);
}

}  // namespace

void start_alarm() {
  std::signal(SIGALRM, &on_alarm);
  alarm(alarm_seconds);
}

void PrintTo(const machine_case& c, std::ostream* out) {
  *out << c.machine << ", " << c.workers << " workers, staging " << static_cast<int>(c.staging)
       << ", seed " << c.seed;
}

std::vector<machine_case> threads_only() {
  return {{"threads_1", "threads", 1, staging::automatic, 1},
          {"threads_2", "threads", 2, staging::automatic, 2},
          {"threads_4", "threads", 4, staging::automatic, 3},
          {"threads_copy", "threads", 2, staging::copy, 4}};
}

std::vector<machine_case> sim_only() {
  const std::uint64_t seed = base_seed();
  return {{"sim_1", "sim", 1, staging::automatic, seed},
          {"sim_4", "sim", 4, staging::automatic, seed},
          {"sim_4_other_seed", "sim", 4, staging::automatic, seed + 1000}};
}

std::vector<machine_case> every_machine() {
  std::vector<machine_case> all = threads_only();
  const std::vector<machine_case> sim = sim_only();
  all.insert(all.end(), sim.begin(), sim.end());
  return all;
}

void machine_test::SetUp() {
  if (const char* why = machine_unavailable(GetParam().machine)) GTEST_SKIP() << why;
  start_alarm();
}

void machine_test::TearDown() {
  close();
  alarm(0);
}

config machine_test::settings() {
  config c;
  c.machine = GetParam().machine;
  c.workers = GetParam().workers;
  c.staging = GetParam().staging;
  c.seed = GetParam().seed;
  c.tickets = 1024;
  c.host_threads = 8;
  return c;
}

void machine_test::close() {
  if (runtime_ == nullptr) return;
  const status code = runtime_->close(wait_limit_ns());
  if (code == status::timed_out) give_up(*runtime_);
  EXPECT_EQ(code, status::ok);
  expect_nothing_leaked(*runtime_);
  runtime_.reset();
  if (!HasFailure()) return;
  std::fprintf(stderr, "case %s, LEVERET_SEED=%llu\n", GetParam().name,
               static_cast<unsigned long long>(base_seed()));
}

}  // namespace lev::test
