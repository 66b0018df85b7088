// Conformance: submit_at_once() takes a plain task where that takes no wait, or does nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class at_once_test : public machine_test {
 protected:
  ticket try_one(counter& n) {
    const descriptor d = pack(count_one, ref{&n});
    return open().submit_at_once(d.procedure, d.arguments, d.argument_count);
  }
};
LEV_ON_EVERY_MACHINE(at_once_test);

LEV_TEST(at_once_test, runs_each_task_that_it_takes_once) {
  config c = settings();
  c.tickets = 64;
  open(c);
  counter n = 0;
  int taken = 0;
  for (int i = 0; i < 5'000; ++i) {
    ticket t = try_one(n);
    if (!t) continue;
    ++taken;
    if (i % 3 == 0) t.wait();
  }
  expect_all_done();
  EXPECT_EQ(n, taken);
  if (is_remote() || is_sim()) {
    EXPECT_EQ(taken, 0) << "it is for the straight way alone";
  } else if (!copies()) {
    EXPECT_GT(taken, 0);
  }
}

LEV_TEST(at_once_test, does_nothing_where_it_would_have_to_wait) {
  config c = settings();
  c.tickets = 8;
  open(c);
  counter n = 0;
  {
    gate g(open(), 1);
    std::vector<ticket> held;
    for (ticket t; (t = try_one(n));) held.push_back(std::move(t));
    EXPECT_LT(held.size(), 8u);
    EXPECT_FALSE(try_one(n));
    g.open();
    for (ticket& t : held) t.wait();
    EXPECT_EQ(n, static_cast<int>(held.size()));
  }
  const filter chain[] = {filters::fifo()};
  ASSERT_EQ(open().set_filters(chain, 1), status::ok);
  EXPECT_FALSE(try_one(n)) << "a filter would have to be looked at";
  ASSERT_EQ(open().set_filters(nullptr, 0), status::ok);
  ASSERT_EQ(open().close(no_timeout), status::ok);
  EXPECT_FALSE(try_one(n)) << "it is closed";
}

bool is_soon_done(const ticket& t, wait_policy how) {
  return detail::is_soon_done(t.home(), t.id(), how);
}

LEV_TEST(at_once_test, a_task_is_soon_done_or_waited_for) {
  for (int i = 0; i < 2'000; ++i) {
    ticket t = open().submit(nothing);
    if (is_soon_done(t, wait_policy::of_runtime)) {
      EXPECT_TRUE(t.done());
    }
    t.wait();
  }
  EXPECT_TRUE(is_soon_done(ticket(), wait_policy::of_runtime)) << "as done()";
  if (is_sim()) GTEST_SKIP() << "the gate ends by itself";
  for (const auto how : {wait_policy::of_runtime, wait_policy::yield, wait_policy::spin}) {
    gate g(open(), open().workers());
    ticket t = open().submit(nothing);
    EXPECT_FALSE(is_soon_done(t, how)) << "all workers are held";
    g.open();
    t.wait();
  }
  expect_all_done();
}

LEV_TEST(at_once_test, more_arguments_than_any_task_has_are_refused) {
  counter n = 0;
  const descriptor d = pack(count_one, ref{&n});
  for (const unsigned count : {0u, 2u, argument_count_max + 1, 257u, 1u << 16 | 1u, ~0u})
    EXPECT_FALSE(open().submit_at_once(d.procedure, d.arguments, count)) << count;
  expect_all_done();
  EXPECT_EQ(n, 0);
}

}  // namespace
}  // namespace lev::test
