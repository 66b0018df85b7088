// Bad input through the C API: every pointer that may not be NULL, every number out of range. A
// status comes back, and a message says what to do.
#include <gtest/gtest.h>
#include <leveret/leveret.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

int add_one(const lev_call* call) {
  int value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(call->arguments[0].address), sizeof value);
  if (value < 0) return value;
  ++value;
  std::memcpy(reinterpret_cast<void*>(call->arguments[0].address), &value, sizeof value);
  return 0;
}

class c_api : public testing::Test {
 protected:
  void SetUp() override {
    start_alarm();
    lev_options options{};
    options.workers = 2;
    options.tickets = 64;
    ASSERT_EQ(lev_open(&options, &runtime_), LEV_OK);
    const lev_kind kinds[] = {LEV_INOUT};
    if (lev_lookup("c_api.add_one") == 0) {
      ASSERT_EQ(lev_register("c_api.add_one", &add_one, nullptr, kinds, 1, nullptr), LEV_OK);
    }
    procedure_ = lev_lookup("c_api.add_one");
  }
  // The runtime still works, whatever came before.
  void TearDown() override {
    lev_ticket t = 0;
    const lev_argument a = argument_of(value_ = 41);
    ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
    EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, nullptr), LEV_OK);
    EXPECT_EQ(value_, 42);
    EXPECT_EQ(lev_close(runtime_), LEV_OK);
  }
  lev_argument argument_of(int&) { return lev_memory(LEV_INOUT, &value_, sizeof value_, 1); }

  // Expects a status, and a message with `says` in it.
  static void expect_refused(lev_status got, lev_status code, const char* says) {
    EXPECT_EQ(got, code) << lev_status_name(got);
    const std::string message = lev_last_message();
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  lev_runtime* runtime_ = nullptr;
  lev_procedure_id procedure_ = 0;
  int value_ = 0;
};

TEST_F(c_api, null_pointers) {
  lev_ticket t = 5;
  size_t index = 0;
  lev_argument a = argument_of(value_);
  expect_refused(lev_open(nullptr, nullptr), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_submit(nullptr, procedure_, &a, 1, &t), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_submit(runtime_, procedure_, &a, 1, nullptr), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_submit(runtime_, procedure_, nullptr, 1, &t), LEV_BAD_ADDRESS, "NULL");
  EXPECT_EQ(t, 0u);
  t = 5;
  expect_refused(lev_submit_after(runtime_, procedure_, &a, 1, nullptr, 1, &t), LEV_BAD_ARGUMENT,
                 "NULL");
  EXPECT_EQ(t, 0u);
  expect_refused(lev_wait(nullptr, 1, 0, nullptr), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_wait_any(nullptr, &t, 1, 0, &index, nullptr), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_wait_any(runtime_, nullptr, 1, 0, &index, nullptr), LEV_BAD_ARGUMENT, "NULL");
  expect_refused(lev_wait_any(runtime_, &t, 1, 0, nullptr, nullptr), LEV_BAD_ARGUMENT, "NULL");
  EXPECT_EQ(lev_wait_any(runtime_, nullptr, 0, 0, &index, nullptr), LEV_BAD_ARGUMENT);
  expect_refused(lev_wait_for_completion(nullptr, 0), LEV_BAD_ARGUMENT, "NULL");
  lev_release(nullptr, 1);
  EXPECT_EQ(lev_close(nullptr), LEV_OK);
  EXPECT_EQ(lev_lookup(nullptr), 0);
}

// Those that share their checks say which of them was called.
TEST_F(c_api, a_refused_call_is_named) {
  constexpr auto bad = LEV_BAD_ARGUMENT;
  const auto other = static_cast<lev_wait_policy>(99);
  lev_ticket t = 0;
  size_t index = 0;
  lev_ordered* scope = nullptr;
  ASSERT_EQ(lev_ordered_open(runtime_, &scope), LEV_OK);
  lev_task_options o{};
  o.after_count = 1;
  const lev_procedure_id p = procedure_;
  expect_refused(lev_submit(nullptr, p, nullptr, 0, &t), bad, "lev_submit: ");
  expect_refused(lev_submit(runtime_, p, nullptr, 1, &t), LEV_BAD_ADDRESS, "lev_submit: ");
  expect_refused(lev_post(nullptr, p, nullptr, 1), bad, "lev_post: ");
  expect_refused(lev_post(runtime_, p, nullptr, 1), LEV_BAD_ADDRESS, "lev_post: ");
  expect_refused(lev_post(runtime_, p, nullptr, 19), LEV_TOO_BIG, "lev_post: ");
  expect_refused(lev_submit_bulk(nullptr, 1, p, nullptr, 1, &t), bad, "lev_submit_bulk: ");
  expect_refused(lev_submit_bulk(runtime_, 1, p, nullptr, 1, &t), LEV_BAD_ADDRESS,
                 "lev_submit_bulk: ");
  expect_refused(lev_submit_after(runtime_, p, nullptr, 1, nullptr, 0, &t), LEV_BAD_ADDRESS,
                 "lev_submit_after: ");
  expect_refused(lev_submit_after(runtime_, p, nullptr, 0, nullptr, 1, &t), bad,
                 "lev_submit_after: ");
  expect_refused(lev_submit_with(runtime_, p, nullptr, 0, &o, &t), bad, "lev_submit_with: ");
  expect_refused(lev_submit_with(runtime_, p, nullptr, 0, nullptr, nullptr), bad,
                 "lev_submit_with: ");
  expect_refused(lev_ordered_submit(scope, p, nullptr, 0, &o, &t), bad, "lev_ordered_submit: ");
  expect_refused(lev_wait(nullptr, t, 0, nullptr), bad, "lev_wait: ");
  expect_refused(lev_wait_by(nullptr, t, 0, LEV_WAIT_PARK, nullptr), bad, "lev_wait_by: ");
  expect_refused(lev_wait_by(runtime_, t, 0, other, nullptr), bad, "lev_wait_by: ");
  expect_refused(lev_wait_any(nullptr, &t, 1, 0, &index, nullptr), bad, "lev_wait_any: ");
  expect_refused(lev_wait_any_by(runtime_, &t, 1, 0, LEV_WAIT_PARK, nullptr, nullptr), bad,
                 "lev_wait_any_by: ");
  expect_refused(lev_wait_any_by(runtime_, &t, 1, 0, other, &index, nullptr), bad,
                 "lev_wait_any_by: ");
  lev_ordered_close(scope);
}

TEST_F(c_api, a_refused_wait_says_what_is_wrong) {
  const lev_argument a = argument_of(value_ = 1);
  lev_ticket t = 0;
  size_t index = 0;
  ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
  expect_refused(lev_wait(runtime_, t, -5, nullptr), LEV_BAD_ARGUMENT, "a time-out is");
  expect_refused(lev_wait_for_completion(runtime_, -5), LEV_BAD_ARGUMENT, "a time-out is");
  expect_refused(lev_wait_any(runtime_, &t, 0, 0, &index, nullptr), LEV_BAD_ARGUMENT,
                 "one that is not empty");
  EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, nullptr), LEV_OK);
}

// The message is that of the call which failed, not of one before.
TEST_F(c_api, every_call_about_a_ticket_says_what_is_wrong) {
  using call = lev_status (*)(lev_runtime*, lev_ticket);
  lev_ticket t = 0;
  const lev_argument a = argument_of(value_ = 1);
  ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
  ASSERT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, nullptr), LEV_OK);
  for (const call about : {&lev_poll, &lev_cancel, &lev_end}) {
    lev_open(nullptr, nullptr);  // fails, and says something else
    expect_refused(about(runtime_, t), LEV_STALE_TICKET, "used up");
    lev_open(nullptr, nullptr);
    expect_refused(about(runtime_, 0), LEV_BAD_TICKET, "no ticket of the runtime");
    expect_refused(about(nullptr, 1), LEV_BAD_ARGUMENT, "NULL");
  }
  expect_refused(lev_wait(runtime_, t, LEV_NO_TIMEOUT, nullptr), LEV_STALE_TICKET, "used up");
  ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
  while (lev_poll(runtime_, t) == LEV_PENDING) {
    const std::string message = lev_last_message();
    ASSERT_NE(message.find("has not ended"), std::string::npos) << message;
  }
  expect_refused(lev_end(runtime_, t), LEV_TOO_LATE, "has its outcome");
  lev_release(runtime_, t);
  expect_refused(lev_register("leveret.bulk", &add_one, nullptr, nullptr, 0, nullptr),
                 LEV_BAD_ARGUMENT, "Leveret's own");
  EXPECT_EQ(lev_shared_allocate(SIZE_MAX), nullptr);
  EXPECT_NE(std::string(lev_last_message()).find("shared memory"), std::string::npos);
}

TEST_F(c_api, registrations) {
  const lev_kind kinds[] = {LEV_IN, LEV_OUT, static_cast<lev_kind>(77)};
  lev_procedure_id id = 0;
  EXPECT_NE(lev_register(nullptr, &add_one, nullptr, kinds, 1, &id), LEV_OK);
  EXPECT_NE(lev_register("", &add_one, nullptr, kinds, 1, &id), LEV_OK);
  EXPECT_NE(lev_register("c_api.no_body", nullptr, nullptr, kinds, 1, &id), LEV_OK);
  EXPECT_NE(lev_register("c_api.no_kinds", &add_one, nullptr, nullptr, 1, &id), LEV_OK);
  EXPECT_NE(lev_register("c_api.bad_kind", &add_one, nullptr, kinds, 3, &id), LEV_OK);
  const lev_kind wide[] = {static_cast<lev_kind>(256 + LEV_VALUE)};
  EXPECT_EQ(lev_register("c_api.wide_kind", &add_one, nullptr, wide, 1, &id), LEV_BAD_ARGUMENT);
  EXPECT_EQ(lev_register("c_api.many", &add_one, nullptr, kinds, 19, &id), LEV_BAD_ARGUMENT_COUNT);
  expect_refused(lev_register("c_api.add_one", &add_one, nullptr, kinds, 1, &id), LEV_EXISTS,
                 "taken");
  EXPECT_EQ(lev_lookup("c_api.bad_kind"), 0);
}

TEST_F(c_api, tasks_that_are_refused) {
  lev_ticket t = 0;
  lev_argument a = argument_of(value_);
  expect_refused(lev_submit(runtime_, 0, &a, 1, &t), LEV_BAD_PROCEDURE, "0");
  expect_refused(lev_submit(runtime_, procedure_, &a, 0, &t), LEV_BAD_ARGUMENT_COUNT, "takes 1");
  lev_argument many[19];
  for (lev_argument& one : many) one = a;
  expect_refused(lev_submit(runtime_, procedure_, many, 19, &t), LEV_TOO_BIG, "18");
  expect_refused(lev_submit(runtime_, procedure_, many, 4'000'000'000u, &t), LEV_TOO_BIG, "18");
  const lev_ticket none[40] = {};
  expect_refused(lev_submit_after(runtime_, procedure_, &a, 1, none, 40, &t), LEV_TOO_BIG, "32");
  const lev_ticket odd[] = {0xfffffffffff};
  expect_refused(lev_submit_after(runtime_, procedure_, &a, 1, odd, 1, &t), LEV_BAD_TICKET,
                 "after()");
  lev_ticket last = odd[0];  // a chain may keep the ticket of its last task in one place
  expect_refused(lev_submit_after(runtime_, procedure_, &a, 1, &last, 1, &last), LEV_BAD_TICKET,
                 "after()");
  EXPECT_EQ(last, 0u);
  a.what = LEV_IN;
  expect_refused(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_BAD_ARGUMENT, "argument 0");
  EXPECT_EQ(t, 0u);
}

TEST_F(c_api, argument_makers_carry_mistakes_to_the_submit) {
  lev_ticket t = 0;
  lev_procedure_id by_value = lev_lookup("c_api.by_value");
  const lev_kind kinds[] = {LEV_VALUE};
  if (by_value == 0) {
    ASSERT_EQ(lev_register("c_api.by_value", &add_one, nullptr, kinds, 1, &by_value), LEV_OK);
  }
  const char bytes[40] = {};
  for (const size_t size : {size_t{17}, size_t{40}, size_t{0x10000}, size_t{0x10001}}) {
    const lev_argument a = lev_value(bytes, size);
    expect_refused(lev_submit(runtime_, by_value, &a, 1, &t), LEV_TOO_BIG, "16");
  }
  lev_argument huge = lev_memory(LEV_INOUT, &value_, sizeof value_, SIZE_MAX / 2);
  EXPECT_NE(lev_submit(runtime_, procedure_, &huge, 1, &t), LEV_OK);
  // 4 * (2^62 + 1) bytes are 4, if nobody looks.
  huge = lev_memory(LEV_INOUT, &value_, sizeof value_, SIZE_MAX / 4 + 2);
  EXPECT_EQ(lev_submit(runtime_, procedure_, &huge, 1, &t), LEV_BAD_RANGE);
  huge = lev_strided(LEV_INOUT, &value_, sizeof value_, 1, SIZE_MAX / 4 + 2, 4);
  EXPECT_EQ(lev_submit(runtime_, procedure_, &huge, 1, &t), LEV_BAD_RANGE);
  huge = lev_memory(LEV_INOUT, &value_, 100'000, 1);
  EXPECT_EQ(lev_submit(runtime_, procedure_, &huge, 1, &t), LEV_BAD_ARGUMENT);
  huge = lev_strided(LEV_INOUT, &value_, 4, SIZE_MAX, 1, 4);
  EXPECT_EQ(lev_submit(runtime_, procedure_, &huge, 1, &t), LEV_TOO_BIG);
  const lev_argument null = lev_memory(LEV_INOUT, nullptr, 4, 1);
  EXPECT_EQ(lev_submit(runtime_, procedure_, &null, 1, &t), LEV_BAD_ADDRESS);
}

TEST_F(c_api, options_that_are_refused) {
  lev_runtime* r = reinterpret_cast<lev_runtime*>(this);
  lev_options options{};
  options.workers = -5;
  expect_refused(lev_open(&options, &r), LEV_BAD_CONFIG, "workers");
  EXPECT_EQ(r, nullptr);
  options = {};
  options.wait = static_cast<lev_wait_policy>(77);
  expect_refused(lev_open(&options, &r), LEV_BAD_CONFIG, "wait");
  options = {};
  options.machine = "abacus";
  expect_refused(lev_open(&options, &r), LEV_UNAVAILABLE, "abacus");
  options = {};
  options.local_store_bytes = UINT64_MAX;
  expect_refused(lev_open(&options, &r), LEV_OUT_OF_MEMORY, "local_store_bytes");
}

TEST_F(c_api, waits_by_every_policy_there_is) {
  const lev_argument a = argument_of(value_);
  value_ = 0;
  for (int how = LEV_WAIT_HELP; how <= LEV_WAIT_OF_RUNTIME; ++how) {
    const auto policy = static_cast<lev_wait_policy>(how);
    lev_ticket t = 0;
    std::size_t index = 1;
    ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
    ASSERT_EQ(lev_wait_any_by(runtime_, &t, 1, LEV_NO_TIMEOUT, policy, &index, nullptr), LEV_OK);
    EXPECT_EQ(index, 0u);
    ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
    ASSERT_EQ(lev_wait_by(runtime_, t, LEV_NO_TIMEOUT, policy, nullptr), LEV_OK);
  }
  EXPECT_EQ(value_, 2 * (LEV_WAIT_OF_RUNTIME + 1));
  lev_ticket t = 0;
  ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
  std::size_t index = 0;
  for (const int wrong : {-1, LEV_WAIT_OF_RUNTIME + 1, 77}) {
    const auto policy = static_cast<lev_wait_policy>(wrong);
    expect_refused(lev_wait_by(runtime_, t, LEV_NO_TIMEOUT, policy, nullptr), LEV_BAD_ARGUMENT,
                   "how");
    expect_refused(lev_wait_any_by(runtime_, &t, 1, LEV_NO_TIMEOUT, policy, &index, nullptr),
                   LEV_BAD_ARGUMENT, "how");
  }
  EXPECT_EQ(lev_wait_by(nullptr, 1, 0, LEV_WAIT_PARK, nullptr), LEV_BAD_ARGUMENT);
  EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, nullptr), LEV_OK);
}

TEST_F(c_api, posted_tasks_are_counted) {
  const lev_argument a = argument_of(value_);
  value_ = 1;
  EXPECT_EQ(lev_post(runtime_, procedure_, &a, 1), LEV_OK);
  EXPECT_EQ(lev_wait_for_completion(runtime_, LEV_NO_TIMEOUT), LEV_OK);
  EXPECT_EQ(value_, 2);
  lev_counters n;
  ASSERT_EQ(lev_count(runtime_, &n), LEV_OK);
  EXPECT_EQ(n.submitted, 1u);
  EXPECT_EQ(n.completed, 1u);
  EXPECT_EQ(n.failed, 0u);
  expect_refused(lev_post(nullptr, procedure_, &a, 1), LEV_BAD_ARGUMENT, "runtime");
  expect_refused(lev_post(runtime_, 0, &a, 1), LEV_BAD_PROCEDURE, "0");
  expect_refused(lev_count(runtime_, nullptr), LEV_BAD_ARGUMENT, "counters");
}

TEST_F(c_api, traces_are_written) {
  expect_refused(lev_write_trace(runtime_, "unused.json"), LEV_NOT_SUPPORTED, "trace_events");
  expect_refused(lev_write_trace(runtime_, nullptr), LEV_BAD_ARGUMENT, "path");
  lev_options options{};
  options.trace_events = 64;
  options.wait = LEV_WAIT_PARK;
  options.staging = LEV_STAGING_COPY;
  options.full = LEV_FULL_WAIT;
  lev_runtime* traced = nullptr;
  ASSERT_EQ(lev_open(&options, &traced), LEV_OK) << lev_last_message();
  const std::string path = testing::TempDir() + "leveret_c_api_trace.json";
  EXPECT_EQ(lev_write_trace(traced, path.c_str()), LEV_OK) << lev_last_message();
  EXPECT_EQ(std::remove(path.c_str()), 0);
  expect_refused(lev_write_trace(traced, "/no/such/folder/trace.json"), LEV_UNAVAILABLE, "folder");
  EXPECT_EQ(lev_close(traced), LEV_OK);
}

TEST_F(c_api, outcomes_of_failed_tasks) {
  value_ = -7;
  lev_argument a = argument_of(value_);
  lev_ticket t = 0;
  ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t), LEV_OK);
  lev_outcome o;
  EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, &o), LEV_TASK_FAILED);
  EXPECT_EQ(o.code, LEV_TASK_FAILED);
  EXPECT_EQ(o.task_code, -7);
  EXPECT_EQ(o.failures, 1u);
  EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, &o), LEV_STALE_TICKET);
  EXPECT_EQ(lev_wait(runtime_, t, -5, &o), LEV_BAD_ARGUMENT);
  EXPECT_STRNE(lev_last_message(), "");
}

TEST_F(c_api, waits_for_any_clear_what_they_took) {
  int values[3] = {1, 2, 3};
  lev_ticket t[3];
  for (int i = 0; i < 3; ++i) {
    const lev_argument a = lev_memory(LEV_INOUT, &values[i], sizeof(int), 1);
    ASSERT_EQ(lev_submit(runtime_, procedure_, &a, 1, &t[i]), LEV_OK);
  }
  size_t index = 9;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(lev_wait_any(runtime_, t, 3, LEV_NO_TIMEOUT, &index, nullptr), LEV_OK);
    ASSERT_LT(index, 3u);
    EXPECT_EQ(t[index], 0u);
  }
  EXPECT_EQ(lev_wait_any(runtime_, t, 3, LEV_NO_TIMEOUT, &index, nullptr), LEV_BAD_ARGUMENT);
  EXPECT_EQ(values[0] + values[1] + values[2], 9);
}

}  // namespace
}  // namespace lev::test
