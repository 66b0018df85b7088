// Conformance: call by value-result. Where arguments are copied, outputs appear only when the task
// is complete, and a failed task leaves the caller's memory as it was.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

// The machines on which everything is copied.
std::vector<machine_case> copying_machines() {
  std::vector<machine_case> all = sim_only();
  all.push_back({"threads_1_copy", "threads", 1, staging::copy, 1});
  all.push_back({"threads_4_copy", "threads", 4, staging::copy, 1});
  for (machine_case c : processes_only()) {
    c.staging = staging::copy;
    all.push_back(c);
  }
  return all;
}

using value_result_test = machine_test;
LEV_ON(value_result_test, copying_machines);

using words = std::vector<std::uint64_t>;

// Writes all its outputs, and tells what the caller's memory held meanwhile.
struct witness {
  const std::uint64_t* callers = nullptr;
  std::uint64_t seen = 0;
};
const auto write_and_look = define(
    "value_result.write_and_look",
    [](ref<witness> w, out<std::uint64_t> x, inout<std::uint64_t> y, result<std::uint64_t> z) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1;
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += 1;
      z = 1;
      w.to->seen = w.to->callers[0] + w.to->callers[1] + w.to->callers[2];
    });

LEV_TEST(value_result_test, outputs_are_invisible_until_completion) {
  const shared_array<std::uint64_t> x(3);
  std::iota(x.begin(), x.end(), 10);
  shared<witness> w;
  w->callers = x.data();
  open().submit(write_and_look, ref{&w}, view(&x[0], 1), view(&x[1], 1), x[2]).wait();
  EXPECT_EQ(w->seen, 33u);
  EXPECT_EQ(x[0], 1u);
  EXPECT_EQ(x[1], 12u);
  EXPECT_EQ(x[2], 1u);
}

const auto write_and_fail =
    define("value_result.write_and_fail",
           [](out<std::uint64_t> x, inout<std::uint64_t> y, result<std::uint64_t> z) {
             for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1;
             for (std::size_t i = 0; i < y.size(); ++i) y[i] = 1;
             z = 1;
             throw std::runtime_error("after writing");
           });

LEV_TEST(value_result_test, a_failed_task_leaves_no_trace) {
  words x(10, 5);
  words y(10, 6);
  std::uint64_t z = 7;
  ticket t = open().submit(write_and_fail, x, strided(y.data(), 2, 3, 5), z);
  EXPECT_EQ(wait(t).code, status::task_failed);
  EXPECT_EQ(x, words(10, 5));
  EXPECT_EQ(y, words(10, 6));
  EXPECT_EQ(z, 7u);
}

LEV_TEST(value_result_test, a_cancelled_task_leaves_no_trace) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  words x(10, 5);
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit(increment, x);
    EXPECT_EQ(t.cancel(), status::ok);
  }
  EXPECT_EQ(wait(t).code, status::cancelled);
  EXPECT_EQ(x, words(10, 5));
}

// Inputs are private too: what the body does to them stays with it.
const auto scribble = define("value_result.scribble", [](in<std::uint64_t> x) {
  for (std::size_t i = 0; i < x.size(); ++i) const_cast<std::uint64_t&>(x[i]) = 99;
});

LEV_TEST(value_result_test, inputs_are_private_copies) {
  words x(10, 5);
  expect_ok(open().submit(scribble, x));
  EXPECT_EQ(x, words(10, 5));
}

// Many at once: one in three fails, and each leaves exactly its own traces.
LEV_TEST(value_result_test, failures_among_many_do_not_leak_into_others) {
  runtime& r = open();
  constexpr std::size_t count = 300;
  std::vector<words> x(count, words(20, 5));
  std::vector<std::uint64_t> z(count, 7);
  std::vector<ticket> tickets;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      tickets.push_back(r.submit(write_and_fail, view(x[i].data(), 10), view(&x[i][10], 10), z[i]));
    } else {
      tickets.push_back(r.submit(increment, x[i]));
    }
  }
  const outcome o = wait_all(tickets.data(), count, wait_limit_ns());
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, count / 3);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(x[i], words(20, i % 3 == 0 ? 5 : 6)) << i;
    ASSERT_EQ(z[i], 7u);
  }
}

}  // namespace
}  // namespace lev::test
