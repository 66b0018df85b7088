// Conformance: code of the user that throws where no task runs: hooks, filters, callbacks and
// coroutines that are resumed. Nothing is lost, and the host goes on.
#include <gtest/gtest.h>
#include <leveret/coroutine.hpp>

#include <coroutine>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using throwing_test = machine_test;
LEV_ON_EVERY_MACHINE(throwing_test);

using words = std::vector<std::uint64_t>;

void add_one_whole(inout<std::uint64_t> x) {
  for (std::size_t i = 0; i < x.size(); ++i) ++x[i];
}

// It has written half of a piece by then.
unsigned throw_in_dice(const descriptor&, descriptor* pieces, unsigned) {
  pieces[0].argument_count = 17;
  throw std::runtime_error("from the dice hook");
}
std::uint64_t throw_in_cost(const descriptor&) {
  throw std::runtime_error("from the cost hook");
}

const auto not_cut = define("throwing.uncut", &add_one_whole, &throw_in_dice, &throw_in_cost);

LEV_TEST(throwing_test, a_dice_hook_that_throws_leaves_the_task_whole) {
  runtime& r = open();
  words x(1000, 1);
  for (int i = 0; i < 20; ++i) expect_ok(r.submit(not_cut, x));
  EXPECT_EQ(x, words(1000, 21));
  EXPECT_EQ(r.count().diced, 0u);
}

LEV_TEST(throwing_test, a_big_task_whose_dice_hook_throws_fails) {
  config c = settings();
  c.staging = staging::copy;
  c.local_store_bytes = 4096;
  runtime& r = open(c);
  words x(2000, 1);
  ticket t = r.submit(not_cut, x);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::dice_loop);
  EXPECT_EQ(x, words(2000, 1));
  words small(10, 1);
  expect_ok(r.submit(not_cut, small));
  EXPECT_EQ(small, words(10, 2));
}

// An exception may say nothing of itself.
struct silent : std::exception {
  explicit silent(bool has_text) : text(has_text ? "" : nullptr) {}
  const char* what() const noexcept override { return text; }
  const char* text;
};
const auto throw_silent =
    define("throwing.silent", [](std::uint32_t has_text) { throw silent(has_text != 0); });

std::string said_by(const outcome& o) {
  try {
    std::rethrow_exception(o.exception);
  } catch (const silent&) {
    return "itself";  // in this process
  } catch (const error& e) {
    return e.what();
  }
}

LEV_TEST(throwing_test, an_exception_that_says_nothing_is_told_as_that) {
  runtime& r = open();
  for (const std::uint32_t has_text : {0u, 1u}) {
    ticket t = r.submit(throw_silent, has_text);
    outcome o = wait(t);
    EXPECT_EQ(o.code, status::task_failed);
    const std::string own = said_by(o);
    EXPECT_TRUE(own == "itself" || own.find("what() is empty") != std::string::npos) << own;
    const std::vector<std::uint32_t> all(3, has_text);
    t = r.submit_bulk(3, throw_silent, each(all));
    o = wait(t);
    EXPECT_NE(said_by(o).find("of the bulk: an exception whose what() is empty"), std::string::npos)
        << said_by(o);
  }
}

// Reverses what waits, then throws, or loses a task.
void reverse_and_throw(waiting_task* tasks, std::size_t count, void*) {
  for (std::size_t i = 0; i < count / 2; ++i) std::swap(tasks[i], tasks[count - 1 - i]);
  throw 1;
}
void overwrite_first(waiting_task* tasks, std::size_t count, void*) {
  if (count > 1) tasks[0] = tasks[1];
}

const auto note_number =
    define("throwing.note_number",
           [](int number, ref<bounded_list<int, 100>> seen) { seen.to->push_back(number); });

// Tasks run in the order the chain's good filter gives them, as if the others were not there.
LEV_TEST(throwing_test, a_filter_that_throws_is_undone_and_counted) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  c.depth = 1;
  runtime& r = open(c);
  const filter chain[] = {{&reverse_and_throw, nullptr},
                          filters::priority(),
                          {&overwrite_first, nullptr},
                          {&reverse_and_throw, nullptr}};
  ASSERT_EQ(r.set_filters(chain, 4), status::ok);
  const shared<bounded_list<int, 100>> seen;
  constexpr int tasks = 30;
  {
    gate g(r, 1);
    for (int i = 0; i < tasks; ++i) r.post(options().priority(i), note_number, i, ref{&seen});
  }
  expect_all_done();
  EXPECT_GE(r.count().bad_filters, 3u);
  ASSERT_EQ(seen->size(), static_cast<std::size_t>(tasks));
  // Those that went to the ready queue before the others came keep their places.
  constexpr int early_max = 8;
  int descents = 0;
  for (int i = early_max; i + 1 < tasks; ++i) descents += seen->begin()[i] > seen->begin()[i + 1];
  EXPECT_EQ(descents, tasks - 1 - early_max);
}

void throw_in_callback(void*) {
  throw std::runtime_error("from the callback");
}

void expect_kept(const outcome& o, std::uint32_t failures) {
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, failures);
  ASSERT_TRUE(o.exception);
  try {
    std::rethrow_exception(o.exception);
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "from the callback");
  }
}

LEV_TEST(throwing_test, what_a_callback_throws_is_a_failure_without_a_ticket) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  ticket tickets[3];
  {
    gate g(r, r.workers());
    for (ticket& t : tickets) {
      t = r.submit(nothing);
      EXPECT_EQ(t.then(&throw_in_callback, nullptr), status::ok);
    }
  }
  for (ticket& t : tickets) expect_ok(t);
  expect_kept(r.wait_for_completion(wait_limit_ns()), 3);
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
}

LEV_TEST(throwing_test, also_when_it_is_called_at_once) {
  runtime& r = open();
  ticket t = r.submit(nothing);
  expect_all_done();
  EXPECT_EQ(t.then(&throw_in_callback, nullptr), status::ok);
  expect_ok(t);
  expect_kept(r.wait_for_completion(wait_limit_ns()), 1);
}

// A coroutine that lets exceptions through to whoever resumed it. Nobody but its owner can destroy
// it then.
struct leaky {
  struct promise_type {
    leaky get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  std::coroutine_handle<> frame;
};
leaky await_and_throw(runtime& r) {
  co_await when_done(r.submit(nothing));
  throw std::runtime_error("from the callback");
}

LEV_TEST(throwing_test, what_leaves_a_resumed_coroutine_is_kept_too) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  leaky started;
  {
    gate g(r, r.workers());
    started = await_and_throw(r);
  }
  expect_kept(r.wait_for_completion(wait_limit_ns()), 1);
  started.frame.destroy();
}

// A context that cannot be made anew in a worker process.
void* throw_in_rebuild(const void*, unsigned, void*) {
  throw std::runtime_error("from rebuild()");
}

LEV_TEST(throwing_test, a_rebuild_that_throws_fails_its_tasks_only) {
  static int on_heap = 0;
  static const portable_context portable{nullptr, 0, nullptr, &throw_in_rebuild};
  procedure_info info;
  info.name = "throwing.rebuilt";
  info.run = [](const call&) { return 0; };
  info.context = &on_heap;
  info.portable = &portable;
  static procedure_id id = 0;
  if (id == 0) register_procedure(info, &id);
  runtime& r = open();
  descriptor d;
  d.procedure = id;
  for (int i = 0; i < 3; ++i) {
    ticket t = r.submit(d);
    EXPECT_EQ(wait(t).code, is_remote() ? status::bad_procedure : status::ok);
    expect_ok(r.submit(nothing));
  }
  EXPECT_EQ(r.count().deaths, 0u);
}

}  // namespace
}  // namespace lev::test
