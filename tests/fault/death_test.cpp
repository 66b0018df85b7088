// How a worker can end, and what becomes of its task, of the other tasks and of the host.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/environment.hpp"
#include "support/leaks.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using namespace std::chrono_literals;

enum class death { segfault, abort, exit_0, exit_3, kill, stack };

[[gnu::noinline]] int overflow(volatile int* depth) {
  volatile int here[1024] = {*depth};
  *depth = *depth + 1;
  return *depth < 0 ? 0 : overflow(depth) + here[0];
}

void die(death how) {
  volatile int depth = 0;
  switch (how) {
    case death::segfault:
      raise(SIGSEGV);
      break;
    case death::abort:
      std::abort();
    case death::exit_0:
      std::exit(0);
    case death::exit_3:
      std::exit(3);
    case death::kill:
      kill(getpid(), SIGKILL);
      break;
    case death::stack:
      overflow(&depth);
      break;
  }
}

void pass_time(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

const auto dies = define("death.dies", &die);
const auto who = define("death.who", [](result<int> pid) { pid = getpid(); });
const auto parent = define("death.parent", [](result<int> pid) { pid = getppid(); });
const auto add_one = define("death.add_one", [](inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) ++v;
});
const auto naps = define("death.naps", [](std::uint64_t us, inout<std::uint64_t> x) {
  pass_time(std::chrono::microseconds(us));
  for (std::uint64_t& v : x) ++v;
});

// Dies the first `times` times: `tries` is in shared memory.
struct tries {
  int* count;
};
const auto dies_at_first = define("death.dies_at_first", [](tries t, int times, result<int> n) {
  if (__atomic_add_fetch(t.count, 1, __ATOMIC_SEQ_CST) <= times) raise(SIGSEGV);
  n = *t.count;
});

// Fills half of its output, then dies.
const auto half_writes = define("death.half_writes", [](tries t, out<std::uint64_t> x) {
  const bool is_last = __atomic_add_fetch(t.count, 1, __ATOMIC_SEQ_CST) > 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!is_last && i == x.size() / 2) raise(SIGKILL);
    x[i] = is_last ? 7 : 666;
  }
});

const auto fears_777 = define("death.fears_777", [](inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) {
    if (v == 777) raise(SIGSEGV);
    v *= 2;
  }
});

procedure<void(int)> once_only() {
  static const auto p = [] {
    static const kind kinds[] = {kind::value};
    procedure_info info;
    info.name = "death.once_only";
    info.run = [](const call&) { return raise(SIGSEGV); };
    info.kinds = kinds;
    info.kind_count = 1;
    info.may_rerun = false;
    procedure_id id = 0;
    register_procedure(info, &id);
    return procedure<void(int)>{id};
  }();
  return p;
}

class death_test : public testing::Test {
 protected:
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
  static config settings(int workers = 2) {
    config c;
    c.machine = "processes";
    c.workers = workers;
    return c;
  }
  static constexpr std::int64_t limit_ns = 60'000'000'000;
  static std::string text_of(const outcome& o) {
    if (!o.exception) return "";
    try {
      std::rethrow_exception(o.exception);
    } catch (const error& e) {
      return e.what();
    }
  }
  static int pid_of_worker(runtime& r) {
    int pid = 0;
    r.submit(who, pid).wait();
    return pid;
  }
  static bool is_gone(int pid) { return kill(pid, 0) != 0; }
  static bool becomes_gone(int pid) {
    for (int i = 0; i < 12'000 && !is_gone(pid); ++i) pass_time(5ms);
    return is_gone(pid);
  }
};

TEST_F(death_test, of_every_kind_is_poison_and_says_how) {
  struct {
    death how;
    const char* text;
  } const kinds[] = {{death::segfault, "SIGSEGV"}, {death::abort, "SIGABRT"},
                     {death::exit_0, "exit(0)"},   {death::exit_3, "exit(3)"},
                     {death::kill, "SIGKILL"},     {death::stack, "SIGSEGV"}};
  runtime r(settings());
  for (const auto& k : kinds) {
    // Sanitizers turn some faults into an exit with a report.
    if (is_sanitized() && k.how == death::stack) continue;
    ticket t = r.submit(dies, k.how);
    const outcome o = t.wait_outcome(limit_ns);
    EXPECT_EQ(o.code, status::poison);
    const std::string text = text_of(o);
    EXPECT_NE(text.find("death.dies"), std::string::npos) << text;
    EXPECT_NE(text.find("attempt 3"), std::string::npos) << text;
    if (!is_sanitized()) {
      EXPECT_NE(text.find(k.text), std::string::npos) << text;
    }
    std::uint64_t x = 41;
    r.submit(add_one, view(&x, 1)).wait();
    EXPECT_EQ(x, 42u);
  }
}

TEST_F(death_test, a_task_is_run_again) {
  runtime r(settings());
  shared_array<int> count(1);
  int n = 0;
  r.submit(dies_at_first, tries{count.data()}, 2, n).wait();
  EXPECT_EQ(n, 3);
  EXPECT_EQ(r.count().reruns, 2u);
  EXPECT_EQ(r.count().deaths, 2u);
}

TEST_F(death_test, max_attempts_is_obeyed) {
  for (const std::uint32_t most : {1u, 2u, 5u}) {
    config c = settings(1);
    c.processes.max_attempts = most;
    runtime r(c);
    shared_array<int> count(1);
    int n = 0;
    ticket t = r.submit(dies_at_first, tries{count.data()}, 1000, n);
    EXPECT_EQ(t.wait_outcome(limit_ns).code, status::poison);
    EXPECT_EQ(count[0], static_cast<int>(most));
  }
}

TEST_F(death_test, a_procedure_with_outside_effects_is_not_run_again) {
  runtime r(settings());
  ticket t = r.submit(once_only(), 1);
  const outcome o = t.wait_outcome(limit_ns);
  EXPECT_EQ(o.code, status::worker_died);
  EXPECT_NE(text_of(o).find("death.once_only"), std::string::npos);
  EXPECT_EQ(r.count().reruns, 0u);
}

TEST_F(death_test, other_tasks_are_untouched) {
  runtime r(settings());
  std::vector<std::uint64_t> x(2000, 0);
  std::vector<ticket> bad;
  for (std::size_t i = 0; i < x.size(); ++i) {
    r.post(add_one, view(&x[i], 1));
    if (i % 200 == 7) bad.push_back(r.submit(dies, death::segfault));
  }
  for (ticket& t : bad) EXPECT_EQ(t.wait_outcome(limit_ns).code, status::poison);
  EXPECT_EQ(r.wait_for_completion(limit_ns).code, status::ok);
  EXPECT_EQ(x, std::vector<std::uint64_t>(2000, 1));
}

TEST_F(death_test, a_half_written_output_is_not_seen) {
  runtime r(settings());
  shared_array<int> count(1);
  std::vector<std::uint64_t> x(8192, 5);  // 64 KiB
  ticket t = r.submit(half_writes, tries{count.data()}, x);
  while (!t.done()) {
    for (const std::uint64_t v : x) ASSERT_NE(v, 666u);
  }
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(x, std::vector<std::uint64_t>(8192, 7));
  count[0] = -1000;
  std::vector<std::uint64_t> y(8192, 5);
  EXPECT_EQ(r.submit(half_writes, tries{count.data()}, y).wait_outcome(limit_ns).code,
            status::poison);
  EXPECT_EQ(y, std::vector<std::uint64_t>(8192, 5)) << "a failed task changed its caller's memory";
}

const auto adds_and_dies_once = define("death.adds_and_dies_once", [](tries t, inout<int> x) {
  for (int& element : x) ++element;
  if (t.count[0]++ == 0) raise(SIGKILL);
});

// A second attempt would read what the first has left.
TEST_F(death_test, a_task_that_changes_its_inputs_in_place_is_not_run_again) {
  for (const staging how : {staging::automatic, staging::in_place}) {
    config c = settings();
    c.staging = how;
    runtime r(c);
    shared_array<int> count(1), x(100);
    const outcome o = r.submit(adds_and_dies_once, tries{count.data()}, x).wait_outcome(limit_ns);
    if (how == staging::in_place) {
      EXPECT_EQ(o.code, status::worker_died);
      EXPECT_NE(text_of(o).find("in place"), std::string::npos) << text_of(o);
    } else {
      EXPECT_EQ(o.code, status::ok);
    }
    for (const int element : x) ASSERT_EQ(element, 1);
    // Where nothing is changed in place it is run again.
    count[0] = 0;
    std::vector<int> y(100, 0);
    r.submit(adds_and_dies_once, tries{count.data()}, y).wait();
    EXPECT_EQ(y, std::vector<int>(100, 1));
  }
}

TEST_F(death_test, the_element_at_fault_is_found_and_the_others_are_done) {
  runtime r(settings());
  for (const std::size_t size : {1u, 2u, 100u, 5000u}) {
    std::vector<std::uint64_t> x(size, 1);
    const std::size_t bad = size * 2 / 3;
    x[bad] = 777;
    ticket t = r.submit(fears_777, sliced(x));
    const outcome o = t.wait_outcome(limit_ns);
    EXPECT_EQ(o.code, status::poison);
    EXPECT_EQ(o.failures, 1u);
    const std::string range = "[" + std::to_string(bad) + ", " + std::to_string(bad + 1) + ")";
    EXPECT_NE(text_of(o).find(range), std::string::npos) << text_of(o);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(x[i], i == bad ? 777u : 2u) << i;
  }
}

TEST_F(death_test, without_tickets_to_find_the_element_the_report_still_says_how) {
  config c = settings();
  c.tickets = 8;
  runtime r(c);
  std::vector<std::vector<std::uint64_t>> x(c.tickets, std::vector<std::uint64_t>(100, 1));
  std::vector<ticket> t;
  for (std::vector<std::uint64_t>& all : x) {
    all[50] = 777;
    t.push_back(r.submit(fears_777, sliced(all)));
  }
  for (ticket& one : t) {
    const outcome o = one.wait_outcome(limit_ns);
    EXPECT_EQ(o.code, status::poison);
    EXPECT_NE(text_of(o).find("ended its worker process"), std::string::npos) << text_of(o);
  }
}

TEST_F(death_test, a_stopped_worker_is_slow_and_not_dead) {
  runtime r(settings());
  std::uint64_t x = 0;
  const int pid = pid_of_worker(r);
  kill(pid, SIGSTOP);
  std::vector<std::uint64_t> y(50, 0);
  std::vector<ticket> t;
  for (std::uint64_t& v : y) t.push_back(r.submit(naps, std::uint64_t{100}, view(&v, 1)));
  pass_time(is_deep() ? 5s : 1s);
  kill(pid, SIGCONT);
  for (ticket& one : t) EXPECT_EQ(one.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(y, std::vector<std::uint64_t>(50, 1));
  EXPECT_EQ(r.count().deaths, 0u);
  r.submit(add_one, view(&x, 1)).wait();
}

// The same task may be under way at each kill: the next one waits behind it on a dead worker's
// line.
TEST_F(death_test, workers_killed_from_outside_are_replaced) {
  constexpr int kills = 20;
  config c = settings();
  c.processes.max_attempts = kills + 1;
  runtime r(c);
  std::vector<std::uint64_t> x(3000, 0);
  for (std::uint64_t& v : x) r.post(naps, std::uint64_t{50}, view(&v, 1));
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    int pid = 0;
    r.submit(who, pid).wait();
    killed += kill(pid, SIGKILL) == 0;
  }
  EXPECT_EQ(r.wait_for_completion(limit_ns).code, status::ok);
  EXPECT_EQ(x, std::vector<std::uint64_t>(3000, 1));
  EXPECT_GT(killed, 10);
}

TEST_F(death_test, of_the_zygote_is_survived) {
  runtime r(settings());
  std::vector<std::uint64_t> x(2000, 0);
  for (int round = 0; round < 3; ++round) {
    int zygote = 0;
    r.submit(parent, zygote).wait();
    for (std::uint64_t& v : x) r.post(naps, std::uint64_t{20}, view(&v, 1));
    kill(zygote, SIGKILL);
    ASSERT_EQ(r.wait_for_completion(limit_ns).code, status::ok);
    EXPECT_EQ(x, std::vector<std::uint64_t>(2000, static_cast<std::uint64_t>(round + 1)));
  }
}

const auto never_ends = define("death.never_ends", [](ref<std::atomic<int>> pid) {
  for (*pid.to = getpid();;) std::this_thread::yield();
});

// Nobody limits its time. What was posted behind it goes to the other worker.
TEST_F(death_test, tasks_behind_one_without_an_end_are_done_by_others) {
  config c = settings();
  c.workers = 2;
  c.processes.max_attempts = 1;
  runtime r(c);
  const shared<std::atomic<int>> pid(0);
  ticket endless = r.submit(never_ends, ref{&pid});
  while (*pid == 0) std::this_thread::yield();
  std::vector<std::uint64_t> x(200, 0);
  ticket rest = r.submit_bulk(
      x.size(), [&](std::size_t i, descriptor& d) { d = pack(add_one, view(&x[i], 1)); });
  EXPECT_EQ(rest.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(x, std::vector<std::uint64_t>(200, 1));
  EXPECT_EQ(endless.wait_outcome(0).code, status::timed_out);
  kill(*pid, SIGKILL);
  EXPECT_EQ(endless.wait_outcome(limit_ns).code, status::poison);
  EXPECT_EQ(r.count().deaths, 1u);
}

TEST_F(death_test, a_task_over_its_time_is_killed_alone) {
  config c = settings();
  c.processes.task_ns_max = 2'000'000'000;  // the quick one is far from it on a full machine, too
  runtime r(c);
  std::uint64_t x = 0;
  const auto begin = std::chrono::steady_clock::now();
  ticket slow = r.submit(naps, std::uint64_t{120'000'000}, view(&x, 1));
  std::uint64_t y = 0;
  ticket quick = r.submit(naps, std::uint64_t{1000}, view(&y, 1));
  EXPECT_EQ(quick.wait_outcome(limit_ns).code, status::ok);
  const outcome o = slow.wait_outcome(limit_ns);
  EXPECT_EQ(o.code, status::overran);
  EXPECT_NE(text_of(o).find("task_ns_max"), std::string::npos) << text_of(o);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
  EXPECT_EQ(x, 0u);
  EXPECT_EQ(y, 1u);
}

TEST_F(death_test, closing_leaves_no_process_behind) {
  int worker = 0;
  int zygote = 0;
  {
    runtime r(settings());
    r.submit(who, worker).wait();
    r.submit(parent, zygote).wait();
    EXPECT_FALSE(is_gone(worker));
  }
  EXPECT_TRUE(becomes_gone(worker));
  EXPECT_TRUE(becomes_gone(zygote));
}

TEST_F(death_test, a_retired_worker_is_replaced_and_no_task_counts_it) {
  static const auto retire = define("death.retire", [](result<int> pid) {
    pid = getpid();
    retire_worker();
  });
  runtime r(settings(1));
  int before = 0;
  for (int i = 0; i < 20; ++i) {
    int pid = 0;
    r.submit(retire, pid).wait();
    EXPECT_NE(pid, before);
    before = pid;
  }
  EXPECT_EQ(r.count().reruns, 0u);
}

TEST_F(death_test, an_idle_worker_is_replaced_and_no_task_counts_it) {
  static const auto work = define("death.work_then_idle", [](std::uint64_t ns, result<int> pid) {
    pid = getpid();
    retire_worker_after(ns);
  });
  runtime r(settings(1));
  int first = 0;
  r.submit(work, std::uint64_t{1'000'000}, first).wait();
  EXPECT_TRUE(becomes_gone(first));
  // Whether the worker ends before, beside or after a post: each task is run once.
  for (int i = 0; i < 200; ++i) {
    int pid = 0;
    r.submit(work, std::uint64_t{1000}, pid).wait();
    EXPECT_NE(pid, 0);
    pass_time(std::chrono::microseconds(i % 100));
  }
  int last = 0;
  r.submit(work, std::uint64_t{0}, last).wait();
  EXPECT_EQ(r.count().reruns, 0u);
  EXPECT_FALSE(is_gone(last));
}

}  // namespace
}  // namespace lev::test
