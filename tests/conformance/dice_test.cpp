// Conformance: dicing. Whatever is sliced and however it is cut, every item is worked on exactly
// once, pieces keep to the grain, and failures of pieces reach the ticket.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using dice_test = machine_test;
LEV_ON_EVERY_MACHINE(dice_test);

using words = std::vector<std::uint64_t>;

// Counts how often each index was visited, and what the pieces looked like.
constexpr std::size_t visits_max = 10'000;
struct visits {
  explicit visits(std::size_t n) : size(n) {}
  const std::size_t size;
  std::atomic<int> at[visits_max]{};
  std::atomic<int> pieces{0};
  std::atomic<std::uint64_t> smallest{~std::uint64_t{0}};

  void piece(range r) {
    ++pieces;
    for (std::uint64_t i = r.begin; i < r.end; ++i) ++at[i];
    std::uint64_t least = smallest.load();
    while (r.size() < least && !smallest.compare_exchange_weak(least, r.size())) {
    }
  }
  void expect_once(std::size_t first, std::size_t last) const {
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(at[i], i >= first && i < last ? 1 : 0) << "index " << i;
    }
  }
};

const auto visit = define("dice.visit", [](range r, ref<visits> v) { v.to->piece(r); });

LEV_TEST(dice_test, every_index_of_a_range_once) {
  runtime& r = open();
  for (const std::size_t n : {0u, 1u, 2u, 3u, 17u, 100u, 999u, 5000u}) {
    shared<visits> v(n + 20);
    r.submit(visit, range{10, 10 + n}, ref{&v}).wait();
    v->expect_once(10, 10 + n);
  }
}

LEV_TEST(dice_test, pieces_are_not_smaller_than_the_grain) {
  runtime& r = open();
  for (const std::uint32_t grain : {1u, 7u, 100u, 999u, 1000u, 5000u}) {
    shared<visits> v(1000);
    r.submit(options().grain(grain), visit, range{0, 1000}, ref{&v}).wait();
    v->expect_once(0, 1000);
    EXPECT_GE(v->smallest, std::min<std::uint64_t>(grain, 1000)) << "grain " << grain;
    if (grain > 500) {
      EXPECT_EQ(v->pieces, 1);
    }
  }
}

LEV_TEST(dice_test, one_task_becomes_enough_for_all_workers) {
  for (const std::uint32_t threshold : {8u, 1u << 30, 1u << 31, ~0u}) {
    config c = settings();
    c.dice_threshold = threshold;
    runtime& r = open(c);
    shared<visits> v(10'000);
    r.submit(options().grain(1), visit, range{0, 10'000}, ref{&v}).wait();
    v->expect_once(0, 10'000);
    // The only worker, of a host that runs no tasks, has nobody to share with.
    const bool is_alone = is_remote() && r.workers() == 1;
    EXPECT_GE(v->pieces, is_alone ? 1 : 8) << "threshold " << threshold;
    EXPECT_GE(r.count().diced, is_alone ? 0u : 8u) << "threshold " << threshold;
  }
}

LEV_TEST(dice_test, a_threshold_of_zero_dices_nothing) {
  config c = settings();
  c.dice_threshold = 0;
  runtime& r = open(c);
  shared<visits> v(1000);
  r.submit(visit, range{0, 1000}, ref{&v}).wait();
  v->expect_once(0, 1000);
  EXPECT_EQ(v->pieces, 1);
  EXPECT_EQ(r.count().diced, 0u);
}

// Wherever the workers are, they tell how long a piece took. Virtual time is not measured. (When a
// worker loses its core in a piece, the task looks long for a while.) Two elements: a piece of one
// takes up to a microsecond under ThreadSanitizer, and five of them together are no longer short.
LEV_TEST(dice_test, a_task_that_proves_short_is_cut_no_more) {
  if (is_sim()) GTEST_SKIP() << "virtual time";
  runtime& r = open();
  words x(2);
  r.submit(increment, sliced(x)).wait();
  std::uint64_t pieces = r.count().diced;
  const bool is_one_alone = is_remote() && GetParam().workers == 1;
  EXPECT_EQ(pieces, is_one_alone ? 0u : 2u) << "how long it takes is not known yet";
  pieces = 1;
  for (int tries = 0; pieces != 0 && tries != 5000; ++tries) {
    const std::uint64_t before = r.count().diced;
    r.submit(increment, sliced(x)).wait();
    pieces = r.count().diced - before;
  }
  EXPECT_EQ(pieces, 0u);
}

LEV_TEST(dice_test, elements_of_contiguous_memory) {
  runtime& r = open();
  for (const std::size_t n : {1u, 2u, 63u, 1000u, 4096u}) {
    words x(n);
    std::iota(x.begin(), x.end(), 0);
    r.submit(increment, sliced(x)).wait();
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], i + 1);
  }
}

const auto scale =
    define("dice.scale", [](std::uint64_t factor, in<std::uint64_t> x, out<std::uint64_t> y) {
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
    });

LEV_TEST(dice_test, several_arguments_are_cut_alike) {
  runtime& r = open();
  words x(3000);
  std::iota(x.begin(), x.end(), 0);
  words y(3000, 0);
  r.submit(options().grain(1), scale, std::uint64_t{3}, sliced(x), sliced(y)).wait();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 3 * i);
}

// Rows stay whole: y[r] = sum of row r of a block of a matrix, however few rows a piece has.
const auto row_sums =
    define("dice.row_sums", [](in<std::uint64_t> rows, out<std::uint64_t> sums, range which) {
      ASSERT_EQ(rows.row_size(), 6u);
      ASSERT_EQ(sums.row_size(), 2u);
      ASSERT_EQ(rows.rows(), sums.rows());
      ASSERT_EQ(which.size(), rows.rows());
      for (std::size_t r = 0; r < rows.rows(); ++r) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < 6; ++i) sum += rows.row(r)[i];
        sums.row(r)[0] = sum;
        sums.row(r)[1] = which.begin + r;
      }
    });

LEV_TEST(dice_test, rows_of_different_lengths_are_cut_alike_down_to_single_rows) {
  runtime& r = open();
  for (const std::size_t rows : {1u, 2u, 3u, 8u, 50u, 300u}) {
    words matrix(rows * 9);
    std::iota(matrix.begin(), matrix.end(), 0);
    words sums(rows * 5, 7);
    r.submit(options().grain(1), row_sums, sliced(strided(matrix.data(), rows, 6, 9)),
             sliced(strided(sums.data(), rows, 2, 5)), range{100, 100 + rows})
        .wait();
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(sums[5 * i], 6 * 9 * i + 15) << "row " << i << " of " << rows;
      ASSERT_EQ(sums[5 * i + 1], 100 + i);
      ASSERT_EQ(sums[5 * i + 2], 7u);
    }
  }
}

const auto fail_some = define("dice.fail_some", [](range r, ref<counter> n) {
  *n.to += static_cast<int>(r.size());
  throw std::runtime_error("piece");
});

LEV_TEST(dice_test, failures_of_pieces_reach_the_ticket) {
  runtime& r = open();
  counter n = 0;
  ticket t = r.submit(options().grain(1), fail_some, range{0, 500}, ref{&n});
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_GE(o.failures, 1u);
  ASSERT_TRUE(o.exception);
  if (is_remote()) {
    EXPECT_THROW(std::rethrow_exception(o.exception), error);
  } else {
    EXPECT_THROW(std::rethrow_exception(o.exception), std::runtime_error);
  }
  EXPECT_EQ(n, 500);
}

LEV_TEST(dice_test, a_diced_task_is_a_predecessor_and_a_successor) {
  runtime& r = open();
  words x(1000, 0);
  ticket first = r.submit(options().grain(1), increment, sliced(x));
  ticket second = r.submit(after(first).grain(1), increment, sliced(x));
  ticket third = r.submit(after(second), increment, x);
  ticket fourth = r.submit(after(third).grain(3), increment, sliced(x));
  expect_ok(fourth);
  EXPECT_EQ(x, words(1000, 4));
}

LEV_TEST(dice_test, a_diced_task_may_hold_mutexes) {
  runtime& r = open();
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  words x(500, 0);
  std::vector<ticket> t;
  for (int i = 0; i < 20; ++i) t.push_back(r.submit(locks(m).grain(1), increment, sliced(x)));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(x, words(500, 20));
}

LEV_TEST(dice_test, many_diced_tasks_at_once_with_few_tickets) {
  config c = settings();
  c.tickets = 16;
  runtime& r = open(c);
  constexpr std::size_t count = 60;
  std::vector<words> x(count, words(200, 1));
  for (words& one : x) r.submit(options().grain(1), increment, sliced(one));
  expect_all_done();
  for (const words& one : x) ASSERT_EQ(one, words(200, 2));
}

// Pieces submit and wait for diced tasks of their own.
const auto recurse = define("dice.recurse", [](range r, ref<runtime> home, ref<visits> v) {
  home.to->submit(options().grain(1), visit, r, v).wait();
});

LEV_TEST(dice_test, pieces_may_submit_diced_tasks) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  shared<visits> v(2000);
  r.submit(options().grain(100), recurse, range{0, 2000}, ref{&r}, ref{&v}).wait();
  v->expect_once(0, 2000);
}

const auto spin_items = define("dice.spin_items", [](range r, ref<counter> done) {
  for (std::uint64_t i = r.begin; i != r.end; ++i) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < end) {
    }
    ++*done.to;
  }
});
const auto note_items = define(
    "dice.note_items", [](ref<counter> done, ref<counter> seen) { *seen.to = int{*done.to}; });

LEV_TEST(dice_test, a_task_that_comes_later_does_not_wait_for_the_end) {
  if (is_sim() || is_remote() || GetParam().workers == 1)
    GTEST_SKIP() << "takers cut tasks on threads, where there is more than one";
  constexpr int items = 10'000;
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  bool is_early = false;
  // A thread that the system keeps from its core may come too late: then another round shows it.
  for (int round = 0; round < 10 && !is_early; ++round) {
    counter done = 0;
    counter seen = 0;
    ticket loop = r.submit(spin_items, range{0, items}, ref{&done});
    while (done == 0) std::this_thread::yield();
    const int before = done;
    r.submit(note_items, ref{&done}, ref{&seen}).wait();
    is_early = seen - before < items / 2;
    loop.wait();
    EXPECT_EQ(done, items);
  }
  EXPECT_TRUE(is_early);
}

struct order_of_loops {
  std::atomic<int> begun{0};
  int begun_before_note = -1;
};
const auto loop_in_order = define("dice.loop_in_order", [](range r, ref<order_of_loops> all) {
  if (r.begin == 0) ++all.to->begun;
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20 * r.size());
  while (std::chrono::steady_clock::now() < until) {
  }
});
const auto note_order = define(
    "dice.note_order", [](ref<order_of_loops> all) { all.to->begun_before_note = all.to->begun; });

// Each look at the ready queue between pieces takes a batch, in which a task that is not cut is
// before the loops that were queued ahead of it.
LEV_TEST(dice_test, a_host_that_helps_comes_to_a_task_behind_many_loops) {
  if (is_sim()) GTEST_SKIP() << "the gate of virtual time opens by itself";
  LEV_SKIP_IF_REMOTE();
  constexpr int loops = 24;
  config c = settings();
  c.wait = wait_policy::help;
  runtime& r = open(c);
  gate g(r, r.workers());
  order_of_loops all;
  std::vector<ticket> t;
  for (int i = 0; i < loops; ++i) t.push_back(r.submit(loop_in_order, range{0, 200}, ref{&all}));
  t.push_back(r.submit(note_order, ref{&all}));
  EXPECT_EQ(wait_all(t).code, status::ok);
  EXPECT_LE(all.begun_before_note, loops / 2);
}

const auto start_and_hold =
    define("dice.start_and_hold", [](ref<counter> started, ref<counter> go) {
      *started.to = 1;
      while (*go.to == 0) std::this_thread::yield();
    });

// One worker, a host that might help and does not: what came with the loop in one batch.
LEV_TEST(dice_test, tasks_behind_a_loop_do_not_wait_for_its_end) {
  if (is_sim() || is_remote() || GetParam().workers != 1)
    GTEST_SKIP() << "takers cut tasks on threads";
  constexpr int items = 4000;
  runtime& r = open();
  counter started = 0;
  counter go = 0;
  counter done = 0;
  ticket first = r.submit(start_and_hold, ref{&started}, ref{&go});
  while (started == 0) std::this_thread::yield();
  ticket loop = r.submit(spin_items, range{0, items}, ref{&done});
  counter seen[8];
  std::vector<ticket> notes;
  for (counter& c : seen) notes.push_back(r.submit(note_items, ref{&done}, ref{&c}));
  go = 1;
  for (ticket& t : notes) t.wait(wait_policy::park);
  for (const counter& c : seen) EXPECT_LT(c, items / 2);
  loop.wait(wait_policy::park);
  first.wait(wait_policy::park);
  EXPECT_EQ(done, items);
}

// The same worker, and always some short loops that are newer than a long one.
LEV_TEST(dice_test, newer_loops_do_not_keep_an_older_one_from_its_end) {
  if (is_sim() || is_remote() || GetParam().workers != 1)
    GTEST_SKIP() << "takers cut tasks on threads";
  constexpr int items = 2000;
  runtime& r = open();
  counter done = 0;
  counter others = 0;
  ticket loop = r.submit(spin_items, range{0, items}, ref{&done});
  while (done == 0) std::this_thread::yield();
  std::vector<ticket> newer(8);
  std::size_t at = 0;
  while (!loop.done() && others < 20 * items) {
    ticket& t = newer[at++ % newer.size()];
    if (t) t.wait(wait_policy::park);
    t = r.submit(spin_items, range{0, 100}, ref{&others});
  }
  EXPECT_LT(others, 20 * items);
  for (ticket& t : newer) {
    if (t) t.wait(wait_policy::park);
  }
  loop.wait(wait_policy::park);
  EXPECT_EQ(done, items);
}

// Items that take no time, and as many as there can be.
struct summed {
  std::atomic<std::uint64_t> items{0};
  std::atomic<std::uint64_t> pieces{0};
};
const auto sum_up = define("dice.sum_up", [](range r, ref<summed> s) {
  s.to->items += r.size();
  ++s.to->pieces;
});

LEV_TEST(dice_test, a_range_of_any_size_ends) {
  runtime& r = open();
  for (const unsigned bits : {20u, 32u, 47u, 63u}) {
    for (const std::uint32_t grain : {0u, 1u}) {
      shared<summed> s;
      const std::uint64_t items = std::uint64_t{1} << bits;
      ticket t = r.submit(options().grain(grain), sum_up, range{0, items}, ref{&s});
      if (t.wait_outcome(20'000'000'000).code == status::timed_out) {
        t.cancel();
        t.wait_outcome();
        FAIL() << "2^" << bits << " items, grain " << grain;
      }
      EXPECT_EQ(s->items, items);
      EXPECT_LT(s->pieces, 1u << 18);
    }
  }
}

LEV_TEST(dice_test, work_is_shared_out_evenly_in_virtual_time) {
  if (!is_sim()) GTEST_SKIP() << "on threads the system decides who runs";
  static const auto costly = define(
      "dice.costly", [](range, ref<counter> n) { ++*n.to; }, nullptr,
      [](const descriptor& d) {
        return (d.arguments[0].row_bytes - d.arguments[0].address) * 1000;
      });
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter n = 0;
  const std::uint64_t begin = r.now_ns();
  r.submit(costly, range{0, 10'000}, ref{&n}).wait();
  const double took = static_cast<double>(r.now_ns() - begin);
  const double ideal = 10'000.0 * 1000 / r.workers();
  EXPECT_LT(took, ideal * 1.1) << r.workers() << " workers";
}

}  // namespace
}  // namespace lev::test
