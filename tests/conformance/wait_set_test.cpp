// Conformance: waiting for all and for any of a set of tickets.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class wait_set_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
  static outcome any(std::vector<ticket>& t, std::size_t* index) {
    return wait_any(t, index, wait_limit_ns());
  }
  static outcome all(std::vector<ticket>& t) { return wait_all(t, wait_limit_ns()); }
};
LEV_ON_EVERY_MACHINE(wait_set_test);

LEV_TEST(wait_set_test, all_waits_for_every_ticket_and_empties_them) {
  runtime& r = open();
  counter n = 0;
  std::vector<ticket> t;
  for (int i = 0; i < 300; ++i) t.push_back(r.submit(count_one, ref{&n}));
  EXPECT_EQ(all(t).code, status::ok);
  EXPECT_EQ(n, 300);
  for (const ticket& one : t) EXPECT_FALSE(one);
  EXPECT_EQ(all(t).code, status::ok);
}

LEV_TEST(wait_set_test, containers_of_tickets_are_predecessors_and_are_waited_for) {
  runtime& r = open();
  counter n = 0;
  std::array<ticket, 3> first;
  for (ticket& t : first) t = r.submit(count_one, ref{&n});
  std::vector<ticket> second;
  second.push_back(r.submit(after(first), count_one, ref{&n}));
  second.push_back(r.submit(options().after(std::span<const ticket>(first)), count_one, ref{&n}));
  EXPECT_EQ(wait_all(second).code, status::ok);
  EXPECT_EQ(n, 5);
  std::size_t index = none_ready;
  EXPECT_EQ(wait_any(std::span<ticket>(first), &index).code, status::ok);
  ASSERT_LT(index, first.size());
  EXPECT_FALSE(first[index]);
  EXPECT_EQ(wait_all(first).code, status::ok);
}

LEV_TEST(wait_set_test, all_of_nothing_is_done_at_once) {
  open();
  std::vector<ticket> t(5);
  EXPECT_EQ(all(t).code, status::ok);
  EXPECT_EQ(wait_all(nullptr, 0).code, status::ok);
}

LEV_TEST(wait_set_test, all_gives_the_first_failure_by_position_and_counts_them) {
  runtime& r = open();
  std::vector<ticket> t;
  for (int i = 0; i < 20; ++i) {
    t.push_back(i % 5 == 3 ? r.submit(throw_error, i) : r.submit(nothing));
  }
  const outcome o = all(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 4u);
  ASSERT_TRUE(o.exception);
  try {
    std::rethrow_exception(o.exception);
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "failed with 3");
  }
}

LEV_TEST(wait_set_test, all_with_a_time_out_keeps_what_is_not_done) {
  runtime& r = open_parked();
  std::vector<ticket> t;
  t.push_back(r.submit(nothing));
  expect_all_done();
  {
    gate g(r, r.workers());
    for (int i = 0; i < 3; ++i) t.push_back(r.submit(nothing));
    outcome o = wait_all(t.data(), t.size(), 1000);
    EXPECT_EQ(o.code, status::timed_out);
    EXPECT_EQ(o.failures, 0u);
    EXPECT_FALSE(t[0]);
    for (std::size_t i = 1; i < t.size(); ++i) EXPECT_TRUE(t[i]);
    EXPECT_EQ(wait_all(t.data(), t.size(), 0).code, status::timed_out);
  }
  EXPECT_EQ(all(t).code, status::ok);
}

LEV_TEST(wait_set_test, any_takes_each_ticket_once) {
  runtime& r = open();
  std::vector<ticket> t;
  for (int i = 0; i < 50; ++i) t.push_back(r.submit(nothing));
  std::set<std::size_t> seen;
  for (int i = 0; i < 50; ++i) {
    std::size_t index = none_ready;
    ASSERT_EQ(any(t, &index).code, status::ok);
    ASSERT_LT(index, t.size());
    EXPECT_FALSE(t[index]);
    EXPECT_TRUE(seen.insert(index).second);
  }
  std::size_t index = 7;
  EXPECT_EQ(any(t, &index).code, status::bad_argument);
  EXPECT_EQ(index, none_ready);
}

LEV_TEST(wait_set_test, any_among_several_ready_loses_none) {
  runtime& r = open();
  std::vector<ticket> t;
  for (int i = 0; i < 10; ++i) t.push_back(r.submit(nothing));
  expect_all_done();
  std::set<std::size_t> seen;
  std::size_t index = none_ready;
  while (any(t, &index).code == status::ok) seen.insert(index);
  EXPECT_EQ(seen.size(), 10u);
}

LEV_TEST(wait_set_test, any_returns_the_one_that_is_done) {
  runtime& r = open_parked();
  ticket first = r.submit(nothing);
  expect_all_done();
  gate g(r, r.workers());
  std::vector<ticket> t;
  t.push_back(r.submit(nothing));
  t.push_back(std::move(first));
  t.push_back(r.submit(nothing));
  std::size_t index = none_ready;
  EXPECT_EQ(any(t, &index).code, status::ok);
  EXPECT_EQ(index, 1u);
  EXPECT_TRUE(t[0]);
  EXPECT_TRUE(t[2]);
  EXPECT_EQ(wait_any(t.data(), 3, &index, 0).code, status::timed_out);
  EXPECT_EQ(index, none_ready);
  EXPECT_EQ(wait_any(t.data(), 3, &index, 10'000).code, status::timed_out);
  EXPECT_TRUE(t[0]);
}

LEV_TEST(wait_set_test, any_reports_a_failure_with_its_place) {
  runtime& r = open();
  std::vector<ticket> t(3);
  t[2] = r.submit(throw_error, 5);
  std::size_t index = none_ready;
  const outcome o = any(t, &index);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(index, 2u);
  EXPECT_TRUE(o.exception);
}

// A number that is there twice: its outcome is reported once, then it is stale.
LEV_TEST(wait_set_test, the_same_ticket_twice_is_reported_once) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  std::uint64_t ids[2] = {t.id(), t.id()};
  t.forget();
  std::size_t index = none_ready;
  EXPECT_EQ(detail::wait_any_id(r.state(), ids, 2, &index, wait_limit_ns()).code, status::ok);
  EXPECT_EQ(ids[index], 0u);
  const outcome second = detail::wait_any_id(r.state(), ids, 2, &index, wait_limit_ns());
  EXPECT_EQ(second.code, status::stale_ticket);
  EXPECT_EQ(detail::wait_any_id(r.state(), ids, 2, &index, 0).code, status::bad_argument);
}

// Always the next one is submitted when one is done: a sliding window.
LEV_TEST(wait_set_test, any_drives_a_window_of_tasks) {
  runtime& r = open();
  constexpr std::size_t window = 8;
  constexpr int count = 400;
  std::vector<std::int64_t> results(window);
  std::vector<ticket> t;
  std::int64_t sum = 0;
  std::int64_t next = 0;
  for (; next < static_cast<std::int64_t>(window); ++next) {
    t.push_back(r.submit(square, next, results[static_cast<std::size_t>(next)]));
  }
  for (std::size_t index = 0; any(t, &index).code == status::ok;) {
    sum += results[index];
    if (next < count) t[index] = r.submit(square, next++, results[index]);
  }
  EXPECT_EQ(sum, std::int64_t{count - 1} * count * (2 * count - 1) / 6);
}

LEV_TEST(wait_set_test, tickets_of_two_runtimes_cannot_be_waited_for_together) {
  if (is_sim()) GTEST_SKIP() << "a host of virtual time waits in one runtime at a time";
  runtime& a = open();
  runtime b(settings());
  std::vector<ticket> t;
  t.push_back(a.submit(nothing));
  t.push_back(b.submit(nothing));
  std::size_t index = 0;
  EXPECT_EQ(any(t, &index).code, status::bad_argument);
  EXPECT_EQ(all(t).code, status::ok);
}

// Numbers of tickets mean something in their own runtime only: two runtimes that were just opened
// give the same.
const auto await_opening = define("wait_set.await_opening", [](ref<counter> n) {
  while (*n.to == 0) std::this_thread::yield();
});
LEV_TEST(wait_set_test, all_takes_no_ticket_for_one_of_another_runtime) {
  if (!is_remote()) GTEST_SKIP() << "a host that helps would run the task that waits";
  runtime& a = open();
  runtime b(settings());
  counter is_open = 0;
  counter n = 0;
  std::vector<ticket> t;
  t.push_back(b.submit(await_opening, ref{&is_open}));
  for (int i = 0; i < 3; ++i) t.push_back(a.submit(count_one, ref{&n}));
  EXPECT_EQ(t[0].id(), t[1].id());
  while (n != 3) std::this_thread::yield();  // the first two, of one worker, have ended
  EXPECT_EQ(wait_all(t.data(), t.size(), 1000).code, status::timed_out);
  EXPECT_TRUE(t[0]);
  is_open = 1;
  EXPECT_EQ(all(t).code, status::ok);
  for (const ticket& each : t) EXPECT_FALSE(each);
  EXPECT_EQ(n, 3);
}

// Empty tickets between others, in and against the order in which the tasks were submitted; some
// with a callback, some that fail.
void count_call(void* to) {
  static_cast<std::atomic<int>*>(to)->fetch_add(1);
}
LEV_TEST(wait_set_test, all_finds_each_ticket_wherever_it_stands) {
  runtime& r = open();
  for (const bool is_reversed : {false, true}) {
    counter n = 0;
    std::atomic<int> calls{0};
    std::vector<ticket> t;
    for (int i = 0; i < 60; ++i) {
      if (i % 4 == 0) t.emplace_back();
      t.push_back(i % 7 == 5 ? r.submit(throw_error, i) : r.submit(count_one, ref{&n}));
      if (i % 11 == 3) t.back().then(&count_call, &calls);
    }
    if (is_reversed) std::reverse(t.begin(), t.end());
    const outcome o = all(t);
    EXPECT_EQ(o.code, status::task_failed);
    EXPECT_EQ(o.failures, 8u);
    EXPECT_EQ(n, 52);
    for (const ticket& each : t) EXPECT_FALSE(each);
    expect_all_done();
    EXPECT_EQ(calls, 6);
  }
}

// Each runtime's clock began when it was opened, and virtual time passes as it likes.
TEST(wait_set_clocks_test, a_time_out_is_as_long_in_each_runtime) {
  start_alarm();
  static const auto slow = define(
      "wait_set.slow",
      [] {
        for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
      },
      nullptr, [](const descriptor&) -> std::uint64_t { return 3'000'000'000; });
  constexpr std::int64_t second_ns = 1'000'000'000;
  config c;
  c.workers = 1;
  runtime real(c);
  c.machine = "sim";
  c.wait = wait_policy::park;
  runtime late(c);
  late.pass_time(1'000'000'000'000'000);
  ticket both[2] = {late.submit(slow), real.submit(slow)};  // the last one is waited for first
  EXPECT_EQ(wait_all(both, 2, 60 * second_ns).code, status::ok);
  ticket other[2] = {real.submit(slow), late.submit(slow)};
  const std::uint64_t begin = late.now_ns();
  EXPECT_EQ(wait_all(other, 2, 60 * second_ns).code, status::ok);
  EXPECT_LT(late.now_ns() - begin, 60u * second_ns);
}

// The time of a wait begins when it is called, not behind the children that it runs. These take all
// of it, and the one that a worker has lasts for half as long again, if nobody ends it.
struct timed_wait {
  runtime* home;
  std::atomic<status> code{status::pending};
  std::atomic<int> begun{0};
  std::atomic<int> run{0};
};
const auto run_here = define("wait_set.run_here", [](ref<timed_wait> w) {
  spend(std::chrono::milliseconds(34));
  ++w.to->run;
});
const auto lasts_longer = define("wait_set.lasts_longer", [](ref<timed_wait> w) {
  ++w.to->begun;
  while (w.to->run != 3) std::this_thread::yield();
  for (int i = 0; i < 50 && w.to->code == status::pending; ++i) spend(std::chrono::milliseconds(1));
});
const auto waits_in_time = define("wait_set.waits_in_time", [](ref<timed_wait> w) {
  ticket t[4];
  t[0] = w.to->home->submit(lasts_longer, w);
  // The other worker has the first one in hand when the last ones are run here.
  while (w.to->begun == 0) std::this_thread::yield();
  for (int i = 1; i < 4; ++i) t[i] = w.to->home->submit(run_here, w);
  w.to->code = wait_all(t, 4, 100'000'000).code;
  wait_all(t, 4);
});

// A thread that the system keeps from its core may look too late: then another round shows it.
LEV_TEST(wait_set_test, the_time_of_a_wait_begins_before_its_children) {
  if (is_sim()) GTEST_SKIP() << "its time passes by itself";
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.workers = 2;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  bool is_late = false;
  for (int round = 0; round < 10 && !is_late; ++round) {
    timed_wait w{&r};
    r.submit(waits_in_time, ref{&w}).wait();
    is_late = w.code == status::timed_out;
  }
  EXPECT_TRUE(is_late);
}

using flag = std::atomic<bool>;
const auto set_flag = define("wait_set.set_flag", [](ref<flag> f) { *f.to = true; });
const auto until_set = define("wait_set.until_set", [](ref<flag> f) {
  this_task().wait_until([&] { return f.to->load(); });
});
const auto all_in_steps =
    define("wait_set.all_in_steps", [](ref<runtime> home, ref<flag> f, ref<flag> begun) {
      ticket t[2] = {home.to->submit(until_set, f), home.to->submit(until_set, f)};
      *begun.to = true;
      while (wait_all(t, 2, 1).code == status::timed_out) {
      }
    });

// However short the steps are in which a task waits for all: here its children wait for a task that
// is queued behind it.
LEV_TEST(wait_set_test, all_in_short_steps_keeps_nobody_from_running) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.wait = wait_policy::park;
  c.workers = 1;
  runtime& r = open(c);
  flag is_set{false};
  flag has_begun{false};
  std::vector<ticket> t;
  t.push_back(r.submit(all_in_steps, ref{&r}, ref{&is_set}, ref{&has_begun}));
  while (!is_sim() && !has_begun) std::this_thread::yield();
  t.push_back(r.submit(set_flag, ref{&is_set}));
  EXPECT_EQ(all(t).code, status::ok);
}

// Only a wait has others' ends told: a set whose tasks have failed by now runs nobody's callback,
// which may want a lock that the waiter holds.
struct held_service {
  std::atomic<bool> is_in{false};
  std::atomic<bool> may_go{false};
};
const auto await_counter = define("wait_set.await_counter", [](ref<counter> n) {
  while (*n.to == 0) std::this_thread::yield();
});
LEV_TEST(wait_set_test, all_of_what_has_failed_by_now_runs_no_callback) {
  if (!is_remote() || GetParam().workers != 1)
    GTEST_SKIP() << "another worker would take what is behind the task";
  runtime& r = open();
  ticket failed = r.submit(throw_error, 1);
  expect_all_done();
  counter is_open[2] = {0, 0};
  counter n = 0;
  // The service is in a callback from here on, and tells no ends.
  held_service held;
  ticket first = r.submit(await_counter, ref{&is_open[0]});
  EXPECT_EQ(first.then(
                [](void* to) {
                  auto* h = static_cast<held_service*>(to);
                  h->is_in = true;
                  while (!h->may_go) std::this_thread::yield();
                },
                &held),
            status::ok);
  is_open[0] = 1;
  while (!held.is_in) std::this_thread::yield();
  std::atomic<bool> is_told{false};
  ticket second = r.submit(await_counter, ref{&is_open[1]});
  EXPECT_EQ(second.then([](void* to) { *static_cast<std::atomic<bool>*>(to) = true; }, &is_told),
            status::ok);
  ticket behind = r.submit(count_one, ref{&n});
  is_open[1] = 1;
  while (n == 0) std::this_thread::yield();  // the second one's end is there
  EXPECT_EQ(wait_all(&failed, 1, wait_limit_ns()).code, status::task_failed);
  EXPECT_FALSE(is_told);
  held.may_go = true;
  for (ticket* t : {&first, &second, &behind}) expect_ok(*t);
  expect_all_done();
  EXPECT_TRUE(is_told);
}

// A host that polls a set is as far ahead of the workers as before: letters are for the first tasks
// behind a wait.
const auto until_open = define("wait_set.until_open", [](ref<std::atomic<bool>> is_open) {
  while (!*is_open.to) std::this_thread::yield();
});
LEV_TEST(wait_set_test, a_poll_of_all_is_no_wait) {
  if (is_sim() || is_remote()) GTEST_SKIP() << "no worker of it polls a mailbox all the time";
  config c = settings();
  c.wait = wait_policy::park;
  c.spin_ns = 1'000'000'000;
  runtime& r = open(c);
  if (r.workers() < 2) GTEST_SKIP() << "no other worker runs tasks meanwhile";
  std::atomic<bool> is_open{false};
  const std::uint64_t before = r.count().direct;
  ticket pending = r.submit(until_open, ref{&is_open});
  for (int i = 0; i < 500; ++i) {
    ticket each = r.submit(nothing);
    while (!each.done()) std::this_thread::yield();
    EXPECT_EQ(wait_all(&pending, 1, 0).code, status::timed_out);
  }
  EXPECT_LE(r.count().direct - before, r.workers());
  is_open = true;
  expect_ok(pending);
}

}  // namespace
}  // namespace lev::test
