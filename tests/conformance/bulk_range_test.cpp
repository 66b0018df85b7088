// Conformance: submit_bulk() whose generator may be called from any thread. Each task runs once,
// failures name their index, and what is no plain task runs all the same.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using bulk_range_test = machine_test;
LEV_ON_EVERY_MACHINE(bulk_range_test);

using words = std::vector<std::uint64_t>;

LEV_TEST(bulk_range_test, of_every_size_runs_each_task_once) {
  config c = settings();
  c.tickets = 64;
  runtime& r = open(c);
  for (const std::size_t count : {0u, 1u, 2u, 31u, 33u, 64u, 65u, 10'000u}) {
    words x(count, 5);
    const auto make = [&](std::size_t i, descriptor& d) { d = pack(increment, view(&x[i], 1)); };
    expect_ok(r.submit_bulk(from_any_thread, count, make));
    ASSERT_EQ(x, words(count, 6)) << count;
  }
}

LEV_TEST(bulk_range_test, failures_are_counted_and_keep_no_other_from_running) {
  // Some tasks to a piece; all in one, which is not cut.
  for (const std::uint32_t threshold : {16u, 0u}) {
    config c = settings();
    c.dice_threshold = threshold;
    runtime& r = open(c);
    counter n = 0;
    const auto make = [&](std::size_t i, descriptor& d) {
      d = i % 10 == 7 ? pack(throw_error, static_cast<int>(i)) : pack(count_one, ref{&n});
    };
    ticket t = r.submit_bulk(from_any_thread, 2'000, make);
    const outcome o = wait(t);
    EXPECT_EQ(o.code, status::task_failed);
    EXPECT_EQ(o.failures, 200u);
    EXPECT_EQ(n, 1'800);
    static_cast<void>(r.submit_bulk(from_any_thread, 2'000, make));
    const outcome all = r.wait_for_completion(wait_limit_ns());
    EXPECT_EQ(all.code, status::task_failed);
    EXPECT_EQ(all.failures, 200u);
    EXPECT_EQ(n, 3'600);
  }
}

// The words of a failed wait, or of a submit that was refused.
std::string said_of(runtime& r, std::size_t bad, void (*spoil)(descriptor&), counter& n) {
  const auto make = [&](std::size_t i, descriptor& d) {
    d = pack(count_one, ref{&n});
    if (i == bad) spoil(d);
  };
  try {
    r.submit_bulk(from_any_thread, 100, make).wait();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

LEV_TEST(bulk_range_test, a_refused_task_is_named) {
  runtime& r = open();
  counter n = 0;
  const auto kind_wrong = [](descriptor& d) { d.arguments[0].what = kind::in; };
  EXPECT_EQ(said_of(r, 57, kind_wrong, n).rfind("task 57 of the bulk: argument 0: ", 0), 0u);
  const auto unknown = [](descriptor& d) { d.procedure = procedure_count_max; };
  EXPECT_EQ(said_of(r, 3, unknown, n).rfind("task 3 of the bulk: no procedure ", 0), 0u);
}

LEV_TEST(bulk_range_test, a_task_of_other_than_plain_memory_runs) {
  runtime& r = open();
  words x(100 * 16, 0);
  const auto make = [&](std::size_t i, descriptor& d) {
    std::uint64_t* mine = &x[i * 16];
    d = i % 2 == 0 ? pack(increment, strided(mine, 2, 4, 8))
                   : pack(increment, sliced(view(mine, 16)));
  };
  expect_ok(r.submit_bulk(from_any_thread, 100, make));
  for (std::size_t i = 0; i < 100; ++i) {
    for (std::size_t k = 0; k < 16; ++k)
      ASSERT_EQ(x[i * 16 + k], i % 2 == 0 && k % 8 >= 4 ? 0u : 1u) << i << ' ' << k;
  }
}

// Where tasks declare memory, some are made before those in front of them have run.
LEV_TEST(bulk_range_test, a_task_that_cannot_be_made_is_told_and_keeps_no_other_from_running) {
  if (copies())
    GTEST_SKIP() << "each is a task of its own, and the submit ends where make() throws";
  runtime& r = open();
  words x(2'000, 5);
  const auto make = [&](std::size_t i, descriptor& d) {
    if (i % 10 == 7) throw std::runtime_error("not made");
    d = pack(increment, view(&x[i], 1));
  };
  ticket t = r.submit_bulk(from_any_thread, x.size(), make);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 200u);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], i % 10 == 7 ? 5u : 6u) << i;
}

LEV_TEST(bulk_range_test, the_descriptor_is_empty_or_as_it_was_left) {
  runtime& r = open();
  words x(10'000, 5);
  std::atomic<std::size_t> wrong = 0;
  const auto make = [&](std::size_t i, descriptor& d) {
    if (d.argument_count == 0) d = pack(increment, view(&x[0], 1));
    if (d.procedure != increment.id || d.argument_count != 1) ++wrong;
    d.arguments[0].address = reinterpret_cast<std::uintptr_t>(&x[i]);
  };
  expect_ok(r.submit_bulk(from_any_thread, x.size(), make));
  EXPECT_EQ(x, words(x.size(), 6));
  EXPECT_EQ(wrong.load(), 0u);
}

LEV_TEST(bulk_range_test, tasks_may_submit_and_wait) {
  if (is_remote()) GTEST_SKIP() << "bodies refer to the runtime";
  static runtime* within;
  static const auto nest = define("test.bulk_range_nest", [](ref<counter> n) {
    within->submit(count_one, n).wait();
    ++*n.to;
  });
  runtime& r = open();
  within = &r;
  counter n = 0;
  const auto make = [&](std::size_t, descriptor& d) { d = pack(nest, ref{&n}); };
  expect_ok(r.submit_bulk(from_any_thread, 200, make));
  EXPECT_EQ(n, 400);
}

thread_local std::size_t made_last = 0;
std::atomic<bool> was_ahead{false};

// Whether any of the tasks found one behind it made by its own thread.
bool looks_ahead(std::uint32_t depth) {
  static const auto look =
      define("test.bulk_range_look", [](std::size_t i, inout<std::uint64_t> x) {
        if (made_last > i) was_ahead = true;
        ++x[0];
      });
  was_ahead = false;
  config c;
  c.depth = depth;
  runtime r(c);
  words x(10'000, 0);  // some to a piece
  const auto make = [&](std::size_t i, descriptor& d) {
    made_last = i;
    d = pack(look, i, view(&x[i], 1));
  };
  r.submit_bulk(from_any_thread, x.size(), make).wait();
  EXPECT_EQ(x, words(x.size(), 1));
  return was_ahead;
}

TEST(bulk_range, tasks_that_declare_memory_are_made_ahead) {
  EXPECT_TRUE(looks_ahead(0));
  EXPECT_TRUE(looks_ahead(2));
  EXPECT_TRUE(looks_ahead(16));
  EXPECT_FALSE(looks_ahead(1));
}

// The only worker is in the first task when the others are cancelled.
TEST(bulk_range, what_has_not_begun_is_cancelled) {
  static std::atomic<int> begun, may_end;
  begun = may_end = 0;
  static const auto hold = define("test.bulk_range_hold", [] {
    if (begun.fetch_add(1) != 0) return;
    begun.notify_all();
    may_end.wait(0);
  });
  config c;
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime r(c);
  const auto make = [](std::size_t, descriptor& d) { d = pack(hold); };
  ticket t = r.submit_bulk(from_any_thread, 10'000, make);
  begun.wait(0);
  EXPECT_EQ(t.cancel(), status::ok);
  may_end = 1;
  may_end.notify_all();
  EXPECT_EQ(t.wait_outcome().code, status::cancelled);
  EXPECT_LT(begun.load(), 10'000);
}

// A task whose rows are apart is one of its own. One that is made when the runtime closes, in a
// piece that has begun, is cancelled: no body has failed.
LEV_TEST(bulk_range_test, a_close_in_its_middle_cancels_it) {
  if (is_sim() || is_remote()) GTEST_SKIP() << "one host closes while another waits";
  config c = settings();
  c.dice_threshold = 0;
  runtime& r = open(c);
  std::atomic<bool> is_begun{false};
  words x(4);
  const auto make = [&](std::size_t i, descriptor& d) {
    d = pack(increment, strided(x.data(), 2, 1, 2));
    if (i == 0) return;
    is_begun = true;
    while (r.state()->cancelling.load() == 0) std::this_thread::yield();
  };
  std::thread closer([&] {
    while (!is_begun) std::this_thread::yield();
    EXPECT_EQ(r.close(wait_limit_ns(), true), status::ok);
  });
  ticket t = r.submit_bulk(from_any_thread, 2, make);
  EXPECT_EQ(wait(t).code, status::cancelled);
  closer.join();
}

}  // namespace
}  // namespace lev::test
