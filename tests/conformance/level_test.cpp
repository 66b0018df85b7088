// Conformance: workers in other processes have lines of tasks, and none waits in a line behind a
// long task while another worker has nothing to do.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "sync/pause.hpp"

namespace lev::test {
namespace {

class level_test : public machine_test {
 protected:
  // Both workers are at a gate, and what is submitted is posted behind them.
  runtime& open_occupied() {
    leave_gates();
    config c = settings();
    c.wait = wait_policy::park;
    c.workers = 2;
    runtime& r = open(c);
    long_one_.emplace(r, 1);
    other_.emplace(r, 1);
    return r;
  }
  void TearDown() override {
    leave_gates();
    machine_test::TearDown();
  }
  void free_one_worker() { other_->open(); }
  void end_long_task() { long_one_.reset(); }

 private:
  void leave_gates() {
    other_.reset();
    long_one_.reset();
  }
  std::optional<gate> long_one_;
  std::optional<gate> other_;
};
LEV_ON_PROCESSES(level_test);

LEV_TEST(level_test, short_tasks_end_while_a_long_one_runs) {
  runtime& r = open_occupied();
  counter n = 0;
  std::vector<ticket> t;
  for (int i = 0; i < 40; ++i) t.push_back(r.submit(count_one, ref{&n}));
  free_one_worker();
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(n, 40);
}

// Only the service is left to see that a worker has nothing to do.
LEV_TEST(level_test, nobody_needs_to_be_in_the_runtime) {
  runtime& r = open_occupied();
  counter n = 0;
  for (int i = 0; i < 40; ++i) r.post(count_one, ref{&n});
  free_one_worker();
  while (n < 40) std::this_thread::yield();
}

// Inputs were copied to the store of the worker that has the long task; outputs come from that of
// the other one.
LEV_TEST(level_test, a_task_that_moves_brings_its_data) {
  runtime& r = open_occupied();
  constexpr std::size_t tasks = 40;
  std::vector<std::int64_t> results(tasks);
  std::vector<ticket> t;
  for (std::size_t i = 0; i < tasks; ++i)
    t.push_back(r.submit(square, static_cast<std::int64_t>(i), results[i]));
  free_one_worker();
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  for (std::size_t i = 0; i < tasks; ++i) EXPECT_EQ(results[i], static_cast<std::int64_t>(i * i));
}

LEV_TEST(level_test, pieces_of_a_bulk_move_too) {
  runtime& r = open_occupied();
  counter n = 0;
  ticket t = r.submit_bulk(60, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
  free_one_worker();
  expect_ok(t);
  EXPECT_EQ(n, 60);
}

// A worker passes over what was taken from it, and then has work again: as often as its line has
// places, and more often.
LEV_TEST(level_test, lines_go_on_after_tasks_were_taken_back) {
  for (int round = 0; round < rounds(12); ++round) {
    runtime& r = open_occupied();
    counter n = 0;
    std::vector<ticket> t;
    for (int i = 0; i < 40; ++i) t.push_back(r.submit(count_one, ref{&n}));
    free_one_worker();
    if (round % 2 == 0) {
      EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
      t.clear();
    }
    end_long_task();
    for (int i = 0; i < 40; ++i) t.push_back(r.submit(count_one, ref{&n}));
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
    ASSERT_EQ(n, 80);
  }
}

// Long and short ones on all workers, in any order: each runs once.
LEV_TEST(level_test, each_task_runs_once) {
  static const auto turn = define("level.turn", [](ref<counter> n, std::uint32_t turns) {
    for (std::uint32_t i = 0; i < turns; ++i) relax_core();
    ++*n.to;
  });
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  random_source random(base_seed());
  for (int round = 0; round < rounds(60); ++round) {
    std::vector<counter> n(64);
    std::vector<ticket> t;
    for (std::size_t i = 0; i < n.size(); ++i) {
      const std::uint32_t turns = random.below(8) == 0 ? 20'000 : random.below(300);
      t.push_back(r.submit(turn, ref{&n[i]}, turns));
      if (random.below(16) == 0) expect_ok(t.back()), t.pop_back();
    }
    ASSERT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
    for (std::size_t i = 0; i < n.size(); ++i) ASSERT_EQ(n[i], 1);
  }
}

}  // namespace
}  // namespace lev::test
