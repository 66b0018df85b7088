// Conformance: tasks that fail. Exceptions of any type, codes other than 0, and bodies that change
// the floating-point mode.
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

using failure_test = machine_test;
LEV_ON_EVERY_MACHINE(failure_test);

struct no_standard_exception {
  int number;
};

enum class thrown { nothing, integer, structure, text, standard, ours, memory, pointer };

const auto throw_it = define("failure.throw_it", [](thrown what) {
  switch (what) {
    case thrown::nothing:
      return;
    case thrown::integer:
      throw 42;
    case thrown::structure:
      throw no_standard_exception{43};
    case thrown::text:
      throw "text";
    case thrown::standard:
      throw std::logic_error("standard");
    case thrown::ours:
      throw error(status::would_block, 3, "ours");
    case thrown::memory:
      throw std::bad_alloc();
    case thrown::pointer:
      throw std::make_exception_ptr(1);
  }
});

template <class Exception, class Check>
void expect_thrown(runtime& r, thrown what, Check&& check) {
  try {
    r.submit(throw_it, what).wait();
    ADD_FAILURE() << "nothing came";
  } catch (const Exception& e) {
    EXPECT_TRUE(check(e));
  }
}

LEV_TEST(failure_test, exceptions_of_any_type_come_back) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  r.submit(throw_it, thrown::nothing).wait();
  expect_thrown<int>(r, thrown::integer, [](int n) { return n == 42; });
  expect_thrown<no_standard_exception>(r, thrown::structure, [](auto e) { return e.number == 43; });
  expect_thrown<const char*>(r, thrown::text, [](auto s) { return std::strcmp(s, "text") == 0; });
  expect_thrown<std::logic_error>(r, thrown::standard,
                                  [](auto& e) { return std::strcmp(e.what(), "standard") == 0; });
  expect_thrown<error>(r, thrown::ours, [](auto& e) {
    return e.code() == status::would_block && e.argument() == 3;
  });
  expect_thrown<std::bad_alloc>(r, thrown::memory, [](auto&) { return true; });
  expect_thrown<std::exception_ptr>(r, thrown::pointer, [](auto& p) { return p != nullptr; });
}

LEV_TEST(failure_test, an_outcome_holds_the_exception) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  ticket t = r.submit(throw_it, thrown::integer);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 1u);
  EXPECT_EQ(o.task_code, 0);
  ASSERT_TRUE(o.exception);
  EXPECT_THROW(std::rethrow_exception(o.exception), int);
}

// Bodies of procedures without types return a code.
int return_first_value(const call& c) {
  int code = 0;
  std::memcpy(&code, &c.arguments[0].address, sizeof code);
  return code;
}
procedure<void(int)> returns_code() {
  static const kind kinds[] = {kind::value};
  procedure_info info;
  info.name = "failure.returns_code";
  info.run = &return_first_value;
  info.kinds = kinds;
  info.kind_count = 1;
  procedure_id id = 0;
  register_procedure(info, &id);
  return {id};
}

LEV_TEST(failure_test, a_code_other_than_zero_fails_the_task) {
  runtime& r = open();
  expect_ok(r.submit(returns_code(), 0));
  for (const int code : {1, -1, 77, INT32_MIN}) {
    ticket t = r.submit(returns_code(), code);
    const outcome o = wait(t);
    EXPECT_EQ(o.code, status::task_failed);
    EXPECT_EQ(o.task_code, code);
    EXPECT_FALSE(o.exception);
  }
  expect_refused(status::task_failed, "77", [&] { r.submit(returns_code(), 77).wait(); });
}

// Whether the tasks are tasks of their own, are made where they run, or are those of columns.
LEV_TEST(failure_test, the_code_of_a_task_of_a_bulk_is_told) {
  runtime& r = open();
  const auto make = [](std::size_t i, descriptor& d) { d = pack(returns_code(), i == 5 ? 17 : 0); };
  std::vector<int> codes(40);
  codes[5] = 17;
  ticket bulks[] = {r.submit_bulk(40, make), r.submit_bulk(from_any_thread, 40, make),
                    r.submit_bulk(40, returns_code(), each(codes))};
  for (ticket& t : bulks) {
    const outcome o = wait(t);
    EXPECT_EQ(o.code, status::task_failed);
    EXPECT_EQ(o.failures, 1u);
    EXPECT_EQ(o.task_code, 17);
  }
}

LEV_TEST(failure_test, a_code_does_not_stick_to_the_next_task) {
  config c = settings();
  c.tickets = 2;
  runtime& r = open(c);
  for (int i = 0; i < 20; ++i) {
    ticket bad = r.submit(returns_code(), 5);
    EXPECT_EQ(wait(bad).task_code, 5);
    ticket thrown_one = r.submit(throw_it, thrown::integer);
    EXPECT_EQ(wait(thrown_one).task_code, 0);
    ticket good = r.submit(nothing);
    const outcome o = wait(good);
    EXPECT_EQ(o.code, status::ok);
    EXPECT_EQ(o.task_code, 0);
    EXPECT_EQ(o.failures, 0u);
    EXPECT_FALSE(o.exception);
  }
}

LEV_TEST(failure_test, codes_of_bulks_are_those_of_the_first_failure) {
  runtime& r = open();
  ticket t = r.submit_bulk(
      10, [](std::size_t i, descriptor& d) { d = pack(returns_code(), i == 6 ? 66 : 0); });
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.task_code, 66);
  EXPECT_EQ(o.failures, 1u);
}

// The exception of a task lives on after the runtime.
LEV_TEST(failure_test, an_exception_outlives_the_runtime) {
  std::exception_ptr kept;
  {
    runtime& r = open();
    ticket t = r.submit(throw_it, thrown::standard);
    kept = wait(t).exception;
    close();
  }
  if (is_remote()) {
    EXPECT_THROW(std::rethrow_exception(kept), error);
  } else {
    EXPECT_THROW(std::rethrow_exception(kept), std::logic_error);
  }
}

LEV_TEST(failure_test, failures_are_counted) {
  runtime& r = open();
  for (int i = 0; i < 60; ++i) {
    ticket t = r.submit(throw_it, i % 3 == 0 ? thrown::integer : thrown::nothing);
    wait(t);
  }
  EXPECT_EQ(r.count().failed, 20u);
  expect_all_done();  // a task counts as completed behind its callbacks, after its waiter was told
  EXPECT_EQ(r.count().completed, 60u);
}

// Waits inside a catch block, while others throw and catch on the same worker.
const auto waits_while_handling = define("failure.waits_while_handling", [](ref<runtime> home) {
  try {
    throw no_standard_exception{1};
  } catch (const no_standard_exception& e) {
    for (int i = 0; i < 5; ++i) {
      ticket t = home.to->submit(throw_it, thrown::integer);
      EXPECT_EQ(t.wait_outcome().code, status::task_failed);
    }
    EXPECT_EQ(e.number, 1);
    EXPECT_THROW(throw, no_standard_exception);
  }
});

LEV_TEST(failure_test, tasks_may_wait_inside_catch_blocks) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  std::vector<ticket> t;
  for (int i = 0; i < 20; ++i) t.push_back(r.submit(waits_while_handling, ref{&r}));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
}

const auto set_rounding = define("failure.set_rounding", [](int mode) { std::fesetround(mode); });
const auto get_rounding =
    define("failure.get_rounding", [](result<int> mode) { mode = std::fegetround(); });

LEV_TEST(failure_test, a_changed_rounding_mode_is_put_back) {
  runtime& r = open();
  const int before = std::fegetround();
  for (int i = 0; i < 100; ++i) {
    const int mode = i % 2 == 0 ? FE_UPWARD : FE_TOWARDZERO;
    ticket t = r.submit(set_rounding, mode);
    int seen = -1;
    r.submit(after(t), get_rounding, seen).wait();
    ASSERT_EQ(seen, FE_TONEAREST);
    expect_ok(t);
    ASSERT_EQ(std::fegetround(), before);
  }
}

const auto set_rounding_and_wait =
    define("failure.set_rounding_and_wait", [](ref<runtime> home, result<int> mode) {
      std::fesetround(FE_DOWNWARD);
      for (int i = 0; i < 10; ++i) home.to->submit(set_rounding, FE_UPWARD).wait();
      mode = std::fegetround();
    });

LEV_TEST(failure_test, a_task_that_waits_keeps_its_own_rounding_mode) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  for (int i = 0; i < 20; ++i) {
    int mode = -1;
    r.submit(set_rounding_and_wait, ref{&r}, mode).wait();
    ASSERT_EQ(mode, FE_DOWNWARD);
    r.submit(get_rounding, mode).wait();
    ASSERT_EQ(mode, FE_TONEAREST);
  }
}

const auto waits_for_callback =
    define("failure.waits_for_callback", [](ref<runtime> home, result<int> mode) {
      ticket t = home.to->submit(nothing);
      t.then([](void*) { std::fesetround(FE_UPWARD); }, nullptr);
      t.wait();
      mode = std::fegetround();
    });

LEV_TEST(failure_test, what_a_callback_sets_is_put_back) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  int mode = -1;
  r.submit(waits_for_callback, ref{&r}, mode).wait();
  EXPECT_EQ(mode, FE_TONEAREST);
  const int before = std::fegetround();
  for (int i = 0; i < 10; ++i) {
    ticket t = r.submit(nothing);
    t.then([](void*) { std::fesetround(FE_DOWNWARD); }, nullptr);
    t.wait();
    std::fesetround(before);  // it was called here, if the task had ended
    r.submit(get_rounding, mode).wait();
    EXPECT_EQ(mode, FE_TONEAREST);
  }
}

// Also on a host that tells ends without serving, as one whose workers are processes.
LEV_TEST(failure_test, a_callback_may_divide_by_zero) {
  runtime& r = open();
  std::atomic<int> infinite{0};
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i) {
    ticket t = r.submit(nothing);
    t.then(
        [](void* to) {
          volatile double zero = 0;
          *static_cast<std::atomic<int>*>(to) += std::isinf(1 / zero);
        },
        &infinite);
    expect_ok(t);
  }
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
  EXPECT_EQ(infinite, rounds);
}

// What its destructor does, the task does as its last: it may submit, and wait.
struct last_words {
  explicit last_words(runtime* r) : home(r) {}
  last_words(const last_words&) = default;
  ~last_words() {
    try {
      home->submit(nothing).wait();
      home->post(nothing);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), status::would_block);
    }
  }
  runtime* home;
};
const auto throw_last_words =
    define("failure.last_words", [](ref<runtime> home) { throw last_words(home.to); });

// Of many tasks that fail the first failure is kept. The others' exceptions are seen by nobody, and
// there are more of them than tickets.
LEV_TEST(failure_test, exceptions_that_nobody_sees_may_use_the_runtime_when_they_end) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.tickets = 64;
  runtime& r = open(c);
  for (int i = 0; i < 5; ++i) {
    const auto fail = [&](range) { throw last_words(&r); };
    EXPECT_THROW(r.parallel_for({0, 300}, fail, 1), last_words);
    for (int k = 0; k < 300; ++k) r.post(throw_last_words, ref{&r});
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).failures, 300u);
  }
}

}  // namespace
}  // namespace lev::test
