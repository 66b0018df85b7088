// Conformance: host threads and runtimes in the plural. Threads come and go, there may be too many,
// and runtimes live side by side and inside each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/runtime_state.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using hosts_test = machine_test;
LEV_ON_MACHINES_OF_MANY_HOSTS(hosts_test);

// Every machine: what one host thread can do.
using runtimes_test = machine_test;
LEV_ON_EVERY_MACHINE(runtimes_test);

template <class Body>
void on_threads(int count, Body&& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& t : threads) t.join();
}

LEV_TEST(hosts_test, several_submit_and_wait_at_once) {
  runtime& r = open();
  counter n = 0;
  on_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      std::int64_t result = 0;
      ticket a = r.submit(square, std::int64_t{i}, result);
      ticket b = r.submit(count_one, ref{&n});
      ASSERT_EQ(wait(b).code, status::ok);
      ASSERT_EQ(wait(a).code, status::ok);
      ASSERT_EQ(result, std::int64_t{i} * i);
    }
  });
  EXPECT_EQ(n, 400);
}

LEV_TEST(hosts_test, a_ticket_may_be_waited_for_by_another_thread) {
  runtime& r = open();
  for (int i = 0; i < 50; ++i) {
    std::int64_t result = 0;
    ticket t = r.submit(square, std::int64_t{7}, result);
    std::thread([&t] { EXPECT_EQ(wait(t).code, status::ok); }).join();
    ASSERT_EQ(result, 49);
  }
}

// How many participants sleep; those of hosts only, or all.
template <class Counts>
int sleepers(runtime& r, const Counts& counts) {
  const std::span participants(r.state()->participants, r.state()->participant_count);
  return static_cast<int>(
      std::count_if(participants.begin(), participants.end(),
                    [&](const participant& p) { return counts(p) && p.park.is_asleep(); }));
}
bool is_host(const participant& p) {
  return !p.is_worker;
}
std::uint64_t host_parks(runtime& r) {
  std::uint64_t parks = 0;
  for (const participant& p : std::span(r.state()->participants, r.state()->participant_count))
    parks += is_host(p) ? p.counters.parks.read() : 0;
  return parks;
}

// Of the hosts that sleep for a ticket, one is woken for each that comes back, and perhaps the next
// one in vain. A task runs meanwhile, or each would look whether it waits for itself.
LEV_TEST(hosts_test, a_ticket_that_comes_back_does_not_wake_all_hosts) {
  if (is_remote()) GTEST_SKIP() << "the ends of tasks wake hosts, too";
  constexpr int hosts = 7;
  config c = settings();
  c.tickets = hosts + 1;
  c.host_threads = hosts + 1;
  c.full = when_full::wait;
  runtime& r = open(c);
  counter n = 0;
  std::vector<ticket> all;
  for (int i = 0; i < hosts; ++i) all.push_back(r.submit(count_one, ref{&n}));
  while (n != hosts) std::this_thread::yield();
  gate g(r, 1);
  std::atomic<int> submitted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < hosts; ++i) {
    threads.emplace_back([&] {
      const ticket t = r.submit(count_one, ref{&n});
      ++submitted;
      while (submitted != hosts) std::this_thread::yield();
    });
  }
  for (int i = 0; i < hosts; ++i) {
    while (submitted != i || sleepers(r, is_host) != hosts - i) std::this_thread::yield();
    EXPECT_EQ(wait(all[static_cast<std::size_t>(i)]).code, status::ok);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_LE(host_parks(r), 3u * hosts);
  g.open();
}

// All tasks are complete meanwhile, which is what a host that may wait for itself looks at.
LEV_TEST(hosts_test, hosts_that_sleep_for_a_ticket_let_each_other_sleep) {
  if (is_remote()) GTEST_SKIP() << "the ends of tasks wake hosts, too";
  constexpr int hosts = 8;
  config c = settings();
  c.tickets = hosts;
  c.host_threads = hosts + 1;
  runtime& r = open(c);
  counter n = 0;
  std::vector<ticket> all;
  for (int i = 0; i < hosts; ++i) all.push_back(r.submit(count_one, ref{&n}));
  std::vector<std::thread> threads;
  for (int i = 0; i < hosts; ++i) {
    threads.emplace_back([&] {
      ticket t = r.submit(count_one, ref{&n});
      EXPECT_EQ(wait(t).code, status::ok);
    });
  }
  const int everybody = hosts + static_cast<int>(r.workers());
  const auto all_sleep = [&] {
    return sleepers(r, [](const participant&) { return true; }) == everybody;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_limit_ns());
  while (!all_sleep() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(all_sleep());
  const std::uint64_t parks = host_parks(r);
  for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
  EXPECT_EQ(host_parks(r), parks);
  for (ticket& t : all) EXPECT_EQ(wait(t).code, status::ok);
  for (std::thread& t : threads) t.join();
}

// Each host has a slot of its own, which needs no place in a queue.
LEV_TEST(hosts_test, there_may_be_many_more_hosts_than_tickets) {
  config c = settings();
  c.workers = 1;
  c.tickets = 8;
  c.wait = wait_policy::park;
  for (const unsigned hosts : {40u, 200u, 1000u}) {
    c.host_threads = hosts;
    counter n = 0;
    runtime r(c);
    for (int i = 0; i < 100; ++i) r.post(count_one, ref{&n});
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
    EXPECT_EQ(n, 100);
  }
}

// Each bulk holds a ticket while it wants others.
LEV_TEST(hosts_test, as_many_bulks_as_tickets_end) {
  for (const when_full full : {when_full::help, when_full::wait}) {
    config c = settings();
    c.tickets = 4;
    c.full = full;
    runtime& r = open(c);
    counter n = 0;
    on_threads(6, [&](int) {
      for (int i = 0; i < 20; ++i) {
        const auto make = [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); };
        ticket t = r.submit_bulk(9, make);
        ASSERT_EQ(wait(t).code, status::ok);
      }
    });
    EXPECT_EQ(n, 6 * 20 * 9);
  }
}

// Tasks that a bulk holds back until they are a batch must not keep its own maker from a ticket.
LEV_TEST(hosts_test, the_maker_of_a_bulk_may_submit_and_wait) {
  config c = settings();
  c.tickets = 6;
  runtime& r = open(c);
  std::atomic<bool> is_over{false};
  std::atomic<bool> is_bound{false};
  std::thread second([&] {
    expect_ok(r.submit(nothing));
    is_bound = true;
    while (!is_over) std::this_thread::yield();
  });
  while (!is_bound) std::this_thread::yield();
  counter n = 0;
  const auto make = [&](std::size_t, descriptor& d) {
    expect_ok(r.submit(count_one, ref{&n}));
    d = pack(count_one, ref{&n});
  };
  ticket t = r.submit_bulk(40, make);
  expect_ok(t);
  is_over = true;
  second.join();
  EXPECT_EQ(n, 80);
}

LEV_TEST(hosts_test, one_ticket_is_collected_by_one_of_many) {
  runtime& r = open();
  for (int i = 0; i < 50; ++i) {
    ticket t = r.submit(nothing);
    std::atomic<int> collected{0};
    std::atomic<int> stale{0};
    on_threads(3, [&](int) {
      ticket copy(t.home(), t.id());
      const status code = wait(copy).code;
      collected += code == status::ok;
      stale += code == status::stale_ticket;
    });
    t.forget();
    ASSERT_EQ(collected, 1);
    ASSERT_EQ(stale, 2);
  }
}

LEV_TEST(hosts_test, one_more_than_configured_is_told) {
  config c = settings();
  c.host_threads = 2;
  runtime& r = open(c);
  expect_ok(r.submit(nothing));
  std::atomic<int> inside{0};
  std::atomic<bool> leave{false};
  std::thread second([&] {
    expect_ok(r.submit(nothing));
    inside = 1;
    inside.notify_all();
    leave.wait(false);
  });
  inside.wait(0);
  ticket t = r.submit(nothing);
  while (!t.done()) r.submit(nothing).wait();
  std::thread third([&] {
    refusal why;
    EXPECT_FALSE(r.try_submit(pack(nothing), nullptr, &why));
    EXPECT_EQ(why.code, status::would_block);
    // A task that is done needs no wait, and so no place.
    EXPECT_EQ(t.wait_outcome().code, status::ok);
    EXPECT_FALSE(t);
    EXPECT_EQ(r.wait_for_completion().code, status::would_block);
    EXPECT_EQ(r.set_filters(nullptr, 0), status::would_block);
    ticket(r.state(), t.id()).release();
  });
  third.join();
  t.forget();
  leave = true;
  leave.notify_all();
  second.join();
  // Its place is free again.
  std::thread([&] { expect_ok(r.submit(nothing)); }).join();
}

// The opener never called in, and the only place is taken by a thread that lives on.
LEV_TEST(hosts_test, the_destructor_works_without_a_place_for_its_thread) {
  config c = settings();
  c.host_threads = 1;
  counter n = 0;
  std::atomic<bool> submitted{false};
  std::atomic<bool> leave{false};
  auto r = std::make_unique<runtime>(c);
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) r->submit(count_one, ref{&n});
    submitted = true;
    submitted.notify_all();
    leave.wait(false);
  });
  submitted.wait(false);
  r.reset();
  EXPECT_EQ(n, 100);
  leave = true;
  leave.notify_all();
  other.join();
}

LEV_TEST(hosts_test, threads_come_and_go) {
  config c = settings();
  c.host_threads = 3;
  c.tickets = 32;
  runtime& r = open(c);
  counter n = 0;
  for (int i = 0; i < 60; ++i) {
    on_threads(2, [&](int) {
      for (int k = 0; k < 20; ++k) r.submit(count_one, ref{&n});
    });
  }
  expect_all_done();
  EXPECT_EQ(n, 2400);
}

// A thread that ends leaves the slots it kept for itself to those that wait for one.
LEV_TEST(hosts_test, slots_of_a_thread_that_ends_are_not_lost) {
  config c = settings();
  c.tickets = 8;
  c.host_threads = 2;
  c.full = when_full::wait;
  runtime& r = open(c);
  counter n = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread([&] { r.submit(count_one, ref{&n}).release(); }).join();
    for (int k = 0; k < 8; ++k) r.submit(count_one, ref{&n}).release();
  }
  expect_all_done();
  EXPECT_EQ(n, 900);
}

// A host that helped in submit() and goes away for good must not keep what others wait for.
LEV_TEST(hosts_test, a_host_that_helped_leaves_nothing_behind) {
  config c = settings();
  c.tickets = 16;
  runtime& r = open(c);
  for (int i = 0; i < 30; ++i) {
    counter n = 0;
    ticket bulk;
    std::atomic<bool> submitted{false};
    std::atomic<bool> leave{false};
    std::thread helper([&] {
      bulk = r.submit_bulk(100, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
      for (int k = 0; k < 100; ++k) r.submit(count_one, ref{&n}).release();
      submitted = true;
      submitted.notify_all();
      leave.wait(false);
    });
    submitted.wait(false);
    expect_ok(bulk);
    expect_all_done();
    EXPECT_EQ(n, 200);
    leave = true;
    leave.notify_all();
    helper.join();
  }
}

LEV_TEST(runtimes_test, several_side_by_side) {
  runtime& a = open();
  runtime b(settings());
  runtime c(settings());
  counter n = 0;
  for (int i = 0; i < 100; ++i) {
    ticket x = a.submit(count_one, ref{&n});
    ticket y = b.submit(count_one, ref{&n});
    ticket z = c.submit(count_one, ref{&n});
    expect_ok(z);
    expect_ok(x);
    expect_ok(y);
  }
  EXPECT_EQ(n, 300);
  EXPECT_EQ(b.close(wait_limit_ns()), status::ok);
  expect_ok(a.submit(nothing));
}

// A task of one runtime opens another, uses it and closes it.
const auto use_inner = define("hosts.use_inner", [](ref<const config> c, ref<counter> n) {
  runtime inner(*c.to);
  std::vector<ticket> t;
  for (int i = 0; i < 20; ++i) t.push_back(inner.submit(count_one, n));
  EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
});

LEV_TEST(runtimes_test, one_inside_a_task_of_the_other) {
  LEV_SKIP_IF_REMOTE();
  runtime& outer = open();
  const config inner = settings();
  counter n = 0;
  std::vector<ticket> t;
  for (int i = 0; i < 6; ++i)
    t.push_back(outer.submit(use_inner, ref<const config>{&inner}, ref{&n}));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(n, 120);
}

LEV_TEST(runtimes_test, of_different_machines_inside_each_other) {
  LEV_SKIP_IF_REMOTE();
  runtime& outer = open();
  config inner = settings();
  inner.machine = is_sim() ? "threads" : "sim";
  counter n = 0;
  for (int i = 0; i < 3; ++i)
    expect_ok(outer.submit(use_inner, ref<const config>{&inner}, ref{&n}));
  EXPECT_EQ(n, 60);
}

LEV_TEST(runtimes_test, tasks_of_one_submit_to_another) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "the workers of one are no host of the other";
  runtime& a = open();
  runtime b(settings());
  static const auto forward = define(
      "hosts.forward", [](ref<runtime> to, ref<counter> n) { to.to->submit(count_one, n).wait(); });
  counter n = 0;
  std::vector<ticket> t;
  for (int i = 0; i < 50; ++i) t.push_back(a.submit(forward, ref{&b}, ref{&n}));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(n, 50);
}

using guests_test = machine_test;
LEV_ON_THREADS(guests_test);

struct round_trip {
  ticket there[contexts_max];
  std::vector<ticket> here;
  std::atomic<unsigned> waiting{0};
  std::atomic<bool> may_wait{false};
  std::atomic<int> early{0};
};
const auto waits_for_a_time = define("hosts.waits_for_a_time", [](ref<round_trip> r) {
  const unsigned i = r.to->waiting++;
  this_task().wait_until([&] { return r.to->may_wait && r.to->waiting == contexts_max; });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  EXPECT_EQ(r.to->there[i].wait_outcome(200'000'000).code, status::timed_out);
  r.to->early += std::chrono::steady_clock::now() < end;
});
const auto waits_for_those = define("hosts.waits_for_those", [](ref<round_trip> r) {
  for (ticket& t : r.to->here) t.wait();
});

// Each would wait for the other for ever, if it were not for their time.
LEV_TEST(guests_test, waits_elsewhere_with_a_time_limit_are_not_in_vain) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& there = open(c);
  runtime near(c);
  round_trip r;
  // A host that goes on could still do something about it: this one ends.
  std::thread([&] {
    for (unsigned i = 0; i < contexts_max; ++i)
      r.here.push_back(near.submit(waits_for_a_time, ref{&r}));
  }).join();
  ticket last = there.submit(waits_for_those, ref{&r});
  for (ticket& t : r.there) t = there.submit(options().after(last), nothing);
  r.may_wait = true;
  EXPECT_EQ(last.wait_outcome().code, status::ok);  // with no time limit of its own
  EXPECT_EQ(r.early, 0);
}

}  // namespace
}  // namespace lev::test
