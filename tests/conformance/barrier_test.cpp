// Conformance: the global barrier. begin_submit(), end_submit(), wait_for_completion().
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class barrier_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(barrier_test);

LEV_TEST(barrier_test, waits_for_all_posted_tasks) {
  runtime& r = open();
  counter n = 0;
  for (int phase = 1; phase <= 5; ++phase) {
    r.begin_submit();
    for (int i = 0; i < 400; ++i) r.post(count_one, ref{&n});
    r.end_submit();
    expect_all_done();
    EXPECT_EQ(n, 400 * phase);
  }
}

// x = 3 x + n: the order of such steps shows in the result.
void step_posted(inout<std::uint64_t> x, std::uint64_t n) {
  x[0] = 3 * x[0] + n;
}
LEV_PROCEDURE(step_posted);

LEV_TEST(barrier_test, waits_for_tasks_posted_with_options_in_every_form) {
  runtime& r = open();
  std::uint64_t x = 1;
  const auto step = define("barrier.step", &step_posted);
  const auto here = [&] { return view(&x, 1); };
  ticket first = r.submit(step, here(), std::uint64_t{1});
  r.post(after(first), step, here(), std::uint64_t{2});
  expect_all_done();
  EXPECT_EQ(x, 14u);
  r.post<step_posted>(here(), std::uint64_t{3});
  expect_all_done();
  EXPECT_EQ(x, 45u);
  ticket second = r.submit<step_posted>(here(), std::uint64_t{4});
  r.post<step_posted>(after(second), here(), std::uint64_t{5});
  expect_all_done();
  EXPECT_EQ(x, 422u);
  r.post(pack(step, here(), std::uint64_t{6}));
  expect_all_done();
  ticket third = r.submit(step, here(), std::uint64_t{7});
  const options behind = after(third);
  r.post(pack(step, here(), std::uint64_t{8}), &behind);
  expect_all_done();
  EXPECT_EQ(x, (3 * 422u + 6) * 9 + 29);
}

LEV_TEST(barrier_test, a_refused_post_submits_nothing) {
  runtime& r = open();
  counter n = 0;
  EXPECT_THROW(r.post(locks(mutex_id{9}), count_one, ref{&n}), error);
  expect_all_done();
  EXPECT_EQ(n, 0);
}

LEV_TEST(barrier_test, of_nothing_is_done_at_once) {
  runtime& r = open();
  EXPECT_EQ(r.wait_for_completion(0).code, status::ok);
  r.begin_submit();
  r.end_submit();
  EXPECT_EQ(r.wait_for_completion(0).code, status::ok);
}

LEV_TEST(barrier_test, an_open_phase_holds_it) {
  runtime& r = open_parked();
  r.begin_submit();
  r.post(nothing);
  EXPECT_EQ(r.wait_for_completion(100'000).code, status::timed_out);
  r.end_submit();
  expect_all_done();
}

LEV_TEST(barrier_test, a_time_out_consumes_nothing) {
  runtime& r = open_parked();
  {
    gate g(r, r.workers());
    r.post(throw_error, 1);
    EXPECT_EQ(r.wait_for_completion(0).code, status::timed_out);
    EXPECT_EQ(r.wait_for_completion(10'000).code, status::timed_out);
  }
  const outcome o = r.wait_for_completion(wait_limit_ns());
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 1u);
}

LEV_TEST(barrier_test, gives_the_first_failure_once) {
  runtime& r = open();
  for (int i = 0; i < 10; ++i) r.post(throw_error, i);
  const outcome o = r.wait_for_completion(wait_limit_ns());
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, 10u);
  EXPECT_TRUE(o.exception);
  const outcome again = r.wait_for_completion(wait_limit_ns());
  EXPECT_EQ(again.code, status::ok);
  EXPECT_EQ(again.failures, 0u);
  EXPECT_FALSE(again.exception);
}

LEV_TEST(barrier_test, a_failure_that_a_ticket_reports_is_not_reported_again) {
  runtime& r = open();
  ticket t = r.submit(throw_error, 1);
  EXPECT_EQ(wait(t).code, status::task_failed);
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
}

// Tasks that post tasks that post tasks: the barrier waits for all generations.
struct family {
  runtime* home;
  counter born{0};
};
const procedure<void(ref<family>, int)>& branch();
void grow(ref<family> f, int depth) {
  ++f.to->born;
  for (int i = 0; depth > 0 && i < 3; ++i) f.to->home->post(branch(), f, depth - 1);
}
const procedure<void(ref<family>, int)>& branch() {
  static const auto p = define("barrier.branch", &grow);
  return p;
}

LEV_TEST(barrier_test, waits_for_children_and_their_children) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  for (int round = 0; round < 5; ++round) {
    family f{&r};
    r.post(branch(), ref{&f}, 5);
    expect_all_done();
    ASSERT_EQ(f.born, (729 - 1) / 2);
  }
}

LEV_TEST(barrier_test, waits_for_the_pieces_of_diced_tasks) {
  static const auto piece = define("barrier.piece", [](range part, ref<counter> sum) {
    *sum.to += static_cast<int>(part.size());
  });
  runtime& r = open();
  for (int round = 0; round < 50; ++round) {
    counter sum = 0;
    r.post(piece, range{0, 1000}, ref{&sum});
    expect_all_done();
    ASSERT_EQ(sum, 1000) << "in round " << round;
  }
}

LEV_TEST(barrier_test, waits_for_tasks_behind_others) {
  runtime& r = open();
  std::vector<std::uint64_t> x(4, 0);
  ticket last = r.submit(increment, x);
  for (int i = 0; i < 50; ++i) last = r.submit(after(last), increment, x);
  last.release();
  expect_all_done();
  EXPECT_EQ(x, std::vector<std::uint64_t>(4, 51));
}

LEV_TEST(barrier_test, inside_a_task_it_would_wait_for_itself) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  static const auto inside = define("barrier.inside", [](ref<runtime> home, result<int> code) {
    code = static_cast<int>(home.to->wait_for_completion().code);
  });
  int code = 0;
  r.submit(inside, ref{&r}, code).wait();
  EXPECT_EQ(static_cast<status>(code), status::would_deadlock);
}

LEV_TEST(barrier_test, two_threads_may_wait_at_once) {
  if (is_sim()) GTEST_SKIP() << "one host thread";
  runtime& r = open();
  counter n = 0;
  r.begin_submit();
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] {
      EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
      EXPECT_EQ(n, 200);
    });
  }
  for (int i = 0; i < 200; ++i) r.post(count_one, ref{&n});
  r.end_submit();
  for (std::thread& t : waiting) t.join();
}

// A host that finds no ticket runs its post itself. It goes back to its program afterwards, and may
// never call in again.
LEV_TEST(barrier_test, is_told_of_the_last_task_by_the_host_that_ran_it) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "one host thread";
  constexpr unsigned tickets = 8;
  static const auto pause =
      define("barrier.pause", [](int ms) { spend(std::chrono::milliseconds(ms)); });
  config c = settings();
  c.tickets = tickets;
  runtime& r = open(c);
  for (const bool closes : {false, true}) {
    std::atomic<bool> is_there = false;
    std::thread other([&] {
      for (unsigned i = 0; i < tickets; ++i) r.post(pause, 2);
      is_there = true;
      r.post(pause, 100);
      while (is_there) std::this_thread::yield();
    });
    while (!is_there) std::this_thread::yield();
    spend(std::chrono::milliseconds(30));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(closes ? r.close(wait_limit_ns()) : r.wait_for_completion(wait_limit_ns()).code,
              status::ok);
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took, std::chrono::nanoseconds(wait_limit_ns() / 2));
    is_there = false;
    other.join();
  }
}

// The same where the host runs a task of the queue, and submits nothing after all.
LEV_TEST(barrier_test, is_told_of_the_last_task_by_a_host_that_submits_in_vain) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "one host thread";
  constexpr unsigned tickets = 8;
  static const auto last = define("barrier.last", [](ref<std::atomic<bool>> runs) {
    *runs.to = true;
    spend(std::chrono::milliseconds(100));
  });
  config c = settings();
  c.tickets = tickets;
  runtime& r = open(c);
  std::atomic<bool> runs = false, is_over = false;
  gate g(r, r.workers());
  std::vector<ticket> held;
  while (held.size() + r.workers() + 1 < tickets) held.push_back(r.submit(nothing));
  held.push_back(r.submit(last, ref{&runs}));
  std::thread other([&] {
    while (!runs) {  // one call may end before it has come to the last task
      refusal why;
      EXPECT_FALSE(r.submit_within(pack(nothing), nullptr, &why, 1'000'000));
      EXPECT_EQ(why.code, status::timed_out);
    }
    while (!is_over) std::this_thread::yield();
  });
  while (!runs) std::this_thread::yield();
  g.open();
  spend(std::chrono::milliseconds(30));
  const auto start = std::chrono::steady_clock::now();
  expect_all_done();
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::nanoseconds(wait_limit_ns() / 2));
  is_over = true;
  other.join();
}

void say_and_stay(ref<std::atomic<bool>> runs) {
  *runs.to = true;
  spend(std::chrono::milliseconds(100));
}
LEV_PROCEDURE(say_and_stay);

// The same where the runtime closes meanwhile: the call finds no ticket, and is refused in the end.
template <class HandIn>
void close_behind_a_helper(runtime& r, std::uint32_t tickets, std::int64_t limit_ns,
                           HandIn hand_in) {
  std::atomic<bool> runs = false, is_over = false;
  gate g(r, r.workers());
  std::vector<ticket> held;
  while (held.size() + r.workers() + 1 < tickets) held.push_back(r.submit(nothing));
  held.push_back(r.submit<say_and_stay>(ref{&runs}));
  std::thread other([&] {
    EXPECT_THROW(hand_in(), error);
    while (!is_over) std::this_thread::yield();
  });
  while (!runs) std::this_thread::yield();
  g.open();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(r.close(limit_ns), status::ok);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::nanoseconds(limit_ns / 2));
  is_over = true;
  other.join();
}

LEV_TEST(barrier_test, close_is_told_of_the_last_task_by_a_host_whose_bulk_is_refused) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "one host thread";
  config c = settings();
  c.tickets = 8;
  runtime& r = open(c);
  const auto make = [](std::size_t, descriptor& d) { d = pack(nothing); };
  close_behind_a_helper(r, c.tickets, wait_limit_ns(), [&] { r.submit_bulk(3, make); });
}

LEV_TEST(barrier_test, close_is_told_of_the_last_task_by_a_host_whose_loop_is_refused) {
  LEV_SKIP_IF_REMOTE();
  if (is_sim()) GTEST_SKIP() << "one host thread";
  config c = settings();
  c.tickets = 8;
  runtime& r = open(c);
  close_behind_a_helper(r, c.tickets, wait_limit_ns(),
                        [&] { r.parallel_for({0, 3}, [](range) {}); });
}

}  // namespace
}  // namespace lev::test
