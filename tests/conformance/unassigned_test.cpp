// Conformance: outputs that a body leaves as they are. A result keeps the caller's value, wherever
// the task ran; of an `out` argument that is copied, what was not written is 0. Nobody ever sees
// what another task had in the local store.
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using words = std::vector<std::uint64_t>;

constexpr std::uint64_t secret = 0x5ec2e75ec2e75ec2;   // of other tasks
constexpr std::uint64_t callers = 0x1111111111111111;  // the caller's
constexpr std::uint64_t tasks_own = 7;
constexpr std::size_t poisoned_bytes = 16 << 10;

// Fills what it is given with what nobody else is to see.
const auto poison = define("unassigned.poison", [](inout<std::uint64_t> x) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) x.row(r)[i] = secret;
  }
});

class unassigned_test : public machine_test {
 protected:
  runtime& open_small(std::uint32_t tickets = 64) {
    config c = settings();
    c.local_store_bytes = poisoned_bytes;
    c.tickets = tickets;
    return open(c);
  }
  // Rows that are apart are copied on every machine, and these fill a whole store.
  static void poison_stores(runtime& r) {
    constexpr std::size_t row = poisoned_bytes / sizeof(std::uint64_t) / 2;
    std::vector<words> all(4 * (r.workers() + 1), words(2 * row + 1));
    for (words& one : all) r.post(poison, strided(one.data(), 2, row, row + 1));
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
    for (const words& one : all) EXPECT_EQ(one[row - 1], secret);
  }
  // The rest of the caller's value in memory that a task declares as `out`, and leaves.
  static std::uint64_t left() { return copies() ? 0 : callers; }
};
LEV_ON_EVERY_MACHINE(unassigned_test);

const auto assign_some = define(
    "unassigned.assign_some",
    [](int which, result<std::uint64_t> a, result<char> b, in<std::uint64_t>, result<double> c) {
      if (which == 0) a = tasks_own;
      if (which == 1) b = 'w';
      if (which == 2) c = 0.5;
    });

LEV_TEST(unassigned_test, a_result_keeps_the_callers_value) {
  runtime& r = open_small();
  const words x(100, callers);
  for (int i = 0; i < 40; ++i) {
    if (i % 8 == 0) poison_stores(r);
    std::uint64_t a = callers;
    char b = 'm';
    double c = 1.5;
    expect_ok(r.submit(assign_some, i % 4, a, b, x, c));
    ASSERT_EQ(a, i % 4 == 0 ? tasks_own : callers);
    ASSERT_EQ(b, i % 4 == 1 ? 'w' : 'm');
    ASSERT_EQ(c, i % 4 == 2 ? 0.5 : 1.5);
  }
}

// Also beside others that are staged ahead, and on the staged path.
LEV_TEST(unassigned_test, results_of_many_at_once) {
  runtime& r = open_small();
  const words x(200, secret);
  std::vector<std::uint64_t> a(300);
  std::iota(a.begin(), a.end(), 1000);
  std::vector<char> b(a.size(), 'm');
  std::vector<double> c(a.size(), 1.5);
  poison_stores(r);
  const ticket t = r.submit_bulk(a.size(), [&](std::size_t i, descriptor& d) {
    d = pack(assign_some, static_cast<int>(i % 4), a[i], b[i], x, c[i]);
  });
  expect_all_done();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], i % 4 == 0 ? tasks_own : 1000 + i);
    ASSERT_EQ(b[i], i % 4 == 1 ? 'w' : 'm');
    ASSERT_EQ(c[i], i % 4 == 2 ? 0.5 : 1.5);
  }
}

// Writes every third element of each row.
const auto write_third = define("unassigned.write_third", [](out<std::uint64_t> x) {
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); i += 3) x.row(r)[i] = tasks_own;
  }
});

LEV_TEST(unassigned_test, an_output_shows_nothing_of_other_tasks) {
  runtime& r = open_small();
  for (const std::size_t size : {1u, 2u, 7u, 8u, 9u, 100u, 1000u}) {
    poison_stores(r);
    for (int i = 0; i < 6; ++i) {
      words x(size, callers);
      expect_ok(r.submit(write_third, x));
      for (std::size_t k = 0; k < size; ++k)
        ASSERT_EQ(x[k], k % 3 == 0 ? tasks_own : left()) << size;
    }
  }
}

LEV_TEST(unassigned_test, rows_of_an_output_show_nothing_of_other_tasks) {
  runtime& r = open_small();
  constexpr std::size_t rows = 10;
  constexpr std::size_t width = 50;
  constexpr std::size_t pitch = 53;
  for (int i = 0; i < 10; ++i) {
    poison_stores(r);
    words x(rows * pitch, callers);
    expect_ok(r.submit(write_third, strided(x.data(), rows, width, pitch)));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t column = k % pitch;
      // Rows that are apart are copied everywhere.
      ASSERT_EQ(x[k], column >= width ? callers : column % 3 == 0 ? tasks_own : 0);
    }
  }
}

// Larger than the store: by pieces of the dicer, or, with few tickets, strip by strip.
LEV_TEST(unassigned_test, pieces_show_nothing_of_other_tasks) {
  for (const std::uint32_t tickets : {2u, 64u}) {
    runtime& r = open_small(tickets);
    poison_stores(r);
    words x(10'000, callers);
    expect_ok(r.submit(write_third, sliced(x)));
    std::size_t ours = 0;
    for (const std::uint64_t word : x) {
      ASSERT_TRUE(word == tasks_own || word == left()) << std::hex << word;
      ours += word == tasks_own;
    }
    EXPECT_GE(ours, x.size() / 3);
  }
}

// A task on top of one whose data fills the store works in memory of its own.
const auto leaves_above =
    define("unassigned.leaves_above", [](ref<runtime> r, inout<std::uint64_t> x) {
      for (std::uint64_t& word : x) word = secret;
      words y(x.size(), callers);
      std::uint64_t a = callers;
      char b = 'm';
      double c = 1.5;
      r.to->submit(write_third, strided(y.data(), 2, y.size() / 2 - 1, y.size() / 2)).wait();
      r.to->submit(assign_some, 3, a, b, y, c).wait();
      for (std::uint64_t word : y) EXPECT_NE(word, secret);
      EXPECT_EQ(a, callers);
      EXPECT_EQ(b, 'm');
      EXPECT_EQ(c, 1.5);
    });

LEV_TEST(unassigned_test, nested_tasks_show_nothing_of_other_tasks) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.local_store_bytes = poisoned_bytes;
  c.staging = staging::copy;
  runtime& r = open(c);
  poison_stores(r);
  words x(poisoned_bytes / sizeof(std::uint64_t) - 100, callers);
  for (int i = 0; i < 10; ++i) expect_ok(r.submit(leaves_above, ref{&r}, x));
}

int return_only(const lev_call*) {
  return 0;
}

LEV_TEST(unassigned_test, a_result_of_a_c_call_keeps_the_callers_value) {
  const lev_kind kinds[] = {LEV_RESULT, LEV_OUT, LEV_INOUT};
  static lev_procedure_id id = 0;
  if (id == 0) lev_register("unassigned.return_only", &return_only, nullptr, kinds, 3, &id);
  lev_options o = {};
  o.machine = GetParam().machine;
  o.workers = 2;
  o.staging = LEV_STAGING_COPY;
  lev_runtime* r = nullptr;
  ASSERT_EQ(lev_open(&o, &r), LEV_OK) << lev_last_message();
  for (int i = 0; i < 20; ++i) {
    std::uint64_t a = callers;
    words x(100, callers);
    words y(100, secret);
    const lev_argument arguments[] = {lev_memory(LEV_RESULT, &a, sizeof a, 1),
                                      lev_memory(LEV_OUT, x.data(), 8, x.size()),
                                      lev_memory(LEV_INOUT, y.data(), 8, y.size())};
    lev_ticket t = 0;
    ASSERT_EQ(lev_submit(r, id, arguments, 3, &t), LEV_OK) << lev_last_message();
    ASSERT_EQ(lev_wait(r, t, wait_limit_ns(), nullptr), LEV_OK);
    ASSERT_EQ(a, callers);
    ASSERT_EQ(x, words(100, 0));
  }
  EXPECT_EQ(lev_close(r), LEV_OK);
}

}  // namespace
}  // namespace lev::test
