// The C API's scopes of ordered tasks: what is refused says why and leaves nothing behind.
#include <gtest/gtest.h>
#include <leveret/leveret.h>
#include <leveret/ordered.hpp>

#include <cstdint>
#include <string>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

int count_up(const lev_call* call) {
  ++*reinterpret_cast<std::uint64_t*>(call->arguments[0].address);
  return 0;
}

class c_api_ordered : public testing::Test {
 protected:
  void SetUp() override {
    start_alarm();
    lev_options options{};
    options.workers = 1;
    ASSERT_EQ(lev_open(&options, &runtime_), LEV_OK);
    const lev_kind kinds[] = {LEV_INOUT};
    const lev_status s = lev_register("c_api.count_up", &count_up, nullptr, kinds, 1, &count_up_);
    ASSERT_TRUE(s == LEV_OK || s == LEV_EXISTS) << lev_last_message();
    ASSERT_EQ(lev_ordered_open(runtime_, &scope_), LEV_OK);
    argument_ = lev_memory(LEV_INOUT, &word_, sizeof word_, 1);
  }
  // The scope still works, whatever came before.
  void TearDown() override {
    word_ = 7;
    EXPECT_EQ(lev_ordered_submit(scope_, count_up_, &argument_, 1, nullptr, nullptr), LEV_OK);
    EXPECT_EQ(lev_ordered_wait(scope_, LEV_NO_TIMEOUT, nullptr), LEV_OK);
    EXPECT_EQ(word_, 8u);
    lev_ordered_close(scope_);
    EXPECT_EQ(lev_close(runtime_), LEV_OK);
    alarm(0);
  }
  static void expect_refused(lev_status got, lev_status code, const char* says) {
    EXPECT_EQ(got, code) << lev_status_name(got);
    const std::string message = lev_last_message();
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
  lev_status submit(const lev_argument* arguments, unsigned count,
                    const lev_task_options* options = nullptr) {
    return lev_ordered_submit(scope_, count_up_, arguments, count, options, &ticket_);
  }

  lev_runtime* runtime_ = nullptr;
  lev_ordered* scope_ = nullptr;
  lev_procedure_id count_up_ = 0;
  lev_argument argument_{};
  lev_ticket ticket_ = 5;
  std::uint64_t word_ = 7;
};

TEST_F(c_api_ordered, null_pointers) {
  lev_ordered* none = scope_;
  expect_refused(lev_ordered_open(nullptr, &none), LEV_BAD_ARGUMENT, "runtime and scope");
  EXPECT_EQ(none, nullptr);
  expect_refused(lev_ordered_open(runtime_, nullptr), LEV_BAD_ARGUMENT, "runtime and scope");
  expect_refused(lev_ordered_submit(nullptr, count_up_, &argument_, 1, nullptr, &ticket_),
                 LEV_BAD_ARGUMENT, "lev_ordered_open makes one");
  EXPECT_EQ(ticket_, 0u);
  expect_refused(submit(nullptr, 1), LEV_BAD_ADDRESS, "lev_ordered_submit: arguments is NULL");
  expect_refused(lev_ordered_wait(nullptr, LEV_NO_TIMEOUT, nullptr), LEV_BAD_ARGUMENT, "scope");
  lev_ordered_close(nullptr);
}

TEST_F(c_api_ordered, tasks_that_are_refused) {
  expect_refused(lev_ordered_submit(scope_, 0, &argument_, 1, nullptr, nullptr), LEV_BAD_PROCEDURE,
                 "0");
  expect_refused(submit(&argument_, 0), LEV_BAD_ARGUMENT_COUNT, "takes 1");
  expect_refused(submit(&argument_, 19), LEV_TOO_BIG, "lev_ordered_submit: more than 18");
  expect_refused(submit(&argument_, 4'000'000'000u), LEV_TOO_BIG, "18");
  lev_argument wrong = lev_memory(LEV_INOUT, nullptr, 8, 1);
  expect_refused(submit(&wrong, 1), LEV_BAD_ADDRESS, "argument 0");
  wrong = lev_memory(LEV_IN, &word_, 8, 1);
  expect_refused(submit(&wrong, 1), LEV_BAD_ARGUMENT, "argument 0");
  lev_task_options options{};
  options.after_count = 1;
  expect_refused(submit(&argument_, 1, &options), LEV_BAD_ARGUMENT, "after is NULL");
  const lev_ticket odd[40] = {0xfffffffffff};
  options.after = odd;
  expect_refused(submit(&argument_, 1, &options), LEV_BAD_TICKET, "after()");
  ticket_ = odd[0];  // a chain may keep the ticket of its last task in one place
  options.after = &ticket_;
  expect_refused(submit(&argument_, 1, &options), LEV_BAD_TICKET, "after()");
  options.after = odd;
  options.after_count = 40;
  expect_refused(submit(&argument_, 1, &options), LEV_TOO_BIG, "32");
  options = {};
  options.task_ns_max = 5;
  expect_refused(submit(&argument_, 1, &options), LEV_NOT_SUPPORTED, "task_ns_max");
  EXPECT_EQ(ticket_, 0u);
  EXPECT_EQ(word_, 7u);
}

TEST_F(c_api_ordered, waits_that_are_refused) {
  expect_refused(lev_ordered_wait(scope_, -5, nullptr), LEV_BAD_ARGUMENT, "timeout_ns");
  lev_outcome o{};
  o.code = LEV_PENDING;
  EXPECT_EQ(lev_ordered_wait(scope_, 0, &o), LEV_OK);  // there is nothing
  EXPECT_EQ(o.code, LEV_OK);
}

// A program must not, but then it is told, and nothing hangs.
TEST_F(c_api_ordered, a_ticket_that_the_program_takes_away) {
  ASSERT_EQ(submit(&argument_, 1), LEV_OK);
  ASSERT_NE(ticket_, 0u);
  ASSERT_EQ(lev_wait(runtime_, ticket_, LEV_NO_TIMEOUT, nullptr), LEV_OK);
  expect_refused(lev_ordered_wait(scope_, LEV_NO_TIMEOUT, nullptr), LEV_STALE_TICKET, "used up");
}

// Opens a runtime of its own: a forked child has no part in one of its parent.
void destroy_a_scope_by_its_own_task(bool is_in_call) {
  static ordered* scope = nullptr;
  const auto destroy = define("c_api.destroy", [] { delete scope; });
  config c;
  c.machine = "sim";
  runtime r(c);
  scope = new ordered(r);
  scope->submit(destroy);
  if (is_in_call) scope->wait();
}
TEST(ordered_scope, one_that_its_own_task_destroys_is_told) {
  EXPECT_DEATH(destroy_a_scope_by_its_own_task(true),
               "^leveret: a scope of ordered tasks was destroyed within a call of its own");
  EXPECT_DEATH(destroy_a_scope_by_its_own_task(false),
               "^leveret: a scope of ordered tasks was destroyed by one of its own tasks");
}

}  // namespace
}  // namespace lev::test
