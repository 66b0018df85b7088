// The C API's scopes of ordered tasks, from C, on each kind of machine.
#include "ordered.h"

#include <gtest/gtest.h>
#include <leveret/config.hpp>

#include <string>
#include <vector>

namespace {

class c_ordered : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    lev_options options{};
    options.machine = GetParam();
    options.workers = 2;
    if (const char* why = lev::machine_unavailable(GetParam())) GTEST_SKIP() << why;
    ASSERT_EQ(lev_open(&options, &runtime_), LEV_OK) << lev_last_message();
  }
  void TearDown() override { EXPECT_EQ(lev_close(runtime_), LEV_OK) << lev_last_message(); }

  lev_runtime* runtime_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(on, c_ordered, testing::Values("threads", "sim", "processes"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(c_ordered, memory_is_that_of_a_serial_run) {
  constexpr unsigned tasks = 200;
  std::vector<std::uint64_t> found(9, 1), expected(9, 1);
  ASSERT_EQ(run_ordered(runtime_, found.data(), found.size(), tasks), LEV_OK) << lev_last_message();
  for (unsigned i = 0; i < tasks; ++i) {
    for (std::size_t k = i % expected.size(); k < expected.size(); ++k)
      expected[k] = expected[k] * (i + 2) + 1;
  }
  EXPECT_EQ(found, expected);
}

TEST_P(c_ordered, a_failure_stops_what_follows_it) {
  std::uint64_t words[4] = {1, 1, 1, 1};
  lev_ticket tickets[3] = {};
  lev_outcome outcome{};
  EXPECT_EQ(run_failing(runtime_, words, tickets, &outcome), LEV_TASK_FAILED);
  EXPECT_NE(std::string(lev_last_message()).find("task_code"), std::string::npos);
  EXPECT_EQ(outcome.code, LEV_TASK_FAILED);
  EXPECT_EQ(outcome.task_code, 7);
  EXPECT_EQ(outcome.failures, 2u);
  EXPECT_EQ(words[2], 1u);
  EXPECT_EQ(words[3], 3u);
  EXPECT_NE(tickets[0], 0u);
  EXPECT_EQ(tickets[1], 0u);
  EXPECT_EQ(lev_poll(runtime_, tickets[2]), LEV_STALE_TICKET);
}

TEST_P(c_ordered, a_failure_that_nobody_waits_for_is_told_at_the_end) {
  lev_ordered* scope = nullptr;
  ASSERT_EQ(lev_ordered_open(runtime_, &scope), LEV_OK);
  std::uint64_t word = 1;
  const std::uint64_t fails = 0;
  const lev_argument arguments[] = {lev_value(&fails, sizeof fails),
                                    lev_memory(LEV_INOUT, &word, sizeof word, 1)};
  ASSERT_EQ(lev_ordered_submit(scope, advance_procedure(), arguments, 2, nullptr, nullptr), LEV_OK);
  lev_ordered_close(scope);
  EXPECT_EQ(lev_wait_for_completion(runtime_, LEV_NO_TIMEOUT), LEV_TASK_FAILED);
}

}  // namespace
