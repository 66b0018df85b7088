// Conformance: what happens when all tickets are in use. The submitter helps, waits or is told;
// nothing is dropped, and nothing hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

class full_test : public machine_test {
 protected:
  static config small(std::uint32_t tickets, when_full full, wait_policy wait) {
    config c = settings();
    c.tickets = tickets;
    c.full = full;
    c.wait = wait;
    return c;
  }
};
LEV_ON_EVERY_MACHINE(full_test);

LEV_TEST(full_test, many_more_tasks_than_tickets_with_every_mode) {
  for (const std::uint32_t tickets : {1u, 2u, 4u, 100u}) {
    for (const when_full full : {when_full::help, when_full::wait}) {
      for (const wait_policy policy : {wait_policy::help, wait_policy::park}) {
        runtime& r = open(small(tickets, full, policy));
        counter n = 0;
        for (int i = 0; i < 500; ++i) r.submit(count_one, ref{&n});
        expect_all_done();
        ASSERT_EQ(n, 500) << tickets << " tickets";
      }
    }
  }
}

// A host runs posts itself where there is no ticket, and a few behind them: but none behind a wait.
LEV_TEST(full_test, a_post_behind_a_wait_is_queued) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "no post is run by its host there";
  runtime& r = open(small(64, when_full::help, wait_policy::help));
  counter n = 0;
  gate g(r, r.workers());
  ticket ended_before = r.submit(count_one, ref{&n});
  ticket last = r.submit(count_one, ref{&n});
  for (ticket* t : {&last, &ended_before}) {
    int before = n;
    for (int i = 0; i < 64 && n == before; ++i) r.post(count_one, ref{&n});
    EXPECT_GT(n, before) << "no worker could";
    if (!copies()) {
      EXPECT_EQ(t->done(), t == &ended_before);
    }
    expect_ok(*t);
    before = n;
    r.post(count_one, ref{&n});
    EXPECT_EQ(n, before) << "there are tickets again";
  }
}

LEV_TEST(full_test, fail_tells_and_nothing_was_submitted) {
  runtime& r = open(small(8, when_full::fail, wait_policy::park));
  counter n = 0;
  int accepted = 0;
  {
    gate g(r, 1);
    const descriptor d = pack(count_one, ref{&n});
    std::vector<ticket> t;
    refusal why;
    for (ticket one; (one = r.try_submit(d, nullptr, &why)); ++accepted)
      t.push_back(std::move(one));
    EXPECT_EQ(why.code, status::would_block);
    EXPECT_EQ(why.argument, -1);
    EXPECT_NE(std::string(why.message).find("8 tickets"), std::string::npos) << why.message;
    EXPECT_THROW(r.submit(d), error);
    EXPECT_THROW(r.post(count_one, ref{&n}), error);
    g.open();
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  }
  expect_all_done();
  EXPECT_EQ(n, accepted);
  EXPECT_LE(accepted, 7);
  expect_ok(r.submit(count_one, ref{&n}));
}

LEV_TEST(full_test, a_submit_waits_no_longer_than_it_may) {
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  runtime& r = open(small(8, when_full::wait, wait_policy::park));
  counter n = 0;
  const descriptor d = pack(count_one, ref{&n});
  refusal why;
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    for (ticket one; (one = r.submit_within(d, nullptr, &why, 1'000'000));)
      t.push_back(std::move(one));
    EXPECT_EQ(why.code, status::timed_out) << why.message;
    EXPECT_LE(t.size(), 7u);
    g.open();
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  }
  expect_ok(r.submit_within(d, nullptr, &why, wait_limit_ns()));
  expect_all_done();
  EXPECT_EQ(n, static_cast<int>(t.size()) + 1);
}

// Whoever ran the last tasks, or collected them, keeps no ticket to himself.
LEV_TEST(full_test, fail_finds_every_ticket_that_is_free) {
  constexpr std::uint32_t tickets = 1024;
  runtime& r = open(small(tickets, when_full::fail, wait_policy::park));
  std::vector<ticket> held(tickets);
  for (int i = 0; i < 5; ++i) {
    ticket t = r.submit_bulk(tickets - 1, [](std::size_t, descriptor& d) { d = pack(nothing); });
    expect_ok(t);
    for (ticket& one : held) one = r.submit(nothing);
    EXPECT_EQ(wait_all(held.data(), held.size(), wait_limit_ns()).code, status::ok);
  }
  held.resize(tickets - (is_sim() ? 4 : 1));  // the gate's
  gate g(r, 1);                               // that worker calls in no more
  for (ticket& one : held) one = r.submit(nothing);
  g.open();
  EXPECT_EQ(wait_all(held.data(), held.size(), wait_limit_ns()).code, status::ok);
}

// Either it fits, as tasks complete meanwhile, or it ends in its middle and says so.
LEV_TEST(full_test, a_bulk_that_does_not_fit_is_told_in_its_middle) {
  runtime& r = open(small(8, when_full::fail, wait_policy::park));
  for (int i = 0; i < 50; ++i) {
    counter n = 0;
    const auto make = [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); };
    try {
      expect_ok(r.submit_bulk(100, make));
      EXPECT_EQ(n, 100);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), status::would_block) << e.what();
      expect_all_done();
      EXPECT_LT(n, 100);
    }
  }
}

// All workers are at the gate: a host that helps runs its tasks itself.
LEV_TEST(full_test, a_helping_host_runs_tasks_when_nobody_else_can) {
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  if (is_remote()) GTEST_SKIP() << "the host runs no tasks of worker processes";
  runtime& r = open(small(16, when_full::help, wait_policy::park));
  counter n = 0;
  {
    const gate g(r, r.workers());
    for (int i = 0; i < 200; ++i) r.submit(count_one, ref{&n});
    EXPECT_GE(n, 150);
    EXPECT_GE(r.count().helped, 150u);
  }
  expect_all_done();  // before n is gone
  EXPECT_EQ(n, 200);
}

// A task that nobody can wait for runs before those that wait, in the thread that posts it.
struct posted_notes {
  runtime* home = nullptr;
  std::thread::id by;
  std::atomic<int> ran{0};
  int outcome_of_child = -1;
  bool throws = false;
};
const auto posted = define("full.posted", [](ref<posted_notes> p) {
  p.to->by = std::this_thread::get_id();
  ++p.to->ran;
  std::uint64_t value = 0;
  if (p.to->home != nullptr) p.to->home->submit(increment, std::span(&value, 1)).wait();
  p.to->outcome_of_child = static_cast<int>(value);
  if (p.to->throws) throw std::runtime_error("posted");
});

LEV_TEST(full_test, a_post_without_a_ticket_runs_at_once) {
  if (is_sim() || copies()) GTEST_SKIP() << "it takes the long path";
  for (const bool throws : {false, true}) {
    config c = small(16, when_full::help, wait_policy::park);
    runtime& r = open(c);
    counter n = 0;
    posted_notes p;
    p.home = &r;
    p.throws = throws;
    int waiting = 0;
    {
      const gate g(r, r.workers());
      // The host runs those that do not fit: some of the others still wait behind them.
      for (; p.ran == 0 && waiting < 100; ++waiting) {
        p.by = {};
        r.post(count_one, ref{&n});
        if (r.count().helped != 0) r.post(posted, ref{&p});
      }
      EXPECT_EQ(p.ran, 1);
      EXPECT_EQ(p.by, std::this_thread::get_id());
      EXPECT_EQ(p.outcome_of_child, 1);
      EXPECT_EQ(n, 1) << "of " << waiting << ": the first that did not fit";
    }
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).failures, throws ? 1u : 0u);
    EXPECT_EQ(n, waiting);
    const counters all = r.count();
    EXPECT_EQ(all.submitted, all.completed);
    close();
  }
}

// The workers have nothing to do, but no ticket for one of these tasks is ever free.
LEV_TEST(full_test, a_host_that_holds_all_tickets_may_post) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim() || copies()) GTEST_SKIP() << "it takes the long path";
  constexpr int posts = 200;
  runtime& r = open(small(64, when_full::help, wait_policy::park));
  std::vector<ticket> held(64);
  for (ticket& each : held) each = r.submit(nothing);
  for (const ticket& each : held) {
    while (!each.done()) std::this_thread::yield();
  }
  counter n = 0;
  for (int i = 0; i < posts; ++i) EXPECT_NO_THROW(r.post(count_one, ref{&n})) << "post " << i;
  EXPECT_EQ(n, posts);
  EXPECT_EQ(wait_all(held.data(), held.size(), wait_limit_ns()).code, status::ok);
  expect_all_done();
}

// After a wait it is ahead of nobody: two tasks that need each other are begun by two threads.
struct rendezvous {
  std::atomic<int> there{0};
};
const auto meet_other = define("full.meet", [](ref<rendezvous> m) {
  ++m.to->there;
  while (m.to->there < 2) std::this_thread::yield();
});
LEV_TEST(full_test, a_host_that_was_ahead_queues_posts_after_a_wait) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "its tasks do not meet";
  runtime& r = open(small(256, when_full::help, wait_policy::park));
  if (r.workers() < 2) GTEST_SKIP() << "two are needed";
  for (int round = 0; round < rounds(20); ++round) {
    counter n = 0;
    const std::uint64_t before = r.count().helped;
    for (int i = 0; i < 100'000 && r.count().helped == before; ++i) r.post(count_one, ref{&n});
    expect_all_done();
    rendezvous m;
    r.post(meet_other, ref{&m});
    r.post(meet_other, ref{&m});
    expect_all_done();
  }
}

// Letters are for tasks that are waited for.
LEV_TEST(full_test, a_host_that_runs_ahead_uses_the_queue) {
  if (is_sim() || is_remote()) GTEST_SKIP() << "no worker of it polls a mailbox all the time";
  config c = settings();
  c.wait = wait_policy::park;
  c.spin_ns = 1'000'000'000;
  runtime& r = open(c);
  std::vector<ticket> t(200);
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t before = r.count().direct;
    for (ticket& each : t) each = r.submit(nothing);
    EXPECT_LE(r.count().direct - before, r.workers());
    ASSERT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  }
  const std::uint64_t before = r.count().direct;
  for (int i = 0; i < 100'000 && r.count().direct == before; ++i) expect_ok(r.submit(nothing));
  EXPECT_GT(r.count().direct, before);
}

LEV_TEST(full_test, hosts_post_without_end) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  runtime& r = open(small(4, when_full::help, wait_policy::help));
  counter n = 0;
  std::vector<std::thread> hosts;
  const int each = rounds(5'000);
  for (int h = 0; h < 3; ++h) {
    hosts.emplace_back([&] {
      for (int i = 0; i < each; ++i) r.post(count_one, ref{&n});
    });
  }
  for (std::thread& h : hosts) h.join();
  expect_all_done();
  EXPECT_EQ(n, 3 * each);
}

// Tasks that submit while every ticket is taken are helped, or told so.
struct outcome_of_children {
  std::atomic<int> ran{0};
  std::atomic<int> told{0};
};
const auto child = define("full.child", [](ref<outcome_of_children> o) { ++o.to->ran; });
const auto parent = define("full.parent", [](ref<runtime> home, ref<outcome_of_children> o) {
  refusal why;
  ticket t = home.to->try_submit(pack(child, o), nullptr, &why);
  if (!t) {
    EXPECT_EQ(why.code, status::would_block);
    ++o.to->told;
  }
});

LEV_TEST(full_test, tasks_that_submit_do_not_hang) {
  LEV_SKIP_IF_REMOTE();
  for (const std::uint32_t tickets : {2u, 4u}) {
    for (const when_full full : {when_full::help, when_full::wait, when_full::fail}) {
      runtime& r = open(small(tickets, full, wait_policy::help));
      outcome_of_children o;
      int accepted = 0;
      for (int i = 0; i < 30; ++i) {
        const descriptor d = pack(parent, ref{&r}, ref{&o});
        accepted += static_cast<bool>(r.try_submit(d, nullptr, nullptr));
      }
      expect_all_done();
      ASSERT_EQ(o.ran + o.told, accepted);
      if (full != when_full::fail) {
        ASSERT_EQ(accepted, 30);
      }
    }
  }
}

// The join of a bulk is held by its submitter, too.
LEV_TEST(full_test, a_bulk_that_finds_no_tickets_is_told) {
  for (const when_full full : {when_full::help, when_full::wait, when_full::fail}) {
    for (const std::size_t tasks : {std::size_t{1}, std::size_t{3}}) {
      runtime& r = open(small(2, full, wait_policy::help));
      ticket held = r.submit(nothing);
      const auto make = [](std::size_t, descriptor& d) { d = pack(nothing); };
      expect_refused(status::would_block, "", [&] { r.submit_bulk(tasks, make); });
      expect_ok(held);
      expect_ok(r.submit_bulk(1, make));
      expect_all_done();
    }
  }
}

// Nobody but the caller could free a slot: it is told instead of waiting for ever.
LEV_TEST(full_test, a_host_that_holds_all_tickets_itself_is_told) {
  for (const when_full full : {when_full::help, when_full::wait}) {
    runtime& r = open(small(16, full, wait_policy::help));
    counter n = 0;
    const descriptor d = pack(count_one, ref{&n});
    for (int i = 0; i < 20; ++i) {
      std::vector<ticket> t;
      refusal why;
      for (ticket one; (one = r.try_submit(d, nullptr, &why));) t.push_back(std::move(one));
      EXPECT_EQ(why.code, status::would_block);
      EXPECT_LE(t.size(), 16u);
      EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
    }
  }
}

LEV_TEST(full_test, every_ticket_can_be_held_at_once) {
  config c = small(64, when_full::fail, wait_policy::park);
  c.host_threads = 1;
  runtime& r = open(c);
  counter n = 0;
  std::vector<ticket> t;
  const descriptor d = pack(count_one, ref{&n});
  for (ticket one; (one = r.try_submit(d, nullptr, nullptr));) t.push_back(std::move(one));
  expect_all_done();
  // Participants may keep a few slots for themselves, but never more than half of all.
  EXPECT_GE(t.size(), 32u);
  EXPECT_LE(t.size(), 64u);
  EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
  EXPECT_EQ(n, static_cast<int>(t.size()));
}

// Edges between tasks are as bounded as tickets: 32 where there are 16 tickets.
constexpr int edges = 32;
options after_often(const ticket& t, int times) {
  options o;
  for (int i = 0; i < times; ++i) o.after(t);
  return o;
}

LEV_TEST(full_test, fail_tells_of_edges_and_nothing_was_submitted) {
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  runtime& r = open(small(16, when_full::fail, wait_policy::park));
  counter n = 0;
  ticket first;
  ticket second;
  ticket third;
  {
    gate g(r, r.workers());
    first = r.submit(count_one, ref{&n});
    second = r.submit(after_often(first, edges - 1), count_one, ref{&n});
    const options o = after_often(first, 2);
    refusal why;
    EXPECT_FALSE(r.try_submit(pack(count_one, ref{&n}), &o, &why));
    EXPECT_EQ(why.code, status::would_block);
    EXPECT_NE(std::string(why.message).find("edges"), std::string::npos) << why.message;
    third = r.submit(after(first), count_one, ref{&n});
  }
  expect_ok(third);
  expect_ok(second);
  expect_ok(r.submit(after_often(first, edges), count_one, ref{&n}));
  expect_ok(first);
  EXPECT_EQ(n, 4);
}

// The edges hang on a bulk whose pieces nobody but the submitter can run: it must tell their join
// what it has run, or it waits for itself.
LEV_TEST(full_test, a_submitter_that_helps_gets_its_edges_back) {
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  if (is_remote()) GTEST_SKIP() << "the host runs no tasks of worker processes";
  runtime& r = open(small(16, when_full::help, wait_policy::park));
  counter n = 0;
  ticket all[3];
  {
    const gate g(r, r.workers());
    all[0] = r.submit_bulk(4, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
    all[1] = r.submit(after_often(all[0], edges), count_one, ref{&n});
    all[2] = r.submit(after(all[0]), count_one, ref{&n});
    EXPECT_GE(n, 4);
  }
  EXPECT_EQ(wait_all(all, 3, wait_limit_ns()).code, status::ok);
  EXPECT_EQ(n, 6);
}

// A task that submits holds the only tasks up that could give edges back: it is told.
struct edge_user {
  runtime* home = nullptr;
  std::atomic<std::uint64_t> pending{0};
  status told = status::ok;
};
const auto use_edge = define("full.use_edge", [](ref<edge_user> u) {
  std::uint64_t id = 0;
  while ((id = u.to->pending) == 0) std::this_thread::yield();
  options o;
  o.after_id(id);
  refusal why;
  static_cast<void>(u.to->home->try_submit(pack(nothing), &o, &why));
  u.to->told = why.code;
});

LEV_TEST(full_test, a_task_that_finds_no_edge_is_told) {
  if (is_sim()) GTEST_SKIP() << "a task of virtual time cannot wait for the host";
  LEV_SKIP_IF_REMOTE();
  for (const when_full full : {when_full::help, when_full::wait, when_full::fail}) {
    runtime& r = open(small(16, full, wait_policy::park));
    edge_user u;
    u.home = &r;
    ticket all[3];
    all[0] = r.submit(use_edge, ref{&u});
    all[1] = r.submit(after(all[0]), nothing);
    all[2] = r.submit(after_often(all[1], edges - 1), nothing);
    u.pending = all[1].id();
    EXPECT_EQ(wait_all(all, 3, wait_limit_ns()).code, status::ok);
    EXPECT_EQ(u.told, status::would_block);
    close();
  }
}

// Another thread has called in, too, and ends before the host finds all tickets in use, or while it
// waits for one.
LEV_TEST(full_test, a_host_that_is_the_only_one_left_is_told) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (const when_full full : {when_full::help, when_full::wait}) {
    runtime& r = open(small(16, full, wait_policy::help));
    std::atomic<bool> has_called{false};
    std::atomic<bool> may_end{false};
    std::thread other([&] {
      expect_ok(r.submit(nothing));
      has_called = true;
      while (!may_end) std::this_thread::yield();
    });
    while (!has_called) std::this_thread::yield();
    std::vector<ticket> t;
    refusal why;
    for (ticket one; (one = r.try_submit(pack(nothing), nullptr, &why));) {
      t.push_back(std::move(one));
      if (t.size() == 8) may_end = true;
    }
    EXPECT_EQ(why.code, status::would_block);
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
    other.join();
  }
}

}  // namespace
}  // namespace lev::test
