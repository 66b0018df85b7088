// Stress: load. Many small tasks through a small queue, sleeping and waking, an idle runtime, and
// memory that does not grow.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/random.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/stress.hpp"
#include "sync/pause.hpp"

namespace lev::test {
namespace {

std::size_t resident_kibibytes() {
  std::size_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

std::uint64_t cpu_us() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto us = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  return us(u.ru_utime) + us(u.ru_stime);
}

// Overload (promise I5): several producers, a queue of 1024. Nothing is lost, memory does not
// grow.
TEST(load_stress, overload_does_not_grow) {
  start_alarm();
  config c;
  c.workers = 2;
  c.tickets = 1024;
  c.host_threads = 4;
  runtime r(c);
  counter n = 0;
  const auto produce = [&](int tasks) {
    on_threads_together(3, [&](int) {
      for (int i = 0; i < tasks; ++i) r.post(count_one, ref{&n});
    });
    EXPECT_EQ(r.wait_for_completion().code, status::ok);
  };
  produce(20'000);
  const std::size_t before = resident_kibibytes();
  const int tasks = is_deep() ? 3'000'000 : is_sanitized() ? 20'000 : 150'000;
  produce(tasks);
  EXPECT_EQ(n, 3 * (20'000 + tasks));
  if (!is_sanitized()) {
    EXPECT_LT(resident_kibibytes(), before + 1024);
  }
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

// Every submit finds the workers asleep or about to sleep: a lost wake-up hangs here.
TEST(load_stress, sleeping_and_waking) {
  start_alarm();
  sometimes parks("parked");
  sometimes direct("sent straight to a worker");
  for (const wait_policy policy : {wait_policy::park, wait_policy::help}) {
    config c;
    c.workers = 3;
    c.tickets = 64;
    c.host_threads = 2;
    c.spin_ns = 0;
    c.wait = policy;
    runtime r(c);
    random_source random(base_seed());
    const time_box box;
    while (!box.is_over()) {
      counter n = 0;
      const int count = 1 + static_cast<int>(random.below(6));
      for (int i = 0; i < count; ++i) r.submit(count_one, ref{&n}).release();
      ASSERT_EQ(r.wait_for_completion().code, status::ok);
      ASSERT_EQ(n, count);
      std::int64_t result = 0;
      r.submit(square, std::int64_t{3}, result).wait();
      ASSERT_EQ(result, 9);
      for (std::uint32_t i = random.below(2000); i > 0; --i) relax_core();
    }
    parks.note(r.count().parks);
    direct.note(r.count().direct);
    EXPECT_EQ(r.close(60'000'000'000), status::ok);
    expect_nothing_leaked(r);
  }
}

// An idle runtime sleeps. The host waits for a phase that does not end, which is no work either.
TEST(load_stress, an_idle_runtime_uses_no_cpu) {
  start_alarm();
  config c;
  c.workers = 4;
  runtime r(c);
  r.submit(nothing).wait();
  r.begin_submit();
  EXPECT_EQ(r.wait_for_completion(50'000'000).code, status::timed_out);  // settle
  const std::uint64_t before = cpu_us();
  EXPECT_EQ(r.wait_for_completion(400'000'000).code, status::timed_out);
  EXPECT_LT(cpu_us() - before, 20'000u) << "in 400 ms";
  r.end_submit();
  EXPECT_EQ(r.wait_for_completion().code, status::ok);
}

// Tasks that pour tasks: own inboxes, thefts, full inboxes.
const procedure<void(ref<runtime>, ref<counter>, int)>& fountain();
void pour(ref<runtime> home, ref<counter> n, int depth) {
  ++*n.to;
  for (int i = 0; depth > 0 && i < 3; ++i) home.to->post(fountain(), home, n, depth - 1);
}
const procedure<void(ref<runtime>, ref<counter>, int)>& fountain() {
  static const auto p = define("load.fountain", &pour);
  return p;
}

TEST(load_stress, fountains_of_tasks_are_stolen_from) {
  start_alarm();
  sometimes stolen("stolen");
  config c;
  c.workers = 3;
  c.tickets = 8192;
  runtime r(c);
  const time_box box;
  while (!box.is_over()) {
    counter n = 0;
    r.post(fountain(), ref{&r}, ref{&n}, 6);
    ASSERT_EQ(r.wait_for_completion().code, status::ok);
    ASSERT_EQ(n, (2187 - 1) / 2);
  }
  stolen.note(r.count().stolen);
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

// The barrier among dicing: no piece may be missing when it opens.
TEST(load_stress, barriers_among_diced_tasks) {
  start_alarm();
  config c;
  c.workers = 4;
  c.tickets = 512;
  c.host_threads = 3;
  c.spin_ns = 1'000;
  runtime r(c);
  static const auto piece = define(
      "load.piece", [](range part, ref<counter> n) { *n.to += static_cast<int>(part.size()); });
  const time_box box;
  std::atomic<bool> is_over{false};
  on_threads_together(2, [&](int me) {
    while (!is_over) {
      if (me == 1) {  // makes passes and steals busy
        r.submit(nothing).wait();
        continue;
      }
      counter n = 0;
      r.post(piece, range{0, 400}, ref{&n});
      ASSERT_EQ(r.wait_for_completion().code, status::ok);
      ASSERT_EQ(n, 400);
      is_over = box.is_over();
    }
  });
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

}  // namespace
}  // namespace lev::test
