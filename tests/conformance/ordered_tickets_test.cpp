// Conformance: a scope of ordered tasks that stands still keeps no ticket of a complete task from a
// submitter that needs one, whoever submits and however it waits.
#include <gtest/gtest.h>
#include <leveret/this_task.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class ordered_tickets_test : public machine_test {
 protected:
  runtime& open_small(when_full full, int workers_min = 1) {
    config c = settings();
    if (c.workers < workers_min) c.workers = workers_min;
    c.tickets = 4;
    c.full = full;
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(ordered_tickets_test);

using ordered_local_tickets_test = ordered_tickets_test;
LEV_ON_LOCAL_MACHINES(ordered_local_tickets_test);

using ordered_hosts_test = ordered_tickets_test;
LEV_ON_THREADS(ordered_hosts_test);

const auto count_up =
    define("ordered_tickets.count_up", [](inout<std::uint64_t> x) { x.row(0)[0] += 1; });

const auto fail_at = define("ordered_tickets.fail_at",
                            [](inout<std::uint64_t>) { throw std::runtime_error("as told"); });

LEV_TEST(ordered_tickets_test, the_owner_of_a_scope_submits_others) {
  for (const when_full full : {when_full::fail, when_full::wait, when_full::help}) {
    runtime& r = open_small(full);
    std::vector<std::uint64_t> x(4, 1);
    ordered tasks(r);
    for (int round = 0; round < 3; ++round) {
      for (std::uint64_t& one : x) tasks.submit(count_up, view(&one, 1));
      expect_all_done();
      std::vector<ticket> others;
      for (int i = 0; i < 4; ++i) others.push_back(r.submit(nothing));
      EXPECT_EQ(wait_all(others.data(), others.size()).code, status::ok);
    }
    tasks.wait();
    EXPECT_EQ(x, std::vector<std::uint64_t>(4, 4));
  }
}

LEV_TEST(ordered_tickets_test, what_failed_is_told_by_the_scope) {
  runtime& r = open_small(when_full::fail);
  std::vector<std::uint64_t> x(4, 1);
  ordered tasks(r);
  tasks.submit(fail_at, view(&x[0], 1));
  tasks.submit(count_up, view(&x[0], 1));
  tasks.submit(count_up, view(&x[1], 1));
  tasks.submit(count_up, view(&x[2], 1));
  r.wait_for_completion(wait_limit_ns());
  std::vector<ticket> others;
  for (int i = 0; i < 4; ++i) others.push_back(r.submit(nothing));
  EXPECT_EQ(wait_all(others.data(), others.size()).code, status::ok);
  tasks.submit(count_up, view(&x[0], 1));
  const outcome o = tasks.wait_outcome(wait_limit_ns());
  expect_runtime_error(o);
  EXPECT_EQ(o.failures, 3u);
  EXPECT_EQ(x, (std::vector<std::uint64_t>{1, 2, 2, 1}));
}

// Long enough for another host to find no ticket, mostly.
void let_others_run() {
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
}

using door = std::atomic<bool>;
const auto await_door =
    define("ordered_tickets.await_door", [](ref<door> is_open, inout<std::uint64_t> x) {
      while (!is_open.to->load()) std::this_thread::yield();
      x.row(0)[0] += 1;
    });
const auto submits_and_waits = define("ordered_tickets.submits_and_waits", [](ref<runtime> home) {
  std::vector<ticket> all;
  for (int i = 0; i < 3; ++i) all.push_back(home.to->submit(nothing));
  for (ticket& t : all) t.wait();
});

// The tasks of the scope end after the other host has begun to wait for a ticket.
LEV_TEST(ordered_hosts_test, another_host_gets_tickets_that_become_free_later) {
  for (const when_full full : {when_full::wait, when_full::help}) {
    runtime& r = open_small(full);
    std::vector<std::uint64_t> x(4, 1);
    door is_open{false};
    ordered tasks(r);
    for (std::uint64_t& one : x) tasks.submit(await_door, ref{&is_open}, view(&one, 1));
    std::thread other([&] {
      r.submit(submits_and_waits, ref{&r}).wait();
      r.submit(nothing).wait();
    });
    let_others_run();
    is_open = true;
    other.join();
    tasks.wait();
    EXPECT_EQ(x, std::vector<std::uint64_t>(4, 2));
  }
}

// Each keeps all tickets for a while, and waits for none of its own.
LEV_TEST(ordered_hosts_test, scopes_of_several_hosts_take_turns) {
  runtime& r = open_small(when_full::wait);
  std::vector<std::thread> hosts;
  std::atomic<std::uint64_t> sum{0};
  for (int h = 0; h < 3; ++h) {
    hosts.emplace_back([&r, &sum] {
      std::vector<std::uint64_t> x(3, 0);
      ordered tasks(r);
      for (std::size_t i = 0; i < 300; ++i) {
        tasks.submit(count_up, view(&x[i % 3], 1));
        if (i % 50 == 0) let_others_run();
      }
      tasks.wait();
      for (const std::uint64_t one : x) sum += one;
    });
  }
  for (std::thread& h : hosts) h.join();
  EXPECT_EQ(sum, 900u);
}

// A task of the scope waits for one that finds no ticket, while the scope's owner waits for it.
LEV_TEST(ordered_hosts_test, the_owner_waits_for_one_that_needs_a_ticket) {
  runtime& r = open_small(when_full::wait, 2);
  std::vector<std::uint64_t> x(4, 1);
  door is_open{false};
  ordered tasks(r);
  for (std::size_t i = 0; i < 3; ++i) tasks.submit(count_up, view(&x[i], 1));
  tasks.submit(await_door, ref{&is_open}, view(&x[3], 1));
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) r.submit(nothing).wait();
    is_open = true;
  });
  tasks.wait();
  other.join();
  EXPECT_EQ(x, std::vector<std::uint64_t>(4, 2));
}

// A task of the scope that uses it, when its owner has begun to wait.
struct meddling {
  ordered* scope;
  std::atomic<int> refused{0};
};
const auto meddle = define("ordered_tickets.meddle", [](ref<meddling> m, inout<std::uint64_t>) {
  while (m.to->scope->wait_outcome(0).code != status::would_block) std::this_thread::yield();
  try {
    m.to->scope->submit(nothing);
  } catch (const error& e) {
    m.to->refused += e.code() == status::would_block;
  }
});

LEV_TEST(ordered_local_tickets_test, a_call_within_a_call_is_refused) {
  runtime& r = open_small(when_full::help);
  std::uint64_t x = 1;
  ordered tasks(r);
  meddling m{&tasks};
  tasks.submit(meddle, ref{&m}, view(&x, 1));
  while (tasks.wait_outcome(wait_limit_ns()).code == status::would_block) {
  }
  EXPECT_EQ(m.refused, 1);
}

LEV_TEST(ordered_hosts_test, a_call_beside_a_call_is_refused) {
  runtime& r = open_small(when_full::wait, 2);
  std::uint64_t x = 1;
  door is_open{false};
  ordered tasks(r);
  tasks.submit(await_door, ref{&is_open}, view(&x, 1));
  std::thread other([&] {
    std::uint64_t unused = 0;
    while (tasks.wait_outcome(0).code != status::would_block) std::this_thread::yield();
    try {
      tasks.submit(count_up, view(&unused, 1));
      ADD_FAILURE() << "was not refused";
    } catch (const error& e) {
      EXPECT_NE(std::string(e.what()).find("another call of this scope"), std::string::npos);
    }
    EXPECT_THROW(tasks.wait(), error);
    is_open = true;
  });
  while (tasks.wait_outcome(wait_limit_ns()).code == status::would_block) {
  }
  other.join();
  EXPECT_EQ(x, 2u);
}

// An exception that uses the runtime when it goes, and another scope.
struct reporter {
  reporter(runtime* r, std::atomic<int>* n) noexcept : home(r), told(n) {}
  reporter(reporter&&) = delete;
  ~reporter() {
    std::uint64_t unused = 0;
    ordered others(*home);
    others.submit(count_up, view(&unused, 1));
    others.wait();
    ++*told;
  }
  runtime* home;
  std::atomic<int>* told;
};
const auto report = define("ordered_tickets.report",
                           [](inout<std::uint64_t>, ref<runtime> home, ref<std::atomic<int>> told) {
                             throw std::make_shared<reporter>(home.to, told.to);
                           });

LEV_TEST(ordered_local_tickets_test, exceptions_may_use_the_runtime_when_they_go) {
  runtime& r = open_small(when_full::help);
  std::atomic<int> told{0};
  {
    std::uint64_t x[4] = {};
    ordered tasks(r);
    for (std::uint64_t& one : x) tasks.submit(report, view(&one, 1), ref{&r}, ref{&told});
    expect_all_done();
    expect_ok(r.submit(nothing));  // by a ticket that the scope gives back
    EXPECT_EQ(tasks.wait_outcome(wait_limit_ns()).failures, 4u);
  }
  EXPECT_EQ(told, 4);
}

const auto count_run =
    define("ordered_tickets.count_run", [](ref<std::atomic<int>> n) { ++*n.to; });

// An exception that submits to its own scope when it goes.
struct late_submitter {
  late_submitter(ordered* of, std::atomic<int>* runs) noexcept : scope(of), n(runs) {}
  late_submitter(late_submitter&&) = delete;
  ~late_submitter() {
    if (*n >= 0) scope->submit(count_run, ref{n});
  }
  ordered* scope;
  std::atomic<int>* n;
};
const auto submit_late =
    define("ordered_tickets.submit_late",
           [](inout<std::uint64_t>, ref<ordered> scope, ref<std::atomic<int>> n) {
             throw std::make_shared<late_submitter>(scope.to, n.to);
           });

LEV_TEST(ordered_local_tickets_test, a_scope_ends_after_what_is_submitted_at_its_end) {
  runtime& r = open_small(when_full::help);
  std::atomic<int> n{0};
  std::uint64_t x[4] = {};
  {
    ordered tasks(r);
    for (std::uint64_t& one : x) tasks.submit(submit_late, view(&one, 1), ref{&tasks}, ref{&n});
  }
  EXPECT_EQ(n, 3);  // the first failure's exception is kept, and has no scope any more
  n = -1;
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::task_failed);
}

struct those_behind {
  ticket all[contexts_max];
  std::atomic<bool> may_wait{false};
  std::atomic<unsigned> waiting{0};
  std::atomic<int> refused{0};
};
const auto wait_behind = define("ordered_tickets.wait_behind", [](ref<those_behind> b) {
  const unsigned i = b.to->waiting++;
  this_task().wait_until([&] { return b.to->may_wait.load(); });
  b.to->refused += b.to->all[i].wait_outcome().code == status::would_deadlock;
});

// A submitter that looks again and again for tickets of scopes waits all the same.
LEV_TEST(ordered_hosts_test, tasks_that_all_wait_are_told_beside_a_scope) {
  config c = settings();
  c.workers = 1;
  c.tickets = 64;
  c.full = when_full::wait;
  runtime& r = open(c);
  ordered scope(r);
  those_behind b;
  std::vector<ticket> waiting, more;
  for (unsigned i = 0; i < contexts_max; ++i) waiting.push_back(r.submit(wait_behind, ref{&b}));
  ticket last = r.submit(nothing);
  for (ticket& one : b.all) one = r.submit(options().after(last), nothing);
  for (int i = 0; i < 31; ++i) more.push_back(r.submit(options().after(last), nothing));
  b.may_wait = true;
  more.push_back(r.submit(nothing));
  EXPECT_EQ(wait_all(waiting).code, status::ok);
  EXPECT_NE(b.refused, 0);
  EXPECT_EQ(wait_all(more).code, status::ok);
}

}  // namespace
}  // namespace lev::test
