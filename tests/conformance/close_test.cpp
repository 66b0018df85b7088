// Conformance: opening and closing. Draining, cancelling, time-outs, and runtimes that are closed
// at random moments.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

class close_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(close_test);

using close_processes_test = close_test;
LEV_ON_PROCESSES(close_processes_test);

LEV_TEST(close_test, drains_what_was_submitted) {
  counter n = 0;
  runtime& r = open();
  for (int i = 0; i < 700; ++i) r.submit(count_one, ref{&n});
  EXPECT_EQ(r.close(), status::ok);
  EXPECT_EQ(n, 700);
}

LEV_TEST(close_test, the_destructor_drains_too) {
  counter n = 0;
  {
    runtime r(settings());
    for (int i = 0; i < 700; ++i) r.post(count_one, ref{&n});
  }
  EXPECT_EQ(n, 700);
}

LEV_TEST(close_test, a_second_one_does_nothing) {
  runtime& r = open();
  expect_ok(r.submit(nothing));
  EXPECT_EQ(r.close(), status::ok);
  EXPECT_EQ(r.close(), status::ok);
  EXPECT_EQ(r.close(0, true), status::ok);
}

LEV_TEST(close_test, refused_submits_are_not_counted) {
  runtime& r = open();
  for (int i = 0; i < 5; ++i) r.submit(nothing).wait();
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  const counters before = r.count();
  EXPECT_EQ(before.submitted, 5u);
  for (int i = 0; i < 20; ++i) EXPECT_THROW(r.submit(nothing), error);
  for (int i = 0; i < 20; ++i) EXPECT_THROW(r.post(nothing), error);
  EXPECT_EQ(r.count().submitted, before.submitted);
  EXPECT_EQ(r.count().completed, before.completed);
  EXPECT_EQ(r.count().helped, before.helped);
}

LEV_TEST(close_test, afterwards_submits_are_refused_and_tickets_still_tell) {
  runtime& r = open();
  ticket good = r.submit(nothing);
  ticket bad = r.submit(throw_error, 1);
  ASSERT_EQ(r.close(wait_limit_ns()), status::ok);
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(nothing), nullptr, &why));
  EXPECT_EQ(why.code, status::closed);
  EXPECT_THROW(r.submit_bulk(1, [](std::size_t, descriptor& d) { d = pack(nothing); }), error);
  EXPECT_EQ(wait(good).code, status::ok);
  EXPECT_EQ(wait(bad).code, status::task_failed);
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
}

const auto has_no_end = define("close.has_no_end", [](ref<counter> begun) {
  ++*begun.to;
  for (volatile bool goes_on = true; goes_on;) {
  }
});

// Some of them run, in every worker there is; the others wait, for a worker, a mutex or each other.
LEV_TEST(close_processes_test, ends_what_runs_when_the_time_is_over) {
  runtime& r = open_parked();
  counter begun = 0;
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  std::vector<ticket> t;
  t.push_back(r.submit(options().locks(m), has_no_end, ref{&begun}));
  for (unsigned i = 1; i < r.workers(); ++i) t.push_back(r.submit(has_no_end, ref{&begun}));
  while (begun.load() < static_cast<int>(r.workers())) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) t.push_back(r.submit(has_no_end, ref{&begun}));
  t.push_back(r.submit(options().locks(m), nothing));
  ticket after = r.submit(options().after(t[0]), nothing);
  EXPECT_EQ(r.close(1'000'000, true), status::timed_out);
  EXPECT_EQ(r.close(1'000'000, false, true), status::ok);
  for (ticket& one : t) EXPECT_EQ(wait(one).code, status::cancelled);
  EXPECT_EQ(wait(after).code, status::dependency_failed);
  EXPECT_EQ(begun, static_cast<int>(r.workers()));
}

LEV_TEST(close_test, a_body_that_cannot_be_ended_is_waited_for) {
  if (is_remote()) GTEST_SKIP() << "it can";
  runtime& r = open_parked();
  {
    gate g(r, r.workers());
    EXPECT_EQ(r.close(0, false, true), status::timed_out);
  }
  EXPECT_EQ(r.close(wait_limit_ns(), false, true), status::ok);
}

LEV_TEST(close_test, a_bad_time_out_is_refused) {
  runtime& r = open();
  EXPECT_EQ(r.close(-2), status::bad_argument);
  expect_ok(r.submit(nothing));
}

LEV_TEST(close_test, that_timed_out_can_be_repeated) {
  counter n = 0;
  runtime& r = open_parked();
  {
    gate g(r, r.workers());
    for (int i = 0; i < 50; ++i) r.submit(count_one, ref{&n});
    EXPECT_EQ(r.close(0), status::timed_out);
    EXPECT_EQ(r.close(10'000), status::timed_out);
    refusal why;
    EXPECT_FALSE(r.try_submit(pack(nothing), nullptr, &why));
    EXPECT_EQ(why.code, status::closed);
  }
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  EXPECT_EQ(n, 50);
}

// A submit that waits for a ticket while another thread closes the runtime must not be let in by
// the ticket that the drain sets free.
void refuses_those_that_wait(runtime& r, const std::function<std::uint64_t(refusal*)>& submit) {
  std::uint64_t made = 0;
  refusal why;
  std::thread late;
  {
    gate g(r, r.workers());
    for (unsigned i = r.workers(); i < 8; ++i) r.post(nothing);
    late = std::thread([&] { made = submit(&why); });
    while (r.state()->space_wanted.load(memory_order_seq_cst) == 0) std::this_thread::yield();
    EXPECT_EQ(r.close(0), status::timed_out);
  }
  late.join();
  EXPECT_EQ(made, 0u);
  EXPECT_EQ(why.code, status::closed);
}

LEV_TEST(close_test, refuses_those_that_wait_for_a_ticket) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (const bool in_bulk : {false, true}) {
    config c = settings();
    c.wait = wait_policy::park;
    c.full = when_full::wait;
    c.tickets = 8;
    runtime& r = open(c);
    refuses_those_that_wait(r, [&](refusal* why) -> std::uint64_t {
      if (!in_bulk) {
        ticket t = r.try_submit(pack(nothing), nullptr, why);
        return t.id();
      }
      try {
        return r.submit_bulk(1, [](std::size_t, descriptor& d) { d = pack(nothing); }).id();
      } catch (const error& e) {
        why->code = e.code();
        return 0;
      }
    });
    EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  }
}

// Nor may it wait on if no ticket becomes free: the thread that holds them all may be the one that
// closes, and wait for the submitting one afterwards.
LEV_TEST(close_test, tells_those_that_wait_for_a_ticket) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (const bool in_bulk : {false, true}) {
    config c = settings();
    c.tickets = 4;
    c.full = in_bulk ? when_full::help : when_full::wait;
    runtime& r = open(c);
    std::vector<ticket> held;
    for (int i = 0; i < 4; ++i) held.push_back(r.submit(nothing));
    std::thread late([&] {
      const auto make = [](std::size_t, descriptor& d) { d = pack(nothing); };
      expect_refused(status::closed, "",
                     [&] { in_bulk ? r.submit_bulk(1, make) : r.submit(nothing); });
    });
    while (r.state()->space_wanted.load(memory_order_seq_cst) == 0) std::this_thread::yield();
    EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
    late.join();
    for (ticket& t : held) EXPECT_EQ(wait(t).code, status::ok);
  }
}

// A bulk that was let in goes on, but not for ever: its ticket and those that the closing thread
// holds are all that there are.
LEV_TEST(close_test, tells_a_bulk_that_nothing_gives_it_a_ticket) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (const when_full full : {when_full::help, when_full::wait}) {
    config c = settings();
    c.tickets = 4;
    c.full = full;
    runtime& r = open(c);
    std::vector<ticket> held;
    for (int i = 0; i < 3; ++i) held.push_back(r.submit(nothing));
    std::thread late([&] {
      expect_refused(status::closed, "", [&] {
        r.submit_bulk(10, [](std::size_t, descriptor& d) { d = pack(nothing); });
      });
    });
    while (r.state()->space_wanted.load(memory_order_seq_cst) == 0) std::this_thread::yield();
    EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
    late.join();
    for (ticket& t : held) EXPECT_EQ(wait(t).code, status::ok);
  }
}

// The tasks that run while it waits give tickets back.
LEV_TEST(close_test, a_bulk_that_was_let_in_goes_on) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (int life = 0; life < rounds(20); ++life) {
    config c = settings();
    c.tickets = 4;
    c.full = when_full::wait;
    runtime& r = open(c);
    counter n = 0;
    std::atomic<bool> is_made{false};
    std::thread late([&] {
      const auto make = [&](std::size_t i, descriptor& d) {
        if (i == 2) is_made = true;
        d = pack(count_one, ref{&n});
      };
      expect_ok(r.submit_bulk(200, make));
    });
    while (!is_made) std::this_thread::yield();
    EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
    late.join();
    ASSERT_EQ(n, 200);
  }
}

// So does another bulk, which has tasks that are not sent yet: they, too, give tickets back.
LEV_TEST(close_test, a_bulk_waits_for_the_unsent_tasks_of_another) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  config c = settings();
  c.tickets = 8;  // two joins, and those that are not sent
  c.full = when_full::wait;
  runtime& r = open(c);
  counter n = 0;
  std::atomic<bool> is_half_made{false};
  std::atomic<bool> goes_on{false};
  std::thread first([&] {
    const auto make = [&](std::size_t i, descriptor& d) {
      if (i == 6) is_half_made = true;
      while (i == 6 && !goes_on) std::this_thread::yield();
      d = pack(count_one, ref{&n});
    };
    expect_ok(r.submit_bulk(8, make));
  });
  while (!is_half_made) std::this_thread::yield();
  std::thread second([&] {
    const auto make = [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); };
    expect_ok(r.submit_bulk(20, make));
  });
  while (r.state()->space_wanted.load(memory_order_seq_cst) == 0) std::this_thread::yield();
  EXPECT_EQ(r.close(0), status::timed_out);
  spend(std::chrono::milliseconds(20));
  goes_on = true;
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  first.join();
  second.join();
  EXPECT_EQ(n, 28);
}

// Threads submit without a pause while the runtime closes: what is let in is done.
LEV_TEST(close_test, while_others_submit_does_all_that_it_lets_in) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  for (int life = 0; life < rounds(100); ++life) {
    runtime& r = open(settings());
    std::atomic<int> ready{0};
    std::atomic<int> lost{0};
    std::vector<std::thread> hosts;
    for (int i = 0; i < 2; ++i) {
      hosts.emplace_back([&] {
        for (;; ++ready, ready.notify_one()) {
          ticket t = r.try_submit(pack(nothing), nullptr, nullptr);
          if (!t) return;
          const status code = t.wait_outcome(wait_limit_ns()).code;
          EXPECT_EQ(code, status::ok) << status_name(code);
          lost += code != status::ok;
        }
      });
    }
    for (int n = 0; n < 4; n = ready) ready.wait(n);
    EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
    for (std::thread& h : hosts) h.join();
    ASSERT_EQ(lost, 0);
  }
}

LEV_TEST(close_test, cancels_what_has_not_started) {
  counter n = 0;
  runtime& r = open_parked();
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    for (int i = 0; i < 100; ++i) {
      options o;
      if (i % 3 == 1) o.after(t.back());
      if (i % 5 == 0) o.locks(m);
      t.push_back(r.submit(o, count_one, ref{&n}));
    }
    EXPECT_EQ(r.close(0, true), status::timed_out);
  }
  EXPECT_EQ(r.close(wait_limit_ns(), true), status::ok);
  EXPECT_EQ(n, 0);
  for (std::size_t i = 0; i < t.size(); ++i) {
    const status expected = i % 3 == 1 ? status::dependency_failed : status::cancelled;
    ASSERT_EQ(wait(t[i]).code, expected) << i;
  }
}

// While a runtime closes, tasks that run may still submit: their children belong to what is
// drained.
const procedure<void(ref<runtime>, ref<counter>, int)>& descent();
void beget(ref<runtime> home, ref<counter> n, int generations) {
  ++*n.to;
  if (generations > 0) home.to->submit(descent(), home, n, generations - 1).release();
}
const procedure<void(ref<runtime>, ref<counter>, int)>& descent() {
  static const auto p = define("close.descent", &beget);
  return p;
}

LEV_TEST(close_test, drains_children_and_their_children) {
  LEV_SKIP_IF_REMOTE();
  counter n = 0;
  runtime& r = open();
  for (int i = 0; i < 10; ++i) r.submit(descent(), ref{&r}, ref{&n}, 30);
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  EXPECT_EQ(n, 310);
}

const auto close_inside = define("close.inside", [](ref<runtime> home, result<int> code) {
  code = static_cast<int>(home.to->close());
});

LEV_TEST(close_test, inside_a_task_it_would_wait_for_itself) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  int code = 0;
  r.submit(close_inside, ref{&r}, code).wait();
  EXPECT_EQ(static_cast<status>(code), status::would_deadlock);
  expect_ok(r.submit(nothing));
}

const auto destroy_inside =
    define("close.destroy_inside", [](ref<runtime> home) { delete home.to; });

using told_codes = status[2];
const auto asks_for_the_end =
    define("close.asks_for_the_end", [](ref<runtime> home, ref<told_codes> told) {
      (*told.to)[0] = home.to->close(1'000'000'000);
      (*told.to)[1] = home.to->wait_for_completion(1'000'000'000).code;
    });
const auto goes_on_in_virtual_time =
    define("close.goes_on_in_virtual_time", [](ref<runtime> home, ref<told_codes> told) {
      config c;
      c.machine = "sim";
      c.workers = 1;
      runtime(c).submit(asks_for_the_end, home, told).wait();
    });

LEV_TEST(close_test, below_a_task_of_another_runtime_it_would_wait_for_itself) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open_parked();
  told_codes told{};
  ticket t = r.submit(goes_on_in_virtual_time, ref{&r}, ref{&told});
  EXPECT_EQ(wait(t).code, status::ok);
  EXPECT_EQ(told[0], status::would_deadlock);
  // On sim the one host is above, and nobody below.
  EXPECT_EQ(told[1], is_sim() ? status::would_block : status::would_deadlock);
}

LEV_TEST(close_test, a_runtime_destroyed_by_its_own_task_says_so) {
  LEV_SKIP_IF_REMOTE();
  const auto destroy = [] {
    auto* r = new runtime(settings());
    r->submit(destroy_inside, ref{r}).wait();
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(destroy(), "leveret: a runtime was destroyed by one of its own tasks");
}

// An exception may own the ticket of what is left to do, and a failed task of its own behind that.
struct unfinished {
  std::shared_ptr<ticket> rest;
};
const procedure<void(ref<runtime>, int)>& leave_rest();
void leave(ref<runtime> home, int depth) {
  if (depth == 0) throw std::runtime_error("the last one");
  ticket rest = home.to->submit(leave_rest(), home, depth - 1);
  throw unfinished{std::make_shared<ticket>(std::move(rest))};
}
const procedure<void(ref<runtime>, int)>& leave_rest() {
  static const auto p = define("close.leave_rest", &leave);
  return p;
}

LEV_TEST(close_test, exceptions_that_own_tickets_go_before_the_runtime_does) {
  LEV_SKIP_IF_REMOTE();
  for (const bool is_closed_first : {false, true}) {
    runtime r(settings());
    r.post(leave_rest(), ref{&r}, 5);
    if (is_closed_first) {
      EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
    }
  }
}

LEV_TEST(close_test, without_ever_having_worked) {
  for (int i = 0; i < 20; ++i) {
    runtime& r = open();
    if (i % 2 == 0) {
      EXPECT_EQ(r.close(0), status::ok);
    }
  }
}

LEV_TEST(close_test, an_open_phase_does_not_hold_it) {
  runtime& r = open();
  r.begin_submit();
  r.post(nothing);
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
}

// One life: some tasks of all sorts, then the end, in one of its forms.
void live_and_die(config c, random_source& random, std::int64_t limit_ns) {
  c.tickets = 2u << random.below(9);
  c.wait = random.below(2) == 0 ? wait_policy::help : wait_policy::park;
  c.depth = random.below(4);
  c.spin_ns = random.below(2) == 0 ? 0 : 50'000;
  counter n = 0;
  std::vector<std::uint64_t> x(500, 0);
  const auto r = std::make_unique<runtime>(c);
  std::uint32_t submitted = 0;
  ticket kept;
  for (std::uint32_t i = random.below(60); i > 0; --i, ++submitted) {
    ticket t = r->submit(count_one, ref{&n});
    if (random.below(4) == 0) kept = std::move(t);
    if (random.below(8) == 0) t.cancel();
    if (random.below(8) == 0) wait_all(&t, 1, 1000);
  }
  const bool dices = random.below(2) == 0;
  if (dices) r->submit(options().grain(1), increment, sliced(x)).release();
  const bool cancels = random.below(3) == 0;
  while (r->close(random.below(3) == 0 ? 0 : limit_ns, cancels) == status::timed_out) {
  }
  ASSERT_LE(n, static_cast<int>(submitted));
  if (dices && !cancels) {
    ASSERT_EQ(x, std::vector<std::uint64_t>(500, 1));
  }
  kept.release();
  expect_nothing_leaked(*r);
}

LEV_TEST(close_test, two_hundred_lives_end_at_random_moments) {
  const std::uint64_t seed = base_seed() * 1000 + GetParam().seed;
  for (int i = 0; i < rounds(200); ++i) {
    SCOPED_TRACE("life " + std::to_string(i) + ", seed " + std::to_string(seed));
    random_source random(seed + static_cast<std::uint64_t>(i));
    live_and_die(settings(), random, wait_limit_ns());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lev::test
