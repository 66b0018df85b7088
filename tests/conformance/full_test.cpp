// Conformance: what happens when all tickets are in use. The submitter helps, waits or is told;
// nothing is dropped, and nothing hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

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

TEST_P(full_test, many_more_tasks_than_tickets_with_every_mode) {
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

TEST_P(full_test, fail_tells_and_nothing_was_submitted) {
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

// Either it fits, as tasks complete meanwhile, or it ends in its middle and says so.
TEST_P(full_test, a_bulk_that_does_not_fit_is_told_in_its_middle) {
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
TEST_P(full_test, a_helping_host_runs_tasks_when_nobody_else_can) {
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

TEST_P(full_test, tasks_that_submit_do_not_hang) {
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

// Nobody but the caller could free a slot: it is told instead of waiting for ever.
TEST_P(full_test, a_host_that_holds_all_tickets_itself_is_told) {
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

TEST_P(full_test, every_ticket_can_be_held_at_once) {
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

}  // namespace
}  // namespace lev::test
