// Conformance: the life of one ticket. Waiting once, polling, time-outs, release and move.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class ticket_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(ticket_test);

LEV_TEST(ticket_test, a_wait_consumes_the_ticket) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  EXPECT_TRUE(t);
  EXPECT_EQ(wait(t).code, status::ok);
  EXPECT_FALSE(t);
  EXPECT_EQ(t.wait_outcome().code, status::bad_ticket);
}

LEV_TEST(ticket_test, the_number_of_a_consumed_ticket_is_stale) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  ticket copy(t.home(), t.id());
  expect_ok(t);
  EXPECT_TRUE(copy.done());
  EXPECT_EQ(copy.cancel(), status::stale_ticket);
  EXPECT_EQ(copy.then([](void*) { ADD_FAILURE(); }, nullptr), status::stale_ticket);
  EXPECT_EQ(copy.wait_outcome().code, status::stale_ticket);
  EXPECT_FALSE(copy);
}

// The slot is used again, by the thousand: old numbers stay stale.
LEV_TEST(ticket_test, a_stale_number_never_names_a_later_task) {
  config c = settings();
  c.tickets = 4;
  runtime& r = open(c);
  std::vector<std::uint64_t> old;
  for (int i = 0; i < 200; ++i) {
    ticket t = r.submit(nothing);
    old.push_back(t.id());
    expect_ok(t);
  }
  ticket live = r.submit(nothing);
  for (const std::uint64_t id : old) {
    ASSERT_NE(id, live.id());
    ASSERT_EQ(ticket(live.home(), id).wait_outcome().code, status::stale_ticket);
  }
  expect_ok(live);
}

LEV_TEST(ticket_test, a_time_out_leaves_the_ticket_whole) {
  runtime& r = open_parked();
  counter n = 0;
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit(count_one, ref{&n});
    EXPECT_FALSE(t.done());
    EXPECT_EQ(t.wait_outcome(0).code, status::timed_out);
    EXPECT_EQ(t.wait_outcome(1000).code, status::timed_out);
    EXPECT_EQ(t.wait_outcome(50'000).code, status::timed_out);
    EXPECT_TRUE(t);
    EXPECT_EQ(n, 0);
  }
  expect_ok(t);
  EXPECT_EQ(n, 1);
}

LEV_TEST(ticket_test, a_time_out_lasts_as_long_as_asked) {
  runtime& r = open_parked();
  gate g(r, r.workers());
  ticket t = r.submit(nothing);
  const std::uint64_t before = r.now_ns();
  EXPECT_EQ(t.wait_outcome(2'000'000).code, status::timed_out);
  EXPECT_GE(r.now_ns() - before, 2'000'000u);
}

LEV_TEST(ticket_test, done_tells_and_does_not_consume) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  expect_all_done();
  EXPECT_TRUE(t.done());
  EXPECT_TRUE(t.done());
  EXPECT_EQ(t.wait_outcome(0).code, status::ok);
}

// A host that polls instead of waiting gets there too, also where time is virtual.
LEV_TEST(ticket_test, polling_gets_there) {
  runtime& r = open_parked();
  ticket t = r.submit(nothing);
  const std::uint64_t end = r.now_ns() + static_cast<std::uint64_t>(wait_limit_ns());
  while (!t.done()) ASSERT_LT(r.now_ns(), end);
  ticket u = r.submit(nothing);
  outcome o;
  while ((o = u.wait_outcome(0)).code == status::timed_out) ASSERT_LT(r.now_ns(), end);
  EXPECT_EQ(o.code, status::ok);
  expect_ok(t);
}

LEV_TEST(ticket_test, a_huge_time_out_is_for_ever) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  EXPECT_EQ(t.wait_outcome(INT64_MAX).code, status::ok);
}

LEV_TEST(ticket_test, released_tasks_run_all_the_same) {
  runtime& r = open();
  counter n = 0;
  for (int i = 0; i < 500; ++i) r.submit(count_one, ref{&n});
  expect_all_done();
  EXPECT_EQ(n, 500);
}

LEV_TEST(ticket_test, release_while_it_waits_while_it_runs_and_when_done) {
  runtime& r = open_parked();
  counter n = 0;
  {
    gate g(r, r.workers());
    ticket waiting = r.submit(count_one, ref{&n});
    waiting.release();
    EXPECT_FALSE(waiting);
    waiting.release();
    ticket dropped_late = r.submit(count_one, ref{&n});
    g.open();
  }
  ticket done = r.submit(count_one, ref{&n});
  expect_all_done();
  EXPECT_TRUE(done.done());
  done.release();
  EXPECT_EQ(n, 3);
}

LEV_TEST(ticket_test, moving_hands_the_task_over) {
  runtime& r = open();
  ticket a = r.submit(nothing);
  const std::uint64_t id = a.id();
  ticket b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.id(), id);
  a = r.submit(nothing);
  a = std::move(b);
  EXPECT_EQ(a.id(), id);
  ticket& self = a;
  a = std::move(self);
  expect_ok(a);
}

LEV_TEST(ticket_test, an_empty_ticket_is_no_ticket) {
  runtime& r = open();
  ticket none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.wait_outcome().code, status::bad_ticket);
  EXPECT_EQ(none.cancel(), status::bad_ticket);
  EXPECT_EQ(none.then([](void*) {}, nullptr), status::bad_ticket);
  none.release();
  EXPECT_EQ(ticket(r.state(), 0).wait_outcome().code, status::bad_ticket);
}

}  // namespace
}  // namespace lev::test
