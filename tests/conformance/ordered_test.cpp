// Conformance: the order of tasks that share memory follows from what they declare. Random programs
// on overlapping blocks leave what a serial run leaves; what is apart runs side by side; a failure
// stops those that follow it, and nobody else.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using ordered_test = machine_test;
LEV_ON_EVERY_MACHINE(ordered_test);

using words = std::vector<std::uint64_t>;

// The values that each task writes depend on all that it reads.
std::uint64_t blend(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
}
template <class View>
std::uint64_t digest(const View& view, std::uint64_t seed) {
  for (std::size_t r = 0; r < view.rows(); ++r) {
    for (std::size_t i = 0; i < view.row_size(); ++i) seed = blend(seed, view.row(r)[i]);
  }
  return seed;
}
void scatter(inout<std::uint64_t>& view, std::uint64_t seed) {
  for (std::size_t r = 0; r < view.rows(); ++r) {
    for (std::size_t i = 0; i < view.row_size(); ++i) {
      seed = blend(seed, i);
      view.row(r)[i] ^= seed;
    }
  }
}
const auto change = define(
    "ordered.change", [](std::uint64_t n, inout<std::uint64_t> x) { scatter(x, digest(x, n)); });
const auto combine = define("ordered.combine", [](in<std::uint64_t> a, inout<std::uint64_t> x) {
  scatter(x, blend(digest(a, 1), digest(x, 2)));
});
const auto digest_of =
    define("ordered.digest_of",
           [](in<std::uint64_t> a, result<std::uint64_t> sum) { sum = digest(a, 3); });

// A block of a matrix of words: rows of it, or all of some rows.
struct tile {
  std::size_t first_row, rows, first_column, columns;
};
constexpr std::size_t side = 24;

memory<std::uint64_t> tile_of(words& matrix, const tile& b) {
  std::uint64_t* const first = &matrix[b.first_row * side + b.first_column];
  return strided(first, b.rows, b.columns, side);
}
tile some_tile(random_source& random) {
  const auto part = [&](std::size_t& first, std::size_t& count) {
    count = 1 + random.below(side / 2);
    first = random.below(static_cast<std::uint32_t>(side - count + 1));
  };
  tile b{};
  part(b.first_row, b.rows);
  part(b.first_column, b.columns);
  if (random.below(4) == 0) b.first_column = 0, b.columns = side;
  return b;
}
bool do_meet(const tile& a, const tile& b) {
  return a.first_row < b.first_row + b.rows && b.first_row < a.first_row + a.rows &&
         a.first_column < b.first_column + b.columns && b.first_column < a.first_column + a.columns;
}

LEV_TEST(ordered_test, random_programs_leave_what_a_serial_run_leaves) {
  for (int i = 0; i < rounds(8); ++i) {
    random_source random(base_seed() * 1000 + GetParam().seed * 100 + static_cast<unsigned>(i));
    SCOPED_TRACE("program " + std::to_string(i) + ", LEVERET_SEED " + std::to_string(base_seed()));
    words expected(side * side, 5), found(side * side, 5);
    words sums(16), found_sums(16);
    config c = settings();
    c.tickets = 64u << random.below(5);
    c.full = random.below(2) == 0 ? when_full::help : when_full::wait;
    runtime& r = open(c);
    runtime serial([] {
      config one;
      one.workers = 1;
      return one;
    }());
    ordered tasks(r);
    for (std::uint64_t n = 0; n < 300; ++n) {
      const tile a = some_tile(random), b = some_tile(random);
      const auto place = random.below(16);
      switch (random.below(4)) {
        case 0:
          serial.submit(change, n, tile_of(expected, a)).wait();
          tasks.submit(change, n, tile_of(found, a));
          break;
        case 1:
          serial.submit(digest_of, tile_of(expected, a), sums[place]).wait();
          tasks.submit(digest_of, tile_of(found, a), found_sums[place]);
          break;
        case 2:
          if (do_meet(a, b)) break;
          serial.submit(combine, tile_of(expected, a), tile_of(expected, b)).wait();
          tasks.submit(combine, tile_of(found, a), tile_of(found, b));
          break;
        default:  // results are memory, too
          serial.submit(combine, view(sums.data(), 16), tile_of(expected, b)).wait();
          tasks.submit(combine, view(found_sums.data(), 16), tile_of(found, b));
      }
      if (random.below(64) == 0) tasks.wait();
    }
    tasks.wait();
    ASSERT_EQ(found, expected);
    ASSERT_EQ(found_sums, sums);
  }
}

LEV_TEST(ordered_test, more_tasks_than_tickets_and_one_that_follows_them_all) {
  config c = settings();
  c.tickets = 64;
  runtime& r = open(c);
  words x(400, 1), sums(400);
  std::uint64_t all = 0;
  ordered tasks(r);
  for (std::size_t i = 0; i < x.size(); ++i) tasks.submit(change, std::uint64_t{i}, view(&x[i], 1));
  for (std::size_t i = 0; i < x.size(); ++i)
    tasks.submit(digest_of, view(x.data(), x.size()), sums[i]);  // 400 readers of all
  tasks.submit(change, std::uint64_t{7}, x);                     // and a writer behind them
  tasks.submit(digest_of, x, all);
  tasks.wait();
  for (const std::uint64_t sum : sums) ASSERT_EQ(sum, sums[0]);
  EXPECT_NE(all, sums[0]);
}

const auto fail =
    define("ordered.fail", [](inout<std::uint64_t>) { throw std::runtime_error("on purpose"); });

LEV_TEST(ordered_test, who_follows_a_failure_does_not_run) {
  for (const bool is_late : {false, true}) {
    runtime& r = open();
    words x(4, 1);
    std::uint64_t sum = 0;
    ordered tasks(r);
    tasks.submit(fail, view(&x[0], 2));
    for (int i = 0; is_late && i < 200; ++i) {  // its end is seen, and its ticket collected
      tasks.submit(change, std::uint64_t{1}, view(&x[3], 1));
      if (i == 50) (void)r.wait_for_completion();
    }
    tasks.submit(combine, view(&x[1], 1), view(&x[2], 1));
    tasks.submit(digest_of, view(&x[2], 1), sum);
    tasks.submit(change, std::uint64_t{1}, view(&x[3], 1));
    const outcome o = tasks.wait_outcome(wait_limit_ns());
    expect_runtime_error(o);
    EXPECT_EQ(o.failures, 3u);
    EXPECT_EQ(x[2], 1u);
    EXPECT_EQ(sum, 0u);
    EXPECT_NE(x[3], 1u);
    tasks.submit(change, std::uint64_t{1}, x);  // all is forgotten
    EXPECT_EQ(tasks.wait_outcome(wait_limit_ns()).code, status::ok);
    EXPECT_NE(x[2], 1u);
  }
}

LEV_TEST(ordered_test, failures_without_end_are_counted) {
  runtime& r = open();
  constexpr std::size_t count = 10'000;
  words x(count, 1);
  ordered tasks(r);
  for (std::size_t i = 0; i < count; ++i) tasks.submit(fail, view(&x[i], 1));
  const outcome o = tasks.wait_outcome(wait_limit_ns());
  EXPECT_EQ(o.failures, count);
  expect_runtime_error(o);
}

LEV_TEST(ordered_test, a_scope_that_nobody_waits_for_waits_and_tells) {
  runtime& r = open();
  words x(2, 1);
  {
    ordered tasks(r);
    tasks.submit(fail, view(&x[0], 1));
    tasks.submit(change, std::uint64_t{1}, view(&x[1], 1));
  }
  EXPECT_NE(x[1], 1u);
  const outcome o = r.wait_for_completion(wait_limit_ns());
  expect_runtime_error(o);
  EXPECT_EQ(o.failures, 1u);
}

LEV_TEST(ordered_test, what_is_refused_changes_nothing) {
  runtime& r = open();
  words x(2, 1);
  ordered tasks(r);
  descriptor bad = pack(change, std::uint64_t{1}, view(&x[0], 1));
  bad.arguments[1].address = 0;
  EXPECT_THROW(tasks.submit(bad), error);
  bad.argument_count = 40;
  EXPECT_THROW(tasks.submit(bad), error);
  EXPECT_EQ(tasks.wait_outcome(-5).code, status::bad_argument);
  tasks.submit(change, std::uint64_t{1}, x);
  tasks.wait();
}

LEV_TEST(ordered_test, with_options) {
  runtime& r = open();
  words x(1, 1), y(1, 1);
  ticket first = r.submit(change, std::uint64_t{1}, x);
  ordered tasks(r);
  tasks.submit(after(first).priority(3), combine, x, y);
  tasks.wait();
  const std::uint64_t as_ordered = y[0];
  first.wait();
  y[0] = 1;
  r.submit(combine, x, y).wait();
  EXPECT_EQ(y[0], as_ordered);
}

// Empty tasks stand for the hundreds. One of them fails with the task that it stands for, and is
// not counted.
LEV_TEST(ordered_test, a_failure_among_hundreds_stops_their_follower) {
  runtime& r = open();
  words x(300, 1);
  std::uint64_t sum = 0;
  ordered tasks(r);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 250) {
      tasks.submit(fail, view(&x[i], 1));
    } else {
      tasks.submit(change, std::uint64_t{i}, view(&x[i], 1));
    }
  }
  tasks.submit(digest_of, x, sum);
  const outcome o = tasks.wait_outcome(wait_limit_ns());
  expect_runtime_error(o);
  EXPECT_EQ(o.failures, 2u);
  EXPECT_EQ(sum, 0u);
}

using ordered_local_test = machine_test;
LEV_ON_LOCAL_MACHINES(ordered_local_test);

// A task has a scope of its own for its children.
const auto nested = define("ordered.nested", [](ref<runtime> r, inout<std::uint64_t> x) {
  ordered tasks(*r.to);
  for (std::uint64_t n = 0; n < 20; ++n)
    tasks.submit(change, n, view(&x[n % 2], 1 + (n % 3 == 0 ? 0 : x.size() - 1 - n % 2)));
  tasks.wait();
});

LEV_TEST(ordered_local_test, scopes_in_tasks) {
  config c = settings();
  c.staging = staging::automatic;
  runtime& r = open(c);
  words x(8, 1), y(8, 1);
  ordered tasks(r);
  tasks.submit(nested, &r, x);
  tasks.submit(nested, &r, y);
  tasks.submit(nested, &r, x);
  tasks.wait();
  EXPECT_NE(x, y);
  tasks.submit(nested, &r, y);
  tasks.wait();
  EXPECT_EQ(x, y);
}

using ordered_threads_test = machine_test;
LEV_ON_THREADS(ordered_threads_test);

// Two blocks side by side, and two readers of one, are under way at the same time: the host helps.
const auto meet = define("ordered.meet",
                         [](ref<std::atomic<int>> there, in<std::uint64_t>, inout<std::uint64_t>) {
                           there.to->fetch_add(1);
                           while (there.to->load() < 2) std::this_thread::yield();
                         });

LEV_TEST(ordered_threads_test, what_is_apart_runs_side_by_side) {
  runtime& r = open();
  words x(side * side, 1);
  ordered tasks(r);
  std::atomic<int> there{0};
  const tile read{0, side, 0, 2};
  tasks.submit(meet, &there, tile_of(x, read), tile_of(x, {0, side, 2, 3}));
  tasks.submit(meet, &there, tile_of(x, read), tile_of(x, {0, side, 5, 3}));
  tasks.wait();
  EXPECT_EQ(there, 2);
}

// Returns when the gate is open, and a sum of what is read.
const auto read_late =
    define("ordered.read_late",
           [](ref<std::atomic<bool>> gate, in<std::uint64_t> x, result<std::uint64_t> sum) {
             while (!gate.to->load()) std::this_thread::yield();
             sum = digest(x, 3);
           });

// The host opens the gate when it has submitted all, and so runs none of them before.
LEV_TEST(ordered_threads_test, a_task_after_hundreds_is_submitted_without_a_wait) {
  runtime& r = open();
  for (const std::size_t count : {33u, 64u, 700u}) {
    words x(4, 1), sums(count);
    std::atomic<bool> gate{false};
    ordered tasks(r);
    for (std::uint64_t& sum : sums) tasks.submit(read_late, &gate, x, sum);
    tasks.submit(change, std::uint64_t{7}, x);
    std::uint64_t last = 0;
    tasks.submit(digest_of, x, last);
    gate = true;
    tasks.wait();
    for (const std::uint64_t sum : sums) ASSERT_EQ(sum, sums[0]);
    EXPECT_NE(last, sums[0]);
  }
}

}  // namespace
}  // namespace lev::test
