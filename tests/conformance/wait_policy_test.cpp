// Conformance: every way to wait, chosen for the runtime or for one wait. Hosts outnumber cores and
// workers, so that each way has somebody to give way to.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "runtime/runtime_state.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

constexpr wait_policy policies[] = {wait_policy::help, wait_policy::park, wait_policy::spin,
                                    wait_policy::yield, wait_policy::directed};

class wait_policy_test : public machine_test {
 protected:
  static config by(wait_policy how) {
    config c = settings();
    c.wait = how;
    c.host_threads = 3 * available_cores() + 1;
    return c;
  }
};
LEV_ON_EVERY_MACHINE(wait_policy_test);

using crowd_test = wait_policy_test;
LEV_ON_MACHINES_OF_MANY_HOSTS(crowd_test);

using token_test = wait_policy_test;
LEV_ON_THREADS(token_test);

using frugal_test = wait_policy_test;
LEV_ON_THREADS(frugal_test);

// Runs body(index) on three threads for each core.
template <class Body>
void on_many_hosts(Body&& body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3 * available_cores(); ++i)
    threads.emplace_back([&body, i] { body(i); });
  for (std::thread& t : threads) t.join();
}

LEV_TEST(wait_policy_test, of_the_runtime) {
  for (const wait_policy how : policies) {
    runtime& r = open(by(how));
    for (std::int64_t i = 0; i < 50; ++i) {
      std::int64_t result = 0;
      ticket t = r.submit(square, std::int64_t{i}, result);
      expect_ok(t);
      ASSERT_EQ(result, i * i);
    }
    counter n = 0;
    for (int i = 0; i < 50; ++i) r.post(count_one, ref{&n});
    expect_all_done();
    ASSERT_EQ(n, 50);
  }
}

LEV_TEST(wait_policy_test, of_one_wait) {
  runtime& r = open(by(wait_policy::park));
  for (int i = 0; i < 20; ++i) {
    for (const wait_policy how : policies) {
      std::int64_t results[3] = {};
      ticket t[3];
      for (std::int64_t k = 0; k < 3; ++k) t[k] = r.submit(square, std::int64_t{k}, results[k]);
      std::size_t index = 0;
      ASSERT_EQ(wait_any(t, 3, &index, wait_limit_ns(), how).code, status::ok);
      ASSERT_EQ(wait_all(t, 3, wait_limit_ns(), how).code, status::ok);
      for (std::int64_t k = 0; k < 3; ++k) ASSERT_EQ(results[k], k * k);
      r.submit(nothing).wait(how);
    }
  }
}

LEV_TEST(wait_policy_test, that_helps_by_itself_runs_tasks_here) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open(by(wait_policy::park));
  gate closed(r, r.workers());
  if (is_sim()) GTEST_SKIP() << "the gate ends by itself";
  counter n = 0;
  ticket t = r.submit(count_one, ref{&n});
  EXPECT_EQ(t.wait_outcome(1'000'000).code, status::timed_out);
  EXPECT_EQ(n, 0);
  EXPECT_EQ(t.wait_outcome(wait_limit_ns(), wait_policy::help).code, status::ok);
  EXPECT_EQ(n, 1);
  EXPECT_EQ(r.count().helped, 1u);
}

LEV_TEST(wait_policy_test, ends_at_its_time_out) {
  runtime& r = open(by(wait_policy::park));
  gate closed(r, r.workers());
  ticket t = r.submit(nothing);
  for (const wait_policy how : policies) {
    if (how == wait_policy::help) continue;
    EXPECT_EQ(t.wait_outcome(0, how).code, status::timed_out);
    EXPECT_EQ(t.wait_outcome(100'000, how).code, status::timed_out);
  }
  closed.open();
  expect_ok(t);
}

LEV_TEST(wait_policy_test, that_there_is_none_of) {
  runtime& r = open(by(wait_policy::park));
  ticket t = r.submit(nothing);
  std::size_t index = 0;
  constexpr unsigned first = static_cast<unsigned>(wait_policy::of_runtime) + 1;
  for (const unsigned wrong : {first, 77u, 255u}) {
    const auto how = static_cast<wait_policy>(wrong);
    EXPECT_EQ(t.wait_outcome(no_timeout, how).code, status::bad_argument);
    EXPECT_EQ(wait_any(&t, 1, &index, no_timeout, how).code, status::bad_argument);
    EXPECT_EQ(wait_all(&t, 1, no_timeout, how).code, status::bad_argument);
    ASSERT_TRUE(t) << "nothing is consumed";
  }
  expect_ok(t);
}

LEV_TEST(wait_policy_test, a_task_that_waits_helps_whatever_it_asks_for) {
  LEV_SKIP_IF_REMOTE();
  static const auto parent = define("wait_policy.parent", [](ref<runtime> r, ref<counter> n) {
    for (const wait_policy how : policies) r.to->submit(count_one, n).wait(how);
  });
  for (const wait_policy how : policies) {
    config c = by(how);
    c.workers = 1;
    runtime& r = open(c);
    counter n = 0;
    expect_ok(r.submit(parent, ref{&r}, ref{&n}));
    ASSERT_EQ(n, static_cast<int>(std::size(policies)));
  }
}

LEV_TEST(wait_policy_test, when_all_tickets_are_in_use) {
  for (const wait_policy how : policies) {
    for (const when_full full : {when_full::help, when_full::wait}) {
      config c = by(how);
      c.tickets = 8;
      c.full = full;
      runtime& r = open(c);
      counter n = 0;
      for (int i = 0; i < 100; ++i) r.post(count_one, ref{&n});
      expect_all_done();
      ASSERT_EQ(n, 100);
    }
  }
}

const auto asks_until_refused =
    define("wait_policy.asks_until_refused", [](ref<runtime> home, ref<status> told) {
      std::vector<ticket> held;
      refusal why;
      while (ticket t = home.to->try_submit(pack(nothing), nullptr, &why))
        held.push_back(std::move(t));
      *told.to = why.code;
    });

// A host that polls takes no token, also not one that is left over from an earlier sleep: it runs
// nothing for all that, and the task that it waits for is told that there is no ticket.
LEV_TEST(token_test, that_comes_to_a_poller_is_no_work) {
  for (const wait_policy how : policies) {
    config c = by(how);
    c.workers = 1;
    c.tickets = 4;
    runtime& r = open(c);
    expect_ok(r.submit(nothing));
    status told = status::pending;
    ticket t = r.submit(asks_until_refused, ref{&r}, ref{&told});
    detail::runtime_state& s = *r.state();
    s.participants[s.first_host].park.unpark(*s.machine);
    expect_ok(t);
    ASSERT_EQ(told, status::would_block);
  }
}

LEV_TEST(crowd_test, of_hosts_that_submit_and_wait) {
  for (const wait_policy how : policies) {
    runtime& r = open(by(how));
    const int each = rounds(how == wait_policy::spin ? 20 : 100);
    on_many_hosts([&](unsigned) {
      for (std::int64_t i = 0; i < each; ++i) {
        std::int64_t result = 0;
        ticket t = r.submit(square, std::int64_t{i}, result);
        ASSERT_EQ(wait(t).code, status::ok);
        ASSERT_EQ(result, i * i);
      }
    });
  }
}

// Those that hand their core over, those that sleep and those that help wait for each other's
// workers.
LEV_TEST(crowd_test, of_hosts_that_wait_in_different_ways) {
  runtime& r = open(by(wait_policy::help));
  counter n = 0;
  const int each = rounds(100);
  on_many_hosts([&](unsigned index) {
    random_source random(base_seed() + index);
    for (int i = 0; i < each; ++i) {
      const wait_policy how = policies[random.below(std::size(policies))];
      ticket t[2] = {r.submit(count_one, ref{&n}), r.submit(count_one, ref{&n})};
      std::size_t done = 0;
      ASSERT_EQ(wait_any(t, 2, &done, wait_limit_ns(), how).code, status::ok);
      ASSERT_EQ(wait_all(t, 2, wait_limit_ns(), how).code, status::ok);
    }
  });
  EXPECT_EQ(n, 2 * each * static_cast<int>(3 * available_cores()));
}

// Sleepers of `directed` that are named when they have just given up, and when they come back.
LEV_TEST(crowd_test, of_hosts_that_lose_patience) {
  runtime& r = open(by(wait_policy::directed));
  const int each = rounds(100);
  on_many_hosts([&](unsigned index) {
    random_source random(base_seed() + index);
    for (int i = 0; i < each; ++i) {
      std::int64_t result = 0;
      ticket t = r.submit(square, std::int64_t{i}, result);
      outcome o;
      do {
        o = t.wait_outcome(1 + random.below(30'000));
      } while (o.code == status::timed_out);
      ASSERT_EQ(o.code, status::ok);
      ASSERT_EQ(result, std::int64_t{i} * i);
    }
  });
}

// Two wait for one ticket, which wakes everybody.
LEV_TEST(crowd_test, of_hosts_at_one_ticket) {
  runtime& r = open(by(wait_policy::directed));
  for (int i = 0; i < rounds(20); ++i) {
    ticket t = r.submit(nothing);
    std::atomic<int> collected{0};
    on_many_hosts([&](unsigned) {
      ticket copy(t.home(), t.id());
      const status code = wait(copy).code;
      collected += code == status::ok;
    });
    t.forget();
    ASSERT_EQ(collected, 1);
  }
}

// One that is handed the core goes away for good: those who sleep are woken by their workers.
LEV_TEST(crowd_test, whose_poller_leaves) {
  runtime& r = open(by(wait_policy::directed));
  for (int i = 0; i < rounds(20); ++i) {
    std::vector<ticket> t(3 * available_cores());
    {
      gate closed(r, r.workers());
      for (ticket& each : t) each = r.submit(nothing);
      std::atomic<unsigned> started{0};
      std::thread opener([&] {
        while (started < t.size()) std::this_thread::yield();
        closed.open();
      });
      on_many_hosts([&](unsigned index) {
        ++started;
        // Every third comes back from its wait long before its task is complete.
        if (index % 3 == 0 && t[index].wait_outcome(1'000).code != status::timed_out) return;
        EXPECT_EQ(wait(t[index]).code, status::ok);
      });
      opener.join();
    }
  }
}

const auto stay = define("wait_policy.stay", [](ref<gate_state> g) {
  g.to->started.fetch_add(1);
  while (!g.to->is_open) std::this_thread::yield();
});

std::uint64_t thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// The wait of the default policy is a short poll and then a sleep, however long it lasts.
LEV_TEST(frugal_test, a_default_wait_costs_little_of_the_core) {
  runtime& r = open();
  shared<gate_state> g;
  std::vector<ticket> tasks;
  for (unsigned i = 0; i < r.workers(); ++i) tasks.push_back(r.submit(stay, ref{&g}));
  while (g->started < static_cast<int>(r.workers())) std::this_thread::yield();
  const std::uint64_t before = thread_cpu_ns();
  EXPECT_EQ(tasks[0].wait_outcome(100'000'000).code, status::timed_out);
  const std::uint64_t used = thread_cpu_ns() - before;
  g->is_open = true;
  for (ticket& t : tasks) expect_ok(t);
  EXPECT_LE(used, 100'000'000u / 10);
}

// The time that the process has had on its cores, without this thread.
std::uint64_t others_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec) - thread_cpu_ns();
}

// As many workers as cores, and a host: one that polled would take the core from another thread.
LEV_TEST(frugal_test, idle_workers_of_a_full_machine_do_not_poll) {
  config c = settings();
  c.workers = static_cast<int>(available_cores());
  c.spin_ns = 4'000'000'000;
  const std::uint64_t before = others_cpu_ns();
  runtime& r = open(c);
  while (r.count().parks < r.workers()) std::this_thread::yield();
  EXPECT_LE(others_cpu_ns() - before, 500'000'000u);
}

}  // namespace
}  // namespace lev::test
