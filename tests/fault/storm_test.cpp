// Workers that kill themselves at every step of the protocol, thousands of them: nothing is lost,
// nothing is done twice, and the tasks that are run again are exactly those whose worker died
// between its claim and its ending.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "fault/hostile.hpp"
#include "runtime/runtime_state.hpp"
#include "support/environment.hpp"
#include "support/leaks.hpp"
#include "support/machine_test.hpp"

namespace lev::test {
namespace {

const auto add_number = define("storm.add_number", [](std::uint64_t n, inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) v += n;
});

std::uint64_t at_step(runtime& r, chaos_step step) {
  std::uint64_t sum = 0;
  for (unsigned w = 0; w < r.workers(); ++w)
    sum += r.state()->participants[w].counters.chaos[static_cast<std::size_t>(step)].read();
  return sum;
}

class storm_test : public testing::Test {
 protected:
  static config settings() {
    config c;
    c.machine = "processes";
    c.workers = 2;
    c.seed = base_seed();
    c.processes.max_attempts = 1000;
    c.processes.restarts_max = 1'000'000;
    return c;
  }
  void SetUp() override { start_alarm(); }
  void TearDown() override { alarm(0); }
};

TEST_F(storm_test, nothing_is_lost_or_done_twice) {
  config c = settings();
  c.processes.chaos = 200;
  const std::size_t tasks = is_deep() ? 1'000'000 : is_sanitized() ? 5'000 : 40'000;
  std::vector<std::uint64_t> x(tasks, 1);
  runtime r(c);
  for (std::size_t i = 0; i < tasks; ++i) r.post(add_number, i, view(&x[i], 1));
  ASSERT_EQ(r.wait_for_completion(90'000'000'000).code, status::ok);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < tasks; ++i) wrong += x[i] != i + 1;
  EXPECT_EQ(wrong, 0u);
  const counters k = r.count();
  EXPECT_GT(k.deaths, tasks / 100);
  const std::uint64_t in_window = at_step(r, chaos_step::claimed) +
                                  at_step(r, chaos_step::resolved) +
                                  at_step(r, chaos_step::executed);
  EXPECT_EQ(k.reruns, in_window) << "seed " << c.seed;
  for (const chaos_step s : {chaos_step::received, chaos_step::claimed, chaos_step::resolved,
                             chaos_step::executed, chaos_step::finished})
    EXPECT_GT(at_step(r, s), 0u) << "no worker died at step " << static_cast<int>(s);
  EXPECT_EQ(r.close(10'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

TEST_F(storm_test, round_trips_survive) {
  config c = settings();
  c.processes.chaos = 50;
  runtime r(c);
  std::uint64_t sum = 0;
  const std::uint64_t rounds_max = is_sanitized() ? 300 : 2000;
  for (std::uint64_t i = 0; i < rounds_max; ++i)
    ASSERT_EQ(r.submit(add_number, i, view(&sum, 1)).wait_outcome(60'000'000'000).code, status::ok);
  EXPECT_EQ(sum, rounds_max * (rounds_max - 1) / 2);
}

// Every worker dies before its first task: no crash loop, and everybody is told.
TEST_F(storm_test, a_pool_whose_workers_do_nothing_but_die_goes_down) {
  config c = settings();
  c.processes.chaos = 1;
  c.processes.restarts_max = 8;
  runtime r(c);
  std::uint64_t x = 0;
  ticket t = r.submit(add_number, std::uint64_t{1}, view(&x, 1));
  const outcome end = t.wait_outcome(30'000'000'000);
  EXPECT_EQ(end.code, status::pool_down);
  EXPECT_NE(text_of(end).find("as soon as they start (signal 9 (SIGKILL))"), std::string::npos)
      << text_of(end);
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(add_number, std::uint64_t{1}, view(&x, 1)), nullptr, &why));
  EXPECT_EQ(why.code, status::pool_down);
  EXPECT_EQ(x, 0u);
  EXPECT_EQ(r.close(10'000'000'000), status::ok);
}

// They may die because they have no memory to begin with.
TEST_F(storm_test, a_pool_that_goes_down_names_its_limit_of_memory) {
  config c = settings();
  c.processes.chaos = 1;
  c.processes.restarts_max = 8;
  c.processes.worker_bytes_max = std::uint64_t{1} << 40;
  runtime r(c);
  std::uint64_t x = 0;
  ticket t = r.submit(add_number, std::uint64_t{1}, view(&x, 1));
  const std::string end = text_of(t.wait_outcome(30'000'000'000));
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(add_number, std::uint64_t{1}, view(&x, 1)), nullptr, &why));
  for (const std::string& text : {end, std::string(why.message)})
    EXPECT_NE(text.find("worker_bytes_max too small?"), std::string::npos) << text;
  EXPECT_NE(std::string(why.message).find("open a new runtime"), std::string::npos) << why.message;
}

}  // namespace
}  // namespace lev::test
