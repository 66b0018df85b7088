// Conformance: submit_bulk() over columns. Each task runs once with its own row of every column,
// also with its worker elsewhere; failures name their index and leave the others as they should be.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

using columns_test = machine_test;
LEV_ON_EVERY_MACHINE(columns_test);

using words = std::vector<std::uint64_t>;

// One argument of each kind, and what it is good for.
const auto mix = define("test.columns_mix",
                        [](std::uint64_t factor, std::uint16_t add, in<std::uint64_t> x,
                           out<std::uint64_t> y, inout<std::uint64_t> z, result<std::uint32_t> n) {
                          for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i] + add;
                          ++z[0];
                          n = static_cast<std::uint32_t>(x.size());
                        });
// Fails after it has written.
const auto odd_fails =
    define("test.columns_odd_fails", [](std::uint32_t i, inout<std::uint64_t> x) {
      x[0] += 100;
      if (i % 10 == 7) throw std::runtime_error("seven");
    });

words numbers(std::size_t count) {
  words x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = i;
  return x;
}

LEV_TEST(columns_test, each_task_gets_its_row_of_every_column) {
  config c = settings();
  c.tickets = 64;
  runtime& r = open(c);
  for (const std::size_t count : {0u, 1u, 2u, 33u, 65u, 3'000u}) {
    std::vector<std::uint16_t> add(count);
    for (std::size_t i = 0; i < count; ++i) add[i] = static_cast<std::uint16_t>(i % 100);
    const words x = numbers(count * 4);
    words y(count * 3, 1);
    words z(count * 2, 5);
    std::vector<std::uint32_t> n(count, 9);
    // Rows of 4 of which 3 are read, one after the other, and one of two elements.
    expect_ok(r.submit_bulk(count, mix, std::uint64_t{3}, each(add), each(x.data(), 3, 4),
                            each(y.data(), 3), each(z.data(), 1, 2), each(n)));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < 3; ++k)
        ASSERT_EQ(y[i * 3 + k], 3 * (i * 4 + k) + i % 100) << count << ' ' << i;
      ASSERT_EQ(z[i * 2], 6u) << count << ' ' << i;
      ASSERT_EQ(z[i * 2 + 1], 5u) << count << ' ' << i;
      ASSERT_EQ(n[i], 3u) << count << ' ' << i;
    }
  }
}

LEV_TEST(columns_test, a_bulk_without_columns_runs_each_task_once) {
  runtime& r = open();
  counter n = 0;
  expect_ok(r.submit_bulk(5'000, count_one, ref{&n}));
  EXPECT_EQ(n, 5'000);
  expect_ok(r.submit_bulk(5'000, nothing));
}

LEV_TEST(columns_test, more_than_the_local_store_goes_through_it) {
  config c = settings();
  c.local_store_bytes = 64 << 10;
  c.tickets = 16;
  runtime& r = open(c);
  words x = numbers(200'000);
  expect_ok(r.submit_bulk(x.size() / 50, increment, each(x.data(), 50)));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], i + 1);
}

LEV_TEST(columns_test, wide_values_and_every_size_of_them) {
  struct wide {
    std::uint64_t a, b;
  };
  static const auto add_wide =
      define("test.columns_wide",
             [](wide w, std::uint8_t more, result<std::uint64_t> sum) { sum = w.a + w.b + more; });
  runtime& r = open();
  std::vector<wide> w(100);
  std::vector<std::uint8_t> more(100);
  for (std::size_t i = 0; i < 100; ++i) {
    w[i] = {i, 2 * i};
    more[i] = static_cast<std::uint8_t>(i);
  }
  words sum(100);
  expect_ok(r.submit_bulk(100, add_wide, each(w), each(more), each(sum)));
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(sum[i], 4 * i);
}

LEV_TEST(columns_test, failures_are_counted_and_keep_no_other_from_running) {
  runtime& r = open();
  constexpr std::size_t count = 1'000;
  std::vector<std::uint32_t> index(count);
  for (std::size_t i = 0; i < count; ++i) index[i] = static_cast<std::uint32_t>(i);
  words x = numbers(count);
  ticket t = r.submit_bulk(count, odd_fails, each(index), each(x));
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 100u);
  try {
    std::rethrow_exception(o.exception);
  } catch (const error& e) {
    unsigned at = 0;
    ASSERT_EQ(std::sscanf(e.what(), "task %u of the bulk: seven", &at), 1) << e.what();
    EXPECT_EQ(at % 10, 7u) << e.what();
  }
  // The output of a task that has failed is to be seen only where it wrote in place.
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 10 == 7 && !copies()) continue;
    ASSERT_EQ(x[i], i % 10 == 7 ? i : i + 100) << i;
  }
}

// Two failures, so that the rest of the bulk is looked at again.
LEV_TEST(columns_test, a_failure_in_one_column_that_is_worked_on_in_place) {
  static const auto negative_fails =
      define("test.columns_negative_fails", [](inout<std::int64_t> x) {
        if (x[0] < 0) throw std::runtime_error("negative");
        x[0] += 100;
      });
  config c = settings();
  c.workers = 1;
  c.staging = staging::in_place;
  runtime& r = open(c);
  shared_array<std::int64_t> x(40);
  for (std::size_t i = 0; i < 40; ++i) x[i] = i % 20 == 17 ? -1 : static_cast<std::int64_t>(i);
  ticket t = r.submit_bulk(40, negative_fails, each(x.data(), 1));
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 2u);
  for (std::size_t i = 0; i < 40; ++i)
    ASSERT_EQ(x[i], i % 20 == 17 ? -1 : static_cast<std::int64_t>(i) + 100) << i;
}

LEV_TEST(columns_test, a_failure_at_either_end_of_a_piece) {
  runtime& r = open();
  for (const std::size_t count : {1u, 2u, 8u}) {
    std::vector<std::uint32_t> index(count, 7);
    words x(count, 1);
    ticket t = r.submit_bulk(count, odd_fails, each(index), each(x));
    const outcome o = wait(t);
    EXPECT_EQ(o.code, status::task_failed);
    EXPECT_EQ(o.failures, count);
  }
}

// Rows of which each task of a column that is none needs more than its own.
LEV_TEST(columns_test, what_is_no_range_is_tasks_of_their_own) {
  runtime& r = open();
  words x = numbers(40);
  expect_ok(r.submit_bulk(40, increment, each(x.data() + 39, 1, -1)));
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(x[i], i + 1);
}

std::string refusal_of(runtime& r, std::size_t count, const descriptor& d, int argument) {
  try {
    r.submit_bulk(count, d).wait();
  } catch (const error& e) {
    EXPECT_EQ(e.argument(), argument);
    return e.what();
  }
  return "nothing";
}

LEV_TEST(columns_test, bad_input_is_refused_and_names_the_argument) {
  runtime& r = open();
  words x(10, 1);
  words y(10, 1);
  descriptor d;
  d.procedure = mix.id;
  EXPECT_NE(refusal_of(r, 10, d, -1).find("takes 6 arguments"), std::string::npos);
  d.procedure = procedure_count_max;
  EXPECT_NE(refusal_of(r, 10, d, -1).find("no procedure"), std::string::npos);
  d = pack(increment, y);
  EXPECT_NE(refusal_of(r, 10, d, 0).find("must be a column"), std::string::npos);
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x.data(), 2, 1));
  EXPECT_NE(refusal_of(r, 9, d, 0).find("overlap"), std::string::npos);
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each<std::uint64_t>(nullptr));
  EXPECT_NE(refusal_of(r, 9, d, 0).find("null address"), std::string::npos);
  d = descriptor{};
  d.procedure = square.id;
  d.argument_count = 2;
  d.arguments[0] = detail::pack_part<std::int64_t>(each<std::int64_t>(nullptr));
  d.arguments[1] = detail::pack_part<result<std::uint64_t>>(each(y));
  EXPECT_NE(refusal_of(r, 10, d, 0).find("null address"), std::string::npos);
  d.arguments[0] = detail::pack_part<in<std::uint64_t>>(each(x));
  EXPECT_NE(refusal_of(r, 10, d, 0).find("declares value"), std::string::npos);
  d.arguments[0] = detail::pack_part<std::uint64_t>(each(y));
  EXPECT_NE(refusal_of(r, 10, d, 1).find("overlaps"), std::string::npos);
  EXPECT_EQ(x, words(10, 1));
  EXPECT_EQ(y, words(10, 1));
}

LEV_TEST(columns_test, columns_that_leave_the_address_space_are_refused) {
  runtime& r = open();
  words x(10, 1);
  descriptor d;
  d.procedure = increment.id;
  d.argument_count = 1;
  for (const std::ptrdiff_t stride : {PTRDIFF_MAX, std::ptrdiff_t{1} << 61, PTRDIFF_MIN}) {
    d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x.data(), 1, stride));
    EXPECT_NE(refusal_of(r, 2, d, 0).find("address space"), std::string::npos) << stride;
  }
  EXPECT_EQ(x, words(10, 1));
}

const auto copy_byte =
    define("test.columns_copy_byte", [](in<char> from, out<char> to) { to[0] = from[0]; });

// Beyond the rows that one argument can have, too.
LEV_TEST(columns_test, more_rows_than_there_is_memory_for_are_refused) {
  char x[2] = {};
  for (const std::size_t count : {~std::size_t{0}, ~std::size_t{0} / 2 + 1}) {
    EXPECT_EQ(expect_refused(
                  status::bad_range, "",
                  [&] { open().submit_bulk(count, copy_byte, each(x, 1, 0), each(x + 1, 1, 2)); }),
              1);
  }
}

// Whether the tasks can be one decides how they run, and not what is refused.
LEV_TEST(columns_test, what_tasks_share_is_refused_also_where_each_is_one_of_its_own) {
  config c = settings();
  if (is_remote()) c.processes.task_ns_max = 60'000'000'000;  // none are one
  runtime& r = open(c);
  words x(20, 1);
  descriptor d;
  d.procedure = increment.id;
  d.argument_count = 1;
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x.data(), 2, 1));
  EXPECT_NE(refusal_of(r, 9, d, 0).find("output rows overlap"), std::string::npos);
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x.data() + 18, 2, -1));
  EXPECT_NE(refusal_of(r, 9, d, 0).find("output rows overlap"), std::string::npos);
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x.data(), 1, 0));
  EXPECT_NE(refusal_of(r, 9, d, 0).find("output rows overlap"), std::string::npos);
  // Task 0 has a word of its own in both columns.
  d = descriptor{};
  d.procedure = square.id;
  d.argument_count = 2;
  d.arguments[0] = detail::pack_part<std::uint64_t>(each(x.data(), 1));
  d.arguments[1] = detail::pack_part<result<std::uint64_t>>(each(x.data() + 19, 1, -1));
  EXPECT_NE(refusal_of(r, 20, d, 1).find("overlaps argument 0"), std::string::npos);
  EXPECT_EQ(x, words(20, 1));
  expect_ok(r.submit_bulk(10, d));  // halves that meet
  EXPECT_EQ(x, words(20, 1));
}

// A column in the description of a single task.
LEV_TEST(columns_test, a_column_is_for_bulks_only) {
  runtime& r = open();
  words x(10, 1);
  descriptor d;
  d.procedure = increment.id;
  d.argument_count = 1;
  d.arguments[0] = detail::pack_part<inout<std::uint64_t>>(each(x));
  EXPECT_THROW(r.submit(d), error);
}

LEV_TEST(columns_test, time_limits_are_of_each_task) {
  if (!is_remote()) GTEST_SKIP() << "tasks in this process cannot be ended";
  config c = settings();
  c.processes.task_ns_max = 60'000'000'000;
  runtime& r = open(c);
  words x = numbers(300);
  expect_ok(r.submit_bulk(300, increment, each(x)));
  for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(x[i], i + 1);
  EXPECT_GE(r.count().completed, 300u);
}

// The first task waits for the word of the host, which comes after the bulk was cancelled.
LEV_TEST(columns_test, what_has_not_begun_is_cancelled) {
  if (is_sim()) GTEST_SKIP() << "the body waits for the host";
  static const auto hold =
      define("test.columns_hold", [](ref<std::atomic<int>> begun, ref<std::atomic<int>> may_end) {
        if (begun.to->fetch_add(1) != 0) return;
        while (may_end.to->load() == 0) std::this_thread::yield();
      });
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter begun = 0;
  counter may_end = 0;
  ticket t = r.submit_bulk(10'000, hold, ref<std::atomic<int>>(begun.address()),
                           ref<std::atomic<int>>(may_end.address()));
  while (begun == 0) std::this_thread::yield();
  EXPECT_EQ(t.cancel(), status::ok);
  may_end = 1;
  EXPECT_EQ(wait(t).code, status::cancelled);
  EXPECT_LT(begun.load(), 10'000);
}

}  // namespace
}  // namespace lev::test
