// Conformance: cancellation of single tasks. A task that has not started does not run; one that
// runs is left alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/runtime_state.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class cancel_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(cancel_test);

LEV_TEST(cancel_test, waiting_tasks_do_not_run) {
  runtime& r = open_parked();
  counter n = 0;
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    for (int i = 0; i < 100; ++i) t.push_back(r.submit(count_one, ref{&n}));
    for (std::size_t i = 0; i < 100; i += 2) EXPECT_EQ(t[i].cancel(), status::ok);
    EXPECT_EQ(t[0].cancel(), status::ok) << "asking twice";
    EXPECT_FALSE(t[0].done());
  }
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(wait(t[i]).code, i % 2 == 0 ? status::cancelled : status::ok) << i;
  }
  EXPECT_EQ(n, 50);
  EXPECT_EQ(r.count().failed, 50u);
}

LEV_TEST(cancel_test, a_running_task_is_left_alone) {
  if (is_sim()) GTEST_SKIP() << "nobody can look on while a task runs in virtual time";
  runtime& r = open_parked();
  shared_array<char> place(sizeof(gate_state));
  gate_state& state = *new (place.data()) gate_state;
  ticket t = r.submit(gate_procedure, ref{&state});
  while (state.started == 0) std::this_thread::yield();
  EXPECT_EQ(t.cancel(), status::ok);
  state.is_open = true;
  EXPECT_EQ(wait(t).code, status::ok);
}

LEV_TEST(cancel_test, a_completed_task_keeps_its_outcome) {
  runtime& r = open();
  ticket good = r.submit(nothing);
  ticket bad = r.submit(throw_error, 1);
  expect_all_done();
  EXPECT_EQ(good.cancel(), status::ok);
  EXPECT_EQ(bad.cancel(), status::ok);
  EXPECT_EQ(wait(good).code, status::ok);
  EXPECT_EQ(wait(bad).code, status::task_failed);
}

LEV_TEST(cancel_test, a_task_behind_another_does_not_run_when_its_turn_comes) {
  runtime& r = open_parked();
  counter n = 0;
  ticket first;
  ticket second;
  {
    gate g(r, r.workers());
    first = r.submit(count_one, ref{&n});
    second = r.submit(after(first), count_one, ref{&n});
    EXPECT_EQ(second.cancel(), status::ok);
  }
  EXPECT_EQ(wait(second).code, status::cancelled);
  EXPECT_EQ(wait(first).code, status::ok);
  EXPECT_EQ(n, 1);
}

LEV_TEST(cancel_test, a_bulk_is_cancelled_as_a_whole) {
  runtime& r = open_parked();
  counter n = 0;
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit_bulk(200, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
    EXPECT_EQ(t.cancel(), status::ok);
  }
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::cancelled);
  EXPECT_EQ(o.failures, 200u);
  EXPECT_EQ(n, 0);
}

LEV_TEST(cancel_test, a_diced_task_is_cancelled_with_all_its_pieces) {
  static const auto piece = define(
      "cancel.piece", [](range r, ref<counter> sum) { *sum.to += static_cast<int>(r.size()); });
  runtime& r = open_parked();
  counter n = 0;
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit(options().grain(1), piece, range{0, 1000}, ref{&n});
    EXPECT_EQ(t.cancel(), status::ok);
  }
  EXPECT_EQ(wait(t).code, status::cancelled);
  EXPECT_EQ(n, 0);
}

LEV_TEST(cancel_test, data_of_pieces_that_do_not_run_is_not_fetched) {
  static const auto read = define("cancel.read", [](in<char>) {});
  config c = settings();
  c.wait = wait_policy::park;
  c.staging = staging::copy;
  c.local_store_bytes = 64 << 10;
  runtime& r = open(c);
  const std::vector<char> x(16 << 20);
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit(read, sliced(x));
    EXPECT_EQ(t.cancel(), status::ok);
  }
  EXPECT_EQ(wait(t).code, status::cancelled);
  // Worker processes have been given a few pieces each.
  EXPECT_LT(r.count().staged_bytes, x.size() / 2);
}

// Cancelled at a random moment: it ran or it did not, and the outcome says which.
LEV_TEST(cancel_test, the_outcome_tells_whether_it_came_in_time) {
  runtime& r = open();
  int cancelled = 0;
  for (int i = 0; i < rounds(2000); ++i) {
    counter n = 0;
    ticket t = r.submit(count_one, ref{&n});
    if (i % 3 == 0) r.submit(nothing).release();
    t.cancel();
    const status code = wait(t).code;
    ASSERT_TRUE(code == status::ok || code == status::cancelled) << status_name(code);
    ASSERT_EQ(n, code == status::ok ? 1 : 0);
    cancelled += code == status::cancelled;
  }
  RecordProperty("cancelled", cancelled);
}

LEV_TEST(cancel_test, released_after_cancelling) {
  runtime& r = open_parked();
  counter n = 0;
  {
    gate g(r, r.workers());
    for (int i = 0; i < 20; ++i) {
      ticket t = r.submit(count_one, ref{&n});
      EXPECT_EQ(t.cancel(), status::ok);
    }
  }
  const outcome o = r.wait_for_completion(wait_limit_ns());
  EXPECT_EQ(o.code, status::cancelled);
  EXPECT_EQ(o.failures, 20u);
  EXPECT_EQ(n, 0);
}

// A cancel has two steps where workers are remote: it marks the ticket, then looks through what was
// posted. The ticket may have been consumed between them, and its slot be another task's.
LEV_TEST(cancel_test, whose_ticket_is_gone_takes_no_other_task) {
  if (!is_remote()) GTEST_SKIP() << "nothing is posted";
  runtime& r = open_parked();
  counter n = 0;
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    for (int i = 0; i < 40; ++i) t.push_back(r.submit(count_one, ref{&n}));
    ticket bulk =
        r.submit_bulk(40, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
    t.push_back(std::move(bulk));
    EXPECT_EQ(t[7].cancel(), status::ok);
    r.state()->crew->recall(*detail::here(*r.state()));
  }
  for (std::size_t i = 0; i < t.size(); ++i)
    ASSERT_EQ(wait(t[i]).code, i == 7 ? status::cancelled : status::ok) << i;
  EXPECT_EQ(n, 79);
}

}  // namespace
}  // namespace lev::test
