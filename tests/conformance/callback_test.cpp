// Conformance: callbacks of tickets, and co_await.
#include <gtest/gtest.h>
#include <leveret/coroutine.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using callback_test = machine_test;
LEV_ON_EVERY_MACHINE(callback_test);

void count(void* n) {
  ++*static_cast<counter*>(n);
}

LEV_TEST(callback_test, is_called_once_whenever_it_is_set) {
  runtime& r = open();
  for (int i = 0; i < 300; ++i) {
    counter n = 0;
    ticket t = r.submit(nothing);
    if (i % 3 == 0) expect_all_done();
    EXPECT_EQ(t.then(&count, &n), status::ok);
    expect_ok(t);
    expect_all_done();
    ASSERT_EQ(n, 1);
  }
}

LEV_TEST(callback_test, of_a_completed_task_is_called_at_once) {
  runtime& r = open();
  counter n = 0;
  ticket t = r.submit(nothing);
  expect_all_done();
  EXPECT_EQ(t.then(&count, &n), status::ok);
  EXPECT_EQ(n, 1);
  expect_ok(t);
}

LEV_TEST(callback_test, there_is_one_per_ticket) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter n = 0;
  ticket t;
  {
    gate g(r, r.workers());
    t = r.submit(nothing);
    EXPECT_EQ(t.then(nullptr, nullptr), status::bad_argument);
    EXPECT_EQ(t.then(&count, &n), status::ok);
    EXPECT_EQ(t.then(&count, &n), status::exists);
    EXPECT_EQ(n, 0);
  }
  expect_ok(t);
  expect_all_done();
  EXPECT_EQ(n, 1);
}

LEV_TEST(callback_test, is_called_for_a_released_a_failed_and_a_cancelled_task) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  counter n = 0;
  {
    gate g(r, r.workers());
    ticket released = r.submit(nothing);
    ticket failed = r.submit(throw_error, 1);
    ticket cancelled = r.submit(nothing);
    EXPECT_EQ(released.then(&count, &n), status::ok);
    EXPECT_EQ(failed.then(&count, &n), status::ok);
    EXPECT_EQ(cancelled.then(&count, &n), status::ok);
    EXPECT_EQ(cancelled.cancel(), status::ok);
  }
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).failures, 2u);
  EXPECT_EQ(n, 3);
}

LEV_TEST(callback_test, of_a_bulk_and_of_a_diced_task_is_called_once) {
  runtime& r = open();
  counter n = 0;
  counter ran = 0;
  ticket bulk =
      r.submit_bulk(100, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&ran}); });
  EXPECT_EQ(bulk.then(&count, &n), status::ok);
  static const auto piece = define("callback.piece", [](range part, ref<counter> sum) {
    *sum.to += static_cast<int>(part.size());
  });
  ticket diced = r.submit(piece, range{0, 1000}, ref{&ran});
  EXPECT_EQ(diced.then(&count, &n), status::ok);
  expect_ok(bulk);
  expect_ok(diced);
  expect_all_done();
  EXPECT_EQ(n, 2);
  EXPECT_EQ(ran, 1100);
}

// A callback may submit the next task.
struct relay {
  runtime* home;
  counter rounds{0};
};
void submit_next(void* context) {
  auto& r = *static_cast<relay*>(context);
  if (++r.rounds < 100) {
    ticket t = r.home->submit(nothing);
    EXPECT_EQ(t.then(&submit_next, context), status::ok);
  }
}

LEV_TEST(callback_test, may_submit_the_next_task) {
  runtime& r = open();
  relay all{&r};
  ticket t = r.submit(nothing);
  EXPECT_EQ(t.then(&submit_next, &all), status::ok);
  expect_ok(t);
  expect_all_done();
  EXPECT_EQ(all.rounds, 100);
}

// A callback is the tail of its task: it waits as a task does.
struct waits_again {
  runtime* home;
  std::int64_t limit_ns;
  std::atomic<status> code{status::pending};
};
void submit_and_wait(void* context) {
  auto& w = *static_cast<waits_again*>(context);
  ticket t = w.home->submit(nothing);
  w.code = t.wait_outcome(w.limit_ns).code;
}

LEV_TEST(callback_test, may_wait_for_what_it_submits) {
  for (const wait_policy how : {wait_policy::help, wait_policy::park}) {
    config c = settings();
    c.wait = how;
    runtime& r = open(c);
    for (int i = 0; i < 50; ++i) {
      waits_again w{&r, wait_limit_ns()};
      ticket t = r.submit(nothing);
      EXPECT_EQ(t.then(&submit_and_wait, &w), status::ok);
      expect_ok(t);
      expect_all_done();
      ASSERT_EQ(w.code, status::ok);
    }
  }
}

// A cancel() on `processes` may come upon ends, and call back. When the thread comes back from
// another runtime it is still in that callback.
struct in_cancel {
  runtime* home;
  runtime* elsewhere;
  std::thread::id host = std::this_thread::get_id();
  std::atomic<bool> is_cancelling{false};
  bool is_told = false;
  status all = status::ok;
  status closed = status::ok;
};
void wait_for_all_after_a_call_elsewhere(void* context) {
  auto& c = *static_cast<in_cancel*>(context);
  if (!c.is_cancelling || std::this_thread::get_id() != c.host || c.is_told) return;
  c.is_told = true;
  c.elsewhere->submit(nothing).wait();
  c.all = c.home->wait_for_completion(1'000'000).code;
  c.closed = c.home->close(1'000'000);
}

LEV_TEST(callback_test, in_a_call_that_does_not_wait_comes_back_from_elsewhere) {
  if (!is_remote()) GTEST_SKIP() << "no call but a wait comes upon ends";
  runtime elsewhere;
  in_cancel c{&open(), &elsewhere};
  for (int i = 0; i < 20'000 && !c.is_told; ++i) {
    std::vector<ticket> tasks(50);
    for (ticket& t : tasks) {
      t = c.home->submit(nothing);
      EXPECT_EQ(t.then(&wait_for_all_after_a_call_elsewhere, &c), status::ok);
    }
    c.is_cancelling = true;
    for (ticket& t : tasks) t.cancel();
    c.is_cancelling = false;
    for (ticket& t : tasks) t.wait_outcome();
  }
  EXPECT_TRUE(c.is_told) << "it came upon none";
  EXPECT_EQ(c.all, status::would_deadlock);
  EXPECT_EQ(c.closed, status::would_deadlock);
}

// All tickets are held by the host when a callback submits: it gets spare ones, as many as there
// are, and is then refused in time.
struct follow_up {
  runtime* home;
  bool gets_spare;
  bool may_post;  // beyond the tickets
  std::atomic<int> ended{0};
};
void submit_until_refused(void* context) {
  auto& f = *static_cast<follow_up*>(context);
  std::vector<ticket> held;
  refusal why;
  for (ticket t; (t = f.home->try_submit(pack(nothing), nullptr, &why));)
    held.push_back(std::move(t));
  EXPECT_EQ(why.code, status::would_block) << why.message;
  EXPECT_EQ(!held.empty(), f.gets_spare);
  EXPECT_EQ(std::string(why.message).find("post()") != std::string::npos, f.may_post);
  if (f.may_post) f.home->post(nothing);
  ++f.ended;
}

LEV_TEST(callback_test, that_submits_without_tickets_ends) {
  for (const when_full full : {when_full::help, when_full::wait, when_full::fail}) {
    for (const wait_policy how : {wait_policy::help, wait_policy::park}) {
      config c = settings();
      c.tickets = 32;
      c.full = full;
      c.wait = how;
      runtime& r = open(c);
      const bool is_to_fail = full == when_full::fail;
      follow_up f{&r, !is_to_fail, !is_to_fail && !is_remote()};
      gate g(r, r.workers());
      std::vector<ticket> held(32 - r.workers() * (is_sim() ? 4 : 1));
      for (ticket& t : held) t = r.submit(nothing);
      EXPECT_EQ(held[0].then(&submit_until_refused, &f), status::ok);
      g.open();
      expect_all_done();
      EXPECT_EQ(f.ended, 1);
    }
  }
}

using callback_threads_test = machine_test;
LEV_ON_THREADS(callback_threads_test);

const auto holds_until = define("callback.holds_until", [](ref<std::atomic<bool>> go) {
  while (!*go.to) std::this_thread::yield();
});

// No letter is sent to a worker that is in a callback: it ends only when the next task has.
void await_flag(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
}

LEV_TEST(callback_threads_test, keeps_no_task_waiting) {
  config c = settings();
  c.workers = larger(c.workers, 2);
  c.wait = wait_policy::park;
  c.spin_ns = 5'000'000;
  runtime& r = open(c);
  for (int i = 0; i < 30; ++i) {
    std::atomic<bool> go{false};
    std::atomic<bool> has_run{false};
    ticket t = r.submit(holds_until, ref{&go});
    EXPECT_EQ(t.then(&await_flag, &has_run), status::ok);
    go = true;
    expect_ok(t);
    ticket next = r.submit(nothing);
    EXPECT_EQ(wait(next).code, status::ok);
    has_run = true;
    expect_all_done();
  }
}

// A coroutine that starts at once and that nobody waits for; it counts itself.
struct job_of {
  struct promise_type {
    job_of get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

job_of add_up(runtime& r, std::vector<std::int64_t>& results, counter& ended) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    co_await when_done(r.submit(square, static_cast<std::int64_t>(i), results[i]));
  }
  ++ended;
}

LEV_TEST(callback_test, coroutines_await_one_task_after_the_other) {
  runtime& r = open();
  constexpr std::size_t coroutines = 10;
  std::vector<std::vector<std::int64_t>> results(coroutines, std::vector<std::int64_t>(20));
  counter ended = 0;
  for (auto& mine : results) add_up(r, mine, ended);
  expect_all_done();
  EXPECT_EQ(ended, static_cast<int>(coroutines));
  for (const auto& mine : results) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i], static_cast<std::int64_t>(i * i));
    }
  }
}

job_of await_failure(runtime& r, std::string& message, counter& ended) {
  try {
    co_await when_done(r.submit(throw_error, 11));
  } catch (const std::exception& e) {
    message = e.what();
  }
  ++ended;
}

LEV_TEST(callback_test, co_await_rethrows_what_the_task_threw) {
  runtime& r = open();
  std::string message;
  counter ended = 0;
  await_failure(r, message, ended);
  expect_all_done();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(message, "failed with 11");
}

// A host that waits for a ticket tells an end first; its callback waits, and other tasks of the
// host go on meanwhile.
struct told_early {
  runtime* home = nullptr;
  ticket bulk, last;
  std::atomic<int> knew_themselves{0};
};
told_early* early = nullptr;

const auto knows_itself = define("callback.knows_itself", [](inout<std::uint64_t>) {
  this_task().yield();
  ++early->knew_themselves;
});
const auto does_nothing = define("callback.does_nothing", [](inout<std::uint64_t>) {});
const auto has_a_bulk = define("callback.has_a_bulk", [](result<std::uint64_t> value) {
  static std::uint64_t words[10];
  early->bulk = early->home->submit_bulk(
      10, [](std::size_t i, descriptor& d) { d = pack(does_nothing, view(words + i, 1)); });
  early->bulk.then(
      [](void*) {
        static std::uint64_t word = 0;
        early->home->post(knows_itself, view(&word, 1));
        early->last = early->home->submit(does_nothing, view(words, 1));
        early->last.wait_outcome();
      },
      nullptr);
  early->bulk.wait_outcome();
  value = 1;
});

TEST(callback_before_a_wait_test, tasks_that_run_meanwhile_know_themselves) {
  told_early all;
  early = &all;
  config c;
  c.machine = "sim";
  c.workers = 1;
  c.tickets = 2;
  runtime r(c);
  all.home = &r;
  std::uint64_t word = 0;
  std::uint64_t value = 0;
  ticket first = r.submit(does_nothing, view(&word, 1));
  r.post(has_a_bulk, value);
  ticket third = r.submit(does_nothing, view(&word, 1));
  first.release();
  third.release();
  EXPECT_EQ(r.wait_for_completion().code, status::ok);
  EXPECT_EQ(all.knew_themselves, 1);
}

}  // namespace
}  // namespace lev::test
