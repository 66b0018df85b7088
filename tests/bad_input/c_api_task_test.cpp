// The C API inside a task: gets, puts, waits and threads, and each call that must be refused.
#include <gtest/gtest.h>
#include <leveret/leveret.h>
#include <leveret/status.hpp>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

// An order for a body, and what it found.
struct work {
  int (*run)(const lev_call* call, work& w);
  std::vector<std::string> faults;
};

int run_work(const lev_call* call) {
  work* w = nullptr;
  std::memcpy(&w, &call->arguments[0].address, sizeof w);
  return w->run(call, *w);
}

class c_task : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    start_alarm();
    if (lev_lookup("c_task.work") == 0) {
      const lev_kind kinds[] = {LEV_VALUE, LEV_INOUT, LEV_IN};
      ASSERT_EQ(lev_register("c_task.work", &run_work, nullptr, kinds, 3, nullptr), LEV_OK);
    }
    open(0);
  }
  void TearDown() override { EXPECT_EQ(lev_close(runtime_), LEV_OK); }

  void open(std::uint32_t contexts) {
    ASSERT_EQ(lev_close(runtime_), LEV_OK);
    lev_options options{};
    options.machine = GetParam();
    options.workers = 2;
    options.contexts = contexts;
    ASSERT_EQ(lev_open(&options, &runtime_), LEV_OK) << lev_last_message();
  }
  // Runs `count` tasks on data_, as far memory, and wants each to return 0.
  void run(int (*body)(const lev_call*, work&), unsigned count = 1) {
    work w{body, {}};
    work* address = &w;
    lev_argument arguments[] = {lev_value(&address, sizeof address),
                                lev_memory(LEV_INOUT, data_.data(), 8, data_.size()),
                                lev_memory(LEV_IN, constant_, 4, 4)};
    arguments[1].flags = LEV_FAR;
    arguments[2].flags = LEV_FAR;
    std::vector<lev_ticket> tickets(count);
    for (lev_ticket& t : tickets) {
      ASSERT_EQ(lev_submit(runtime_, lev_lookup("c_task.work"), arguments, 3, &t), LEV_OK)
          << lev_last_message();
    }
    for (const lev_ticket t : tickets) {
      lev_outcome o;
      EXPECT_EQ(lev_wait(runtime_, t, LEV_NO_TIMEOUT, &o), LEV_OK)
          << o.task_code << " " << o.message;
    }
    for (const std::string& f : w.faults) ADD_FAILURE() << f;
  }

  lev_runtime* runtime_ = nullptr;
  std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(100'000, 1);
  const std::uint32_t constant_[4] = {3, 1, 4, 1};
};
INSTANTIATE_TEST_SUITE_P(machines, c_task, testing::Values("threads", "sim"),
                         [](const auto& machine) { return std::string(machine.param); });

// Sees to it that a call is refused with a status and a message.
void expect(work& w, lev_status got, lev_status code, const char* says) {
  const std::string message = got == LEV_OK ? "" : lev_last_message();
  if (got == code && message.find(says) != std::string::npos) return;
  w.faults.push_back(std::string(lev_status_name(got)) + " instead of " + lev_status_name(code) +
                     ", \"" + message + "\", wanted: " + says);
}

// Adds 1 to every 1000th element, with two tags in turn.
int add_along(const lev_call* call, work&) {
  const lev_argument* far = &call->arguments[1];
  const std::size_t size = far->row_bytes / far->unit_bytes;
  for (std::size_t i = 0; i < size; i += 1000) {
    const unsigned tag = static_cast<unsigned>(i / 1000 % 2);
    void* at = nullptr;
    if (lev_task_wait(tag) != LEV_OK || lev_task_get(far, i, 1, tag, &at) != LEV_OK ||
        lev_task_wait(tag) != LEV_OK)
      return 1;
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    ++value;
    std::memcpy(at, &value, sizeof value);
    if (lev_task_put(far, i, 1, at, tag) != LEV_OK) return 2;
  }
  return lev_task_wait_all(3) == LEV_OK ? 0 : 3;
}

TEST_P(c_task, gets_computes_and_puts) {
  for (const std::uint32_t contexts : {0u, 1u, 16u}) {
    open(contexts);
    const std::uint64_t before = data_[99'000];
    run(&add_along);
    for (std::size_t i = 0; i < data_.size(); i += 1000) ASSERT_EQ(data_[i], before + 1);
    EXPECT_EQ(data_[1], 1u);
  }
}

struct adder {
  int by;
  int* sum;
  unsigned id;
};
void add_slowly(void* argument) {
  adder& a = *static_cast<adder*>(argument);
  lev_task_id(&a.id);
  for (int i = 0; i < 10; ++i) {
    *a.sum += a.by;
    lev_task_yield();
  }
}

int spawn_two(const lev_call*, work&) {
  int sum = 0;
  adder one{1, &sum, 0};
  adder hundred{100, &sum, 0};
  lev_thread* a = nullptr;
  lev_thread* b = nullptr;
  if (lev_task_spawn(&add_slowly, &one, &a) != LEV_OK) return 1;
  if (lev_task_spawn(&add_slowly, &hundred, &b) != LEV_OK) return 2;
  if (lev_task_join(b) != LEV_OK || lev_task_join(a) != LEV_OK) return 3;
  return sum == 1010 && one.id != hundred.id ? 0 : 4;
}

TEST_P(c_task, has_threads_of_its_own) {
  run(&spawn_two, 3);
}

int spawn_until_refused(const lev_call*, work& w) {
  int sum = 0;
  adder one{1, &sum, 0};
  lev_thread* a = nullptr;
  lev_thread* b = nullptr;
  if (lev_task_spawn(&add_slowly, &one, &a) != LEV_OK) return 1;
  expect(w, lev_task_spawn(&add_slowly, &one, &b), LEV_TOO_MANY_CONTEXTS, "contexts");
  if (b != nullptr) return 2;
  return lev_task_join(a);
}

TEST_P(c_task, more_threads_than_contexts_are_refused) {
  open(2);
  run(&spawn_until_refused);
}

int spawn_thrower(const lev_call*, work& w) {
  lev_thread* t = nullptr;
  const lev_thread_body body = [](void*) { throw std::runtime_error("a C++ body threw this"); };
  if (lev_task_spawn(body, nullptr, &t) != LEV_OK) return 1;
  expect(w, lev_task_join(t), LEV_TASK_FAILED, "a C++ body threw this");
  // An error of Leveret's that a body throws is none of the call.
  const lev_thread_body strays = [](void*) { throw error(status::not_in_task, -1, "a stray"); };
  if (lev_task_spawn(strays, nullptr, &t) != LEV_OK) return 2;
  expect(w, lev_task_join(t), LEV_TASK_FAILED, "a stray");
  return 0;
}

TEST_P(c_task, what_a_thread_throws_is_a_status) {
  run(&spawn_thrower);
}

int stack_of_thread(const lev_call*, work&) {
  std::size_t left = 0;
  lev_thread* t = nullptr;
  const lev_thread_body body = [](void* p) { lev_task_stack_left(static_cast<std::size_t*>(p)); };
  if (lev_task_spawn(body, &left, &t) != LEV_OK || lev_task_join(t) != LEV_OK) return 1;
  return left > std::size_t{7} << 20 && left < std::size_t{9} << 20 ? 0 : 2;  // 8 MiB, by default
}

TEST_P(c_task, a_thread_knows_its_stack) {
  run(&stack_of_thread);
}

int bad_calls(const lev_call* call, work& w) {
  const lev_argument* far = &call->arguments[1];
  const lev_argument* constant = &call->arguments[2];
  const std::size_t size = far->row_bytes / far->unit_bytes;
  const std::uint64_t one = 1;
  void* at = &w;
  expect(w, lev_task_get(far, size, 1, 0, &at), LEV_BAD_RANGE, "100000");
  if (at != nullptr) return 1;
  expect(w, lev_task_get(far, 0, size + 1, 0, &at), LEV_BAD_RANGE, "declared");
  expect(w, lev_task_get(far, SIZE_MAX, 2, 0, &at), LEV_BAD_RANGE, "declared");
  expect(w, lev_task_get(far, 1, SIZE_MAX, 0, &at), LEV_BAD_RANGE, "declared");
  expect(w, lev_task_get(far, 0, 1, 16, &at), LEV_BAD_ARGUMENT, "tag 16");
  expect(w, lev_task_get(far, 0, 1, 0, nullptr), LEV_BAD_ARGUMENT, "data");
  expect(w, lev_task_get(nullptr, 0, 1, 0, &at), LEV_BAD_ARGUMENT, "LEV_FAR");
  expect(w, lev_task_get(&call->arguments[0], 0, 1, 0, &at), LEV_BAD_ARGUMENT, "LEV_FAR");
  expect(w, lev_task_put(constant, 0, 1, &one, 0), LEV_BAD_ARGUMENT, "LEV_IN");
  expect(w, lev_task_put(far, size, 1, &one, 0), LEV_BAD_RANGE, "declared");
  expect(w, lev_task_put(far, 0, 1, nullptr, 0), LEV_BAD_ARGUMENT, "values");
  expect(w, lev_task_put(far, 0, 1, &one, 99), LEV_BAD_ARGUMENT, "tag 99");
  expect(w, lev_task_wait(16), LEV_BAD_ARGUMENT, "tag");
  expect(w, lev_task_wait_all(1u << 16), LEV_BAD_ARGUMENT, "tag");
  expect(w, lev_task_id(nullptr), LEV_BAD_ARGUMENT, "id");
  expect(w, lev_task_stack_left(nullptr), LEV_BAD_ARGUMENT, "bytes");
  lev_thread* t = nullptr;
  expect(w, lev_task_spawn(nullptr, nullptr, &t), LEV_BAD_ARGUMENT, "body");
  expect(w, lev_task_spawn(&add_slowly, nullptr, nullptr), LEV_BAD_ARGUMENT, "thread");
  expect(w, lev_task_join(nullptr), LEV_OK, "");
  expect(w, lev_task_pass_time(5), LEV_OK, "");
  // Calls that are allowed still work.
  expect(w, lev_task_get(constant, 1, 3, 15, &at), LEV_OK, "");
  expect(w, lev_task_wait(15), LEV_OK, "");
  std::uint32_t read[3] = {};
  std::memcpy(read, at, sizeof read);
  if (read[0] != 1 || read[1] != 4 || read[2] != 1) return 2;
  expect(w, lev_task_get(far, size, 0, 0, &at), LEV_OK, "");
  return 0;
}

TEST_P(c_task, bad_calls_are_refused) {
  run(&bad_calls);
  EXPECT_EQ(data_[0], 1u);
}

TEST_P(c_task, outside_of_a_task_everything_is_refused) {
  lev_argument far = lev_memory(LEV_INOUT, data_.data(), 8, data_.size());
  far.flags = LEV_FAR;
  void* at = nullptr;
  lev_thread* t = nullptr;
  unsigned id = 0;
  std::size_t bytes = 0;
  const lev_status all[] = {lev_task_get(&far, 0, 1, 0, &at),
                            lev_task_put(&far, 0, 1, data_.data(), 0),
                            lev_task_wait(0),
                            lev_task_wait_all(1),
                            lev_task_yield(),
                            lev_task_pass_time(1),
                            lev_task_spawn(&add_slowly, nullptr, &t),
                            lev_task_id(&id),
                            lev_task_stack_left(&bytes)};
  for (const lev_status s : all) EXPECT_EQ(s, LEV_NOT_IN_TASK);
  EXPECT_NE(std::string(lev_last_message()).find("this_task"), std::string::npos);
  EXPECT_EQ(t, nullptr);
}

}  // namespace
}  // namespace lev::test
