// Bulks over columns whose worker processes die: only the task that they die in is run again, or
// reported, and its index is named.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <signal.h>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

struct tally {
  int* runs;
};
// Dies in the task `fatal`, the first `times` times that it runs.
void die_at(std::uint32_t i, std::uint32_t fatal, int times, tally t, inout<std::uint64_t> x) {
  x[0] += 100;
  const int before = __atomic_fetch_add(t.runs + i, 1, __ATOMIC_SEQ_CST);
  if (i == fatal && before < times) raise(SIGKILL);
}
const auto dies_at = define("columns.dies_at", &die_at);

class columns_death : public machine_test {
 protected:
  static constexpr std::uint32_t count = 500;
  columns_death() : index_(count), x_(count) {
    for (std::uint32_t i = 0; i < count; ++i) x_[i] = index_[i] = i;
  }
  outcome run(runtime& r, std::uint32_t fatal, int times, decltype(dies_at) p = dies_at) {
    ticket t = r.submit_bulk(count, p, each(index_), fatal, times, tally{runs_.data()}, each(x_));
    return wait(t);
  }
  std::vector<std::uint32_t> index_;
  std::vector<std::uint64_t> x_;
  shared_array<int> runs_{count};
};
LEV_ON_PROCESSES(columns_death);

LEV_TEST(columns_death, only_the_task_that_died_is_run_again) {
  config c = settings();
  c.processes.max_attempts = 3;
  runtime& r = open(c);
  EXPECT_EQ(run(r, 321, 2).code, status::ok);
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(runs_[i], i == 321 ? 3 : 1) << i;
    EXPECT_EQ(x_[i], i + 100) << i;
  }
  EXPECT_EQ(r.count().reruns, 2u);
}

LEV_TEST(columns_death, poison_names_its_index_and_the_others_run) {
  config c = settings();
  c.processes.max_attempts = 2;
  runtime& r = open(c);
  const outcome o = run(r, 123, 1'000);
  EXPECT_EQ(o.code, status::poison);
  EXPECT_EQ(o.failures, 1u);
  try {
    std::rethrow_exception(o.exception);
  } catch (const error& e) {
    EXPECT_NE(std::strstr(e.what(), "'columns.dies_at', task 123 of the bulk,"), nullptr)
        << e.what();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(runs_[i], i == 123 ? 2 : 1) << i;
    EXPECT_EQ(x_[i], i == 123 ? i : i + 100) << i;
  }
}

// Few arguments, none of which has room in a local store.
LEV_TEST(columns_death, one_column_that_is_worked_on_in_place) {
  static const auto dies_at_zero = define("columns.dies_at_zero", [](inout<std::uint64_t> x) {
    if (x[0] == 0) raise(SIGKILL);
    x[0] += 100;
  });
  config c = settings();
  c.staging = staging::in_place;
  runtime& r = open(c);
  shared_array<std::uint64_t> x(count);
  for (std::uint32_t i = 0; i < count; ++i) x[i] = i % 200 == 123 ? 0 : i + 1;
  ticket t = r.submit_bulk(count, dies_at_zero, each(x.data(), 1));
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::worker_died);  // it may have written in place: not run again
  EXPECT_EQ(o.failures, 2u);
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(x[i], i % 200 == 123 ? 0 : i + 101) << i;
}

LEV_TEST(columns_death, what_must_not_be_run_again_is_not) {
  procedure_info info = detail::describe("columns.dies_once", &die_at);
  info.may_rerun = false;
  runtime& r = open();
  const outcome o = run(r, 321, 1, {detail::register_or_throw(info)});
  EXPECT_EQ(o.code, status::worker_died);
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(runs_[i], 1) << i;
}

// Workers are killed at random at every step of the protocol.
LEV_TEST(columns_death, a_storm_loses_nothing) {
  config c = settings();
  c.processes.chaos = 20;
  c.processes.max_attempts = 1'000;
  c.processes.restarts_max = 1'000'000;
  runtime& r = open(c);
  std::vector<std::uint64_t> x(20'000, 1);
  ticket t = r.submit_bulk(x.size(), increment, each(x));
  EXPECT_EQ(wait(t).code, status::ok);
  for (const std::uint64_t v : x) ASSERT_EQ(v, 2u);
}

}  // namespace
}  // namespace lev::test
