// The C API's bulks over columns: right ones on each kind of machine, and wrong ones.
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <cstdint>
#include <string>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

// product = factor * value; a value of 13 fails.
int multiply(const lev_call* call) {
  const auto factor = static_cast<std::uint32_t>(call->arguments[0].address);
  const auto value = static_cast<std::uint32_t>(call->arguments[1].address);
  *reinterpret_cast<std::uint32_t*>(call->arguments[2].address) = factor * value;
  return value == 13 ? 4 : 0;
}

class c_api_bulk : public testing::TestWithParam<const char*> {
 protected:
  static constexpr unsigned count = 100;
  void SetUp() override {
    if (machine_unavailable(GetParam()) != nullptr) GTEST_SKIP() << GetParam();
    start_alarm();
    lev_options options{};
    options.machine = GetParam();
    options.workers = 2;
    ASSERT_EQ(lev_open(&options, &runtime_), LEV_OK) << lev_last_message();
    const lev_kind kinds[] = {LEV_VALUE, LEV_VALUE, LEV_OUT};
    const lev_status s = lev_register("c_api.multiply", &multiply, nullptr, kinds, 3, &multiply_);
    ASSERT_TRUE(s == LEV_OK || s == LEV_EXISTS) << lev_last_message();
    const std::uint32_t factor = 3;
    arguments_[0] = lev_value(&factor, sizeof factor);
    arguments_[1] = lev_each(LEV_VALUE, values_, 4, 1, 4);
    arguments_[2] = lev_each(LEV_OUT, products_, 4, 1, 4);
    for (unsigned i = 0; i < count; ++i) values_[i] = i + 20;
  }
  void TearDown() override {
    EXPECT_EQ(lev_close(runtime_), LEV_OK);
    alarm(0);
  }
  lev_status run(unsigned tasks, lev_outcome* outcome = nullptr) {
    lev_ticket t = 0;
    const lev_status s = lev_submit_bulk(runtime_, tasks, multiply_, arguments_, 3, &t);
    return s != LEV_OK ? s : lev_wait(runtime_, t, LEV_NO_TIMEOUT, outcome);
  }

  lev_runtime* runtime_ = nullptr;
  lev_procedure_id multiply_ = 0;
  lev_argument arguments_[3] = {};
  std::uint32_t values_[count] = {};
  std::uint32_t products_[count] = {};
};
INSTANTIATE_TEST_SUITE_P(on, c_api_bulk, testing::Values("threads", "sim", "processes"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(c_api_bulk, tasks_get_their_rows) {
  ASSERT_EQ(run(count), LEV_OK) << lev_last_message();
  for (unsigned i = 0; i < count; ++i) ASSERT_EQ(products_[i], 3 * (i + 20));
  EXPECT_EQ(run(0), LEV_OK);
}

TEST_P(c_api_bulk, failures_name_their_index) {
  values_[17] = values_[18] = 13;
  lev_outcome o{};
  EXPECT_EQ(run(count, &o), LEV_TASK_FAILED);
  EXPECT_EQ(o.failures, 2u);
  EXPECT_EQ(o.task_code, 4);
  const std::string said = o.message;
  EXPECT_TRUE(said == "task 17 of the bulk: its procedure returned 4" ||
              said == "task 18 of the bulk: its procedure returned 4")
      << said;
  for (unsigned i = 19; i < count; ++i) ASSERT_EQ(products_[i], 3 * (i + 20));
}

TEST_P(c_api_bulk, bad_input_is_refused) {
  lev_ticket t = 7;
  EXPECT_EQ(lev_submit_bulk(nullptr, 1, multiply_, arguments_, 3, &t), LEV_BAD_ARGUMENT);
  EXPECT_EQ(lev_submit_bulk(runtime_, 1, multiply_, arguments_, 3, nullptr), LEV_BAD_ARGUMENT);
  EXPECT_EQ(lev_submit_bulk(runtime_, 1, multiply_, nullptr, 3, &t), LEV_BAD_ADDRESS);
  EXPECT_EQ(lev_submit_bulk(runtime_, 1, multiply_, arguments_, 19, &t), LEV_TOO_BIG);
  EXPECT_EQ(lev_submit_bulk(runtime_, 1, multiply_, arguments_, 2, &t), LEV_BAD_ARGUMENT_COUNT);
  EXPECT_EQ(t, 0u);
  arguments_[1] = lev_each(LEV_VALUE, values_, 17, 1, 17);
  EXPECT_EQ(run(2), LEV_TOO_BIG);
  arguments_[1] = lev_each(LEV_VALUE, values_, 0x10001, 1, 4);  // no value of one byte, nor of none
  EXPECT_EQ(run(2), LEV_TOO_BIG);
  arguments_[1] = lev_each(LEV_VALUE, values_, 4, 3, 12);
  EXPECT_EQ(run(2), LEV_BAD_ARGUMENT);
  EXPECT_NE(std::string(lev_last_message()).find("one value"), std::string::npos);
  arguments_[1] = lev_each(LEV_VALUE, nullptr, 4, 1, 4);
  EXPECT_EQ(run(2), LEV_BAD_ADDRESS);
  arguments_[1] = lev_each(LEV_RANGE, values_, 4, 1, 4);
  EXPECT_EQ(run(2), LEV_BAD_ARGUMENT);
  arguments_[1] = lev_value(values_, 4);
  arguments_[2] = lev_memory(LEV_OUT, products_, 4, 1);
  EXPECT_EQ(run(2), LEV_BAD_ARGUMENT);
  EXPECT_NE(std::string(lev_last_message()).find("argument 2: "), std::string::npos);
  arguments_[2] = lev_each(LEV_OUT, products_, 0x10000, 1, 4);
  EXPECT_EQ(run(1), LEV_BAD_ARGUMENT);
  EXPECT_NE(std::string(lev_last_message()).find("1 to 65535 bytes"), std::string::npos);
  arguments_[2] = lev_each(LEV_OUT, products_, 4, 2, 4);
  EXPECT_EQ(run(2), LEV_OVERLAP);
}

}  // namespace
}  // namespace lev::test
