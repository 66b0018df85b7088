// Conformance: after(). Chains, fans and diamonds run in order; a failure is passed on to all that
// depend on it, each once, without running them.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

class dependency_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(dependency_test);

using words = std::vector<std::uint64_t>;

// x = 3 x + n: the order of such steps shows in the result.
const auto step_on =
    define("dependency.step", [](inout<std::uint64_t> x, std::uint64_t n) { x[0] = 3 * x[0] + n; });
std::uint64_t after_steps(std::uint64_t count) {
  std::uint64_t x = 1;
  for (std::uint64_t n = 0; n < count; ++n) x = 3 * x + n;
  return x;
}

LEV_TEST(dependency_test, a_chain_of_ten_thousand_in_a_window) {
  config c = settings();
  c.tickets = 256;
  runtime& r = open(c);
  constexpr std::uint64_t count = 10'000;
  words x(1, 1);
  ticket last = r.submit(step_on, x, std::uint64_t{0});
  for (std::uint64_t n = 1; n < count; ++n) last = r.submit(after(last), step_on, x, n);
  expect_ok(last);
  EXPECT_EQ(x[0], after_steps(count));
}

LEV_TEST(dependency_test, several_chains_side_by_side) {
  runtime& r = open();
  constexpr std::size_t chains = 20;
  words x(chains, 1);
  std::vector<ticket> last(chains);
  for (std::uint64_t n = 0; n < 100; ++n) {
    for (std::size_t i = 0; i < chains; ++i) {
      options o;
      if (last[i]) o.after(last[i]);
      last[i] = r.submit(o, step_on, view(&x[i], 1), n);
    }
  }
  EXPECT_EQ(wait_all(last.data(), chains, wait_limit_ns()).code, status::ok);
  for (const std::uint64_t one : x) EXPECT_EQ(one, after_steps(100));
}

const auto sum_two = define(
    "dependency.sum_two",
    [](in<std::uint64_t> a, in<std::uint64_t> b, out<std::uint64_t> sum) { sum[0] = a[0] + b[0]; });

LEV_TEST(dependency_test, a_diamond) {
  runtime& r = open();
  for (std::uint64_t i = 0; i < 100; ++i) {
    words x(4, 0);
    ticket top = r.submit(store, i, view(&x[0], 1));
    ticket left = r.submit(after(top), sum_two, view(&x[0], 1), view(&x[0], 1), view(&x[1], 1));
    ticket right = r.submit(after(top), store, i + 5, view(&x[2], 1));
    ticket bottom =
        r.submit(after(left, right), sum_two, view(&x[1], 1), view(&x[2], 1), view(&x[3], 1));
    expect_ok(bottom);
    ASSERT_EQ(x[3], 3 * i + 5);
  }
}

LEV_TEST(dependency_test, a_thousand_tasks_behind_one) {
  config c = settings();
  c.tickets = 2048;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  words x(1, 0);
  words seen(1000, 0);
  {
    gate g(r, r.workers());
    ticket first = r.submit(store, std::uint64_t{77}, x);
    for (std::uint64_t& one : seen) r.submit(after(first), sum_two, x, x, view(&one, 1));
  }
  expect_all_done();
  EXPECT_EQ(seen, words(1000, 154));
}

LEV_TEST(dependency_test, one_task_behind_as_many_as_there_may_be) {
  runtime& r = open();
  words x(options::after_max, 0);
  std::vector<ticket> first;
  for (std::uint64_t& one : x) first.push_back(r.submit(increment, view(&one, 1)));
  const ticket* all = first.data();
  ticket last = r.submit(options().after(all, first.size()), increment, x);
  expect_ok(last);
  EXPECT_EQ(x, words(options::after_max, 2));
  first.push_back(r.submit(nothing));
  all = first.data();
  expect_refused(status::too_big, "33",
                 [&] { r.submit(options().after(all, first.size()), nothing); });
}

LEV_TEST(dependency_test, the_same_predecessor_many_times) {
  runtime& r = open();
  counter n = 0;
  for (int i = 0; i < 50; ++i) {
    ticket first = r.submit(count_one, ref{&n});
    ticket next = r.submit(after(first, first, first, first), count_one, ref{&n});
    expect_ok(next);
  }
  EXPECT_EQ(n, 100);
}

LEV_TEST(dependency_test, a_predecessor_that_is_complete_already) {
  runtime& r = open();
  ticket good = r.submit(nothing);
  ticket bad = r.submit(throw_error, 1);
  expect_all_done();
  counter n = 0;
  ticket runs = r.submit(after(good), count_one, ref{&n});
  ticket fails = r.submit(after(good, bad), count_one, ref{&n});
  EXPECT_EQ(wait(runs).code, status::ok);
  EXPECT_EQ(wait(fails).code, status::dependency_failed);
  EXPECT_EQ(n, 1);
  EXPECT_EQ(wait(bad).code, status::task_failed);
}

LEV_TEST(dependency_test, a_failure_is_passed_on_through_a_long_chain) {
  runtime& r = open_parked();
  counter n = 0;
  counter called = 0;
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    t.push_back(r.submit(throw_error, 1));
    for (int i = 0; i < 900; ++i) {
      t.push_back(r.submit(after(t.back()), count_one, ref{&n}));
      t.back().then([](void* c) { ++*static_cast<counter*>(c); }, &called);
    }
  }
  EXPECT_EQ(wait(t[0]).code, status::task_failed);
  for (std::size_t i = 1; i < t.size(); ++i) {
    ASSERT_EQ(wait(t[i]).code, status::dependency_failed);
  }
  EXPECT_EQ(n, 0);
  expect_all_done();  // a wait for a ticket may return before its callback has run
  EXPECT_EQ(called, 900);
  EXPECT_EQ(r.count().failed, 901u);
}

LEV_TEST(dependency_test, a_failure_fans_out_and_is_reported_once_each) {
  runtime& r = open_parked();
  counter n = 0;
  {
    gate g(r, r.workers());
    ticket bad = r.submit(throw_error, 1);
    ticket good = r.submit(nothing);
    ticket waiting = r.submit(after(good), nothing);
    for (int i = 0; i < 300; ++i) r.submit(after(bad, good, waiting), count_one, ref{&n});
  }
  const outcome o = r.wait_for_completion(wait_limit_ns());
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 301u);
  EXPECT_EQ(n, 0);
}

LEV_TEST(dependency_test, a_cancelled_predecessor_has_failed) {
  runtime& r = open_parked();
  ticket first;
  ticket second;
  {
    gate g(r, r.workers());
    first = r.submit(nothing);
    second = r.submit(after(first), nothing);
    EXPECT_EQ(first.cancel(), status::ok);
  }
  EXPECT_EQ(wait(second).code, status::dependency_failed);
  EXPECT_EQ(wait(first).code, status::cancelled);
}

LEV_TEST(dependency_test, bulks_and_diced_tasks_as_predecessors) {
  runtime& r = open();
  words x(600, 0);
  ticket bulk = r.submit_bulk(
      600, [&](std::size_t i, descriptor& d) { d = pack(increment, view(&x[i], 1)); });
  ticket diced = r.submit(after(bulk).grain(1), increment, sliced(x));
  ticket last = r.submit(after(bulk, diced), increment, x);
  expect_ok(last);
  EXPECT_EQ(x, words(600, 3));
}

// Predecessors may be released: their tasks still come first.
LEV_TEST(dependency_test, a_predecessor_may_be_released_after_the_submit) {
  runtime& r = open();
  for (int i = 0; i < 200; ++i) {
    words x(1, 1);
    ticket first = r.submit(step_on, x, std::uint64_t{0});
    ticket second = r.submit(after(first), step_on, x, std::uint64_t{1});
    first.release();
    expect_ok(second);
    ASSERT_EQ(x[0], after_steps(2));
  }
}

// Tasks that submit successors of each other.
const procedure<void(ref<runtime>, ref<counter>, int)>& spawner();
void spawn(ref<runtime> home, ref<counter> n, int depth) {
  ++*n.to;
  if (depth == 0) return;
  ticket a = home.to->submit(spawner(), home, n, depth - 1);
  ticket b = home.to->submit(after(a), spawner(), home, n, depth - 1);
  home.to->submit(after(a, b), count_one, n).release();
}
const procedure<void(ref<runtime>, ref<counter>, int)>& spawner() {
  static const auto p = define("dependency.spawner", &spawn);
  return p;
}

LEV_TEST(dependency_test, tasks_build_graphs_too) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  counter n = 0;
  r.submit(spawner(), ref{&r}, ref{&n}, 6);
  expect_all_done();
  EXPECT_EQ(n, 127 + 63);
}

// Few edges: submits wait until others are given back.
LEV_TEST(dependency_test, more_edges_than_there_are) {
  config c = settings();
  c.tickets = 8;
  runtime& r = open(c);
  words x(1, 1);
  std::vector<ticket> window;
  for (std::uint64_t n = 0; n < 300; ++n) {
    options o;
    for (const ticket& t : window) o.after(t).after(t).after(t).after(t).after(t);
    window.push_back(r.submit(o, step_on, x, n));
    if (window.size() > 4) window.erase(window.begin());
  }
  window.clear();
  expect_all_done();
  EXPECT_EQ(x[0], after_steps(300));
}

// A task that a submit runs while it waits for a slot waits for the ticket that the submit names.
const auto wait_for_it = define("dependency.wait_for_it", [](ref<ticket> of) { of.to->wait(); });

LEV_TEST(dependency_test, a_predecessor_that_is_consumed_meanwhile_refuses_the_submit) {
  LEV_SKIP_IF_REMOTE();
  constexpr std::size_t tickets = 32;
  config c = settings();
  c.tickets = tickets;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  ticket other = r.submit(nothing);
  ticket first = r.submit(nothing);
  while (!first.done()) std::this_thread::yield();
  {
    gate g(r, r.workers());
    std::vector<ticket> held;
    held.push_back(r.submit(wait_for_it, ref{&first}));
    while (held.size() + 2 + r.workers() * (is_sim() ? 4 : 1) < tickets)
      held.push_back(r.submit(nothing));
    refusal why;
    EXPECT_FALSE(r.try_submit(pack(nothing), &options().after(other).after(first).locks(m), &why));
    EXPECT_EQ(why.code, status::stale_ticket) << why.message;
    g.open();
    EXPECT_EQ(wait_all(held.data(), held.size(), wait_limit_ns()).code, status::ok);
  }
  expect_ok(other);
  expect_all_done();
  std::vector<ticket> all(tickets);  // nothing was kept
  for (ticket& t : all) t = r.submit(nothing);
  EXPECT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
  expect_ok(r.submit(locks(m), nothing));
}

}  // namespace
}  // namespace lev::test
