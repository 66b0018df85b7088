// Conformance: what has ended is told. No end waits behind a callback that waits, nor behind a body
// that polls, whatever the participant that knows of it does next.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <thread>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class tail_test : public machine_test {
 protected:
  static config parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return c;
  }
};
LEV_ON_EVERY_MACHINE(tail_test);

using tail_local_test = tail_test;
LEV_ON_LOCAL_MACHINES(tail_local_test);

using tail_threads_test = tail_test;
LEV_ON_THREADS(tail_threads_test);

using tail_processes_test = tail_test;
LEV_ON_PROCESSES(tail_processes_test);

// A callback that waits for another task.
struct waits_for {
  ticket* other;
  std::int64_t limit_ns;
  std::atomic<status> code{status::pending};
};
void wait_for_other(void* context) {
  auto& w = *static_cast<waits_for*>(context);
  w.code = w.other->wait_outcome(w.limit_ns).code;
}

LEV_TEST(tail_test, a_callback_waits_for_what_fails_together_with_its_task) {
  runtime& r = open(parked());
  for (const bool is_chain : {false, true}) {
    for (const unsigned first : {0u, 1u}) {
      ticket t[2];
      waits_for w{&t[1 - first], wait_limit_ns()};
      {
        gate g(r, r.workers());
        ticket fails = r.submit(throw_error, 1);
        t[first] = r.submit(options().after(fails), nothing);
        t[1 - first] = r.submit(options().after(is_chain ? t[first] : fails), nothing);
        EXPECT_EQ(t[first].then(&wait_for_other, &w), status::ok);
      }
      EXPECT_EQ(wait(t[first]).code, status::dependency_failed);
      EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::task_failed);
      EXPECT_EQ(w.code, status::dependency_failed);
    }
  }
}

// Tasks with outputs, one worker: the callback of each waits for the one behind it, which was
// staged, or has run, before the callback began.
LEV_TEST(tail_test, a_callback_waits_for_the_task_behind_its_own) {
  config c = parked();
  c.workers = 1;
  c.depth = 4;
  runtime& r = open(c);
  constexpr std::size_t count = 5;
  for (int turn = 0; turn < 20; ++turn) {
    std::array<std::uint64_t, count> out{};
    std::array<ticket, count> t;
    std::array<waits_for, count - 1> w{{{&t[1], wait_limit_ns()},
                                        {&t[2], wait_limit_ns()},
                                        {&t[3], wait_limit_ns()},
                                        {&t[4], wait_limit_ns()}}};
    {
      gate g(r, 1);
      for (std::size_t i = 0; i < count; ++i) t[i] = r.submit(store, i + 1, view(&out[i], 1));
      for (std::size_t i = 0; i + 1 < count; ++i)
        EXPECT_EQ(t[i].then(&wait_for_other, &w[i]), status::ok);
    }
    expect_ok(t[0]);
    expect_all_done();
    for (const waits_for& one : w) ASSERT_EQ(one.code, status::ok);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], i + 1);
  }
}

// The pieces of a bulk are told together, when the task behind them is in hand already.
LEV_TEST(tail_test, a_bulks_callback_waits_for_the_task_behind_it) {
  config c = parked();
  c.workers = 1;
  runtime& r = open(c);
  for (int turn = 0; turn < 20; ++turn) {
    ticket behind;
    waits_for w{&behind, wait_limit_ns()};
    ticket bulk;
    {
      gate g(r, 1);
      bulk = r.submit_bulk(5, [](std::size_t, descriptor& d) { d = pack(nothing); });
      behind = r.submit(nothing);
      EXPECT_EQ(bulk.then(&wait_for_other, &w), status::ok);
    }
    expect_ok(bulk);
    expect_all_done();
    ASSERT_EQ(w.code, status::ok);
  }
}

// The outputs of the task before are on their way while a body runs.
const auto polls_for_other =
    define("tail.polls_for", [](ref<ticket> other, out<std::uint64_t> own) {
      this_task().wait_until([&] { return other.to->done(); });
      own[0] = 7;
    });

LEV_TEST(tail_local_test, a_body_polls_for_the_task_before) {
  for (const std::uint32_t contexts : {0u, 1u}) {
    config c = parked();
    c.workers = 1;
    c.depth = 4;
    c.contexts = contexts;
    runtime& r = open(c);
    std::array<std::uint64_t, 5> out{};
    std::array<ticket, 5> t;
    {
      gate g(r, 1);
      t[0] = r.submit(store, std::uint64_t{7}, view(&out[0], 1));
      for (std::size_t i = 1; i < t.size(); ++i)
        t[i] = r.submit(polls_for_other, ref{&t[i - 1]}, view(&out[i], 1));
    }
    expect_all_done();
    for (const std::uint64_t o : out) EXPECT_EQ(o, 7u);
    for (ticket& one : t) expect_ok(one);
  }
}

// A piece of a bulk runs on top of the task that waits for another child, and ends with that one.
struct late_family {
  runtime* home;
  std::size_t pieces;
  std::uint64_t child = 0;  // its ticket's number, as the ticket is consumed meanwhile
};
const auto ends_late = define("tail.ends_late", [](ref<late_family> f) {
  detail::runtime_state* c = f.to->home->state();
  this_task().wait_until([&] { return detail::peek(c, f.to->child) != status::pending; });
});
const auto waits_elsewhere = define("tail.waits_elsewhere", [](ref<late_family> f) {
  ticket child = f.to->home->submit(nothing);
  f.to->child = child.id();
  ticket pieces = f.to->home->submit_bulk(
      f.to->pieces, [&](std::size_t, descriptor& d) { d = pack(ends_late, ref{f.to}); });
  child.wait();
  this_task().wait_until([&] { return pieces.done(); });
  pieces.wait();
});

LEV_TEST(tail_local_test, pieces_that_have_ended_are_told_before_the_task_goes_on) {
  runtime& r = open(parked());
  for (int i = 0; i < 100; ++i) {
    late_family f{&r, i % 2 == 0 ? 1u : 4u};
    ticket t = r.submit(waits_elsewhere, ref{&f});
    ASSERT_EQ(wait(t).code, status::ok);
  }
}

// The host completes a bulk, whose callback waits and leaves another task under way on the host:
// one that ends when the worker's does, which waits for it in turn.
struct stage {
  runtime* home;
  std::int64_t limit_ns;
  std::atomic<bool> is_begun{false};
  std::atomic<bool> is_called{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_ended{false};
};
const auto polls = define("tail.polls", [](ref<stage> s) {
  this_task().wait_until([&] { return s.to->may_end.load(); });
  s.to->has_ended = true;
});
const auto keeps_worker = define("tail.keeps_worker", [](ref<stage> s) {
  s.to->is_begun = true;
  while (!s.to->is_called) std::this_thread::yield();
  s.to->may_end = true;
  while (!s.to->has_ended) std::this_thread::yield();
});
void start_and_wait(void* context) {
  auto& s = *static_cast<stage*>(context);
  s.home->post(polls, ref{&s});
  ticket other = s.home->submit(nothing);
  EXPECT_EQ(other.wait_outcome(s.limit_ns).code, status::ok);
  s.is_called = true;
}

LEV_TEST(tail_threads_test, a_host_goes_on_with_what_a_callback_has_started) {
  for (const bool submits : {false, true}) {
    config c = settings();
    c.workers = 1;
    if (submits) c.tickets = 4;
    runtime& r = open(c);
    stage s{&r, wait_limit_ns()};
    ticket kept = r.submit(keeps_worker, ref{&s});
    while (!s.is_begun) std::this_thread::yield();
    ticket bulk = r.submit_bulk(1, [](std::size_t, descriptor& d) { d = pack(nothing); });
    ASSERT_EQ(bulk.then(&start_and_wait, &s), status::ok);
    if (submits) {
      // No ticket is free but the piece's, which the host runs for it.
      ticket more[2];
      for (ticket& t : more) t = r.submit(nothing);
      EXPECT_TRUE(s.is_called);
      for (ticket& t : more) expect_ok(t);
    }
    expect_ok(kept);
    expect_ok(bulk);
    expect_all_done();
  }
}

// A participant that goes to sleep tells of a bulk first; the callback is the first one to wait
// there, and for tasks that others run.
struct nested_wait {
  runtime* home;
  std::int64_t limit_ns;
  int depth;
  std::atomic<int> ended{0};
};
void wait_deeper(void* context) {
  auto& n = *static_cast<nested_wait*>(context);
  if (n.depth-- == 0) return;
  ticket t = n.home->submit(nothing);
  EXPECT_EQ(t.then(&wait_deeper, context), status::ok);
  EXPECT_EQ(t.wait_outcome(n.limit_ns).code, status::ok);
  ++n.ended;
}

const auto empty_piece = define("tail.piece", [](range) {});
const auto waits_for_pieces =
    define("tail.waits_for_pieces", [](ref<nested_wait> n, inout<std::uint64_t> own) {
      ticket t = n.to->home->submit(empty_piece, range{0, 2});
      EXPECT_EQ(t.then(&wait_deeper, n.to), status::ok);
      t.wait();
      ++own[0];
    });
const auto posts_that = define("tail.posts_that", [](ref<nested_wait> n, ref<std::uint64_t> own) {
  n.to->home->post(waits_for_pieces, n, view(own.to, 1));
});

LEV_TEST(tail_local_test, a_callback_is_the_first_to_wait) {
  for (int i = 0; i < 5; ++i) {
    config c = settings();
    c.seed += static_cast<std::uint64_t>(i);
    runtime& r = open(c);
    nested_wait n{&r, wait_limit_ns(), 2};
    std::uint64_t own = 6;
    r.post(posts_that, ref{&n}, ref{&own});
    expect_all_done();
    EXPECT_EQ(n.ended, 2);
    EXPECT_EQ(own, 7u);
  }
}

// Two ends of one worker are there when the host has stopped looking; the second one's callback
// sleeps.
LEV_TEST(tail_processes_test, a_callback_sleeps_whoever_finds_its_end) {
  config c = settings();
  c.workers = 1;
  c.spin_ns = 0;
  runtime& r = open(c);
  for (int i = 0; i < 300; ++i) {
    ticket first = r.submit(nothing);
    ticket second = r.submit(nothing);
    ticket third;
    waits_for w{&third, wait_limit_ns()};
    third = r.submit(options().after(second), nothing);
    ASSERT_EQ(second.then(&wait_for_other, &w), status::ok);
    expect_ok(first);
    expect_ok(second);
    expect_all_done();
    ASSERT_EQ(w.code, status::ok);
  }
}

// The end of a task comes together with the death of its worker, of which there is one.
const auto is_killed = define("tail.dies", [] { raise(SIGKILL); });

LEV_TEST(tail_processes_test, a_callback_waits_while_its_worker_is_replaced) {
  config c = settings();
  c.workers = 1;
  c.processes.max_attempts = 1;
  runtime& r = open(c);
  for (int i = 0; i < 10; ++i) {
    ticket third;
    waits_for w{&third, wait_limit_ns()};
    ticket first, second;
    {
      gate g(r, 1);
      first = r.submit(nothing);
      second = r.submit(is_killed);
      third = r.submit(nothing);
      ASSERT_EQ(first.then(&wait_for_other, &w), status::ok);
    }
    // This thread does not tend the worker's line meanwhile.
    while (w.code == status::pending) std::this_thread::yield();
    ASSERT_EQ(w.code, status::ok);
    expect_ok(first);
    EXPECT_EQ(wait(second).code, status::poison);
  }
}

}  // namespace
}  // namespace lev::test
