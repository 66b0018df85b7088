// Conformance: submit_bulk(). Many tasks behind one ticket, more than there are tickets, failures
// in their middle, and generators that throw.
#include <gtest/gtest.h>
#include <leveret/this_task.hpp>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using bulk_test = machine_test;
LEV_ON_EVERY_MACHINE(bulk_test);

using words = std::vector<std::uint64_t>;

LEV_TEST(bulk_test, of_every_size_runs_each_task_once) {
  config c = settings();
  c.tickets = 64;
  runtime& r = open(c);
  for (const std::size_t count : {0u, 1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 10'000u}) {
    words x(count, 5);
    ticket t = r.submit_bulk(
        count, [&](std::size_t i, descriptor& d) { d = pack(increment, view(&x[i], 1)); });
    EXPECT_EQ(wait(t).code, status::ok);
    ASSERT_EQ(x, words(count, 6)) << count;
  }
}

LEV_TEST(bulk_test, the_generator_is_called_in_order_on_this_thread) {
  runtime& r = open();
  std::vector<std::size_t> order;
  expect_ok(r.submit_bulk(100, [&](std::size_t i, descriptor& d) {
    order.push_back(i);
    d = pack(nothing);
  }));
  ASSERT_EQ(order.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

LEV_TEST(bulk_test, the_same_descriptor_is_handed_out_again) {
  runtime& r = open();
  words x(50, 0);
  expect_ok(r.submit_bulk(50, [&](std::size_t i, descriptor& d) {
    if (i == 0) d = pack(increment, view(x.data(), 1));
    d.arguments[0].address = reinterpret_cast<std::uintptr_t>(&x[i]);
  }));
  EXPECT_EQ(x, words(50, 1));
}

LEV_TEST(bulk_test, failures_are_counted_and_the_first_is_kept) {
  runtime& r = open();
  counter n = 0;
  ticket t = r.submit_bulk(100, [&](std::size_t i, descriptor& d) {
    d = i % 10 == 7 ? pack(throw_error, static_cast<int>(i)) : pack(count_one, ref{&n});
  });
  const outcome o = wait(t);
  EXPECT_EQ(o.failures, 10u);
  expect_runtime_error(o);
  EXPECT_EQ(n, 90);
}

LEV_TEST(bulk_test, a_refused_task_is_named_and_those_before_it_run) {
  runtime& r = open();
  counter n = 0;
  std::string message;
  int argument = 0;
  try {
    r.submit_bulk(100, [&](std::size_t i, descriptor& d) {
      d = pack(count_one, ref{&n});
      if (i == 57) d.arguments[0].what = kind::in;
    });
    ADD_FAILURE() << "was not refused";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), status::bad_argument);
    message = e.what();
    argument = e.argument();
  }
  EXPECT_NE(message.find("task 57"), std::string::npos) << message;
  EXPECT_EQ(argument, 0);
  expect_all_done();
  EXPECT_EQ(n, 57);
}

// It is not complete before its maker is.
LEV_TEST(bulk_test, a_generator_that_waits_for_everything_is_told) {
  runtime& r = open();
  counter n = 0;
  const auto make = [&](std::size_t, descriptor& d) {
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::would_deadlock);
    EXPECT_EQ(r.close(wait_limit_ns()), status::would_deadlock);
    d = pack(count_one, ref{&n});
  };
  expect_ok(r.submit_bulk(40, make));
  EXPECT_EQ(n, 40);
}

LEV_TEST(bulk_test, a_generator_that_throws_ends_the_bulk) {
  runtime& r = open();
  counter n = 0;
  const auto make = [&](std::size_t i, descriptor& d) {
    if (i == 40) throw std::logic_error("enough");
    d = pack(count_one, ref{&n});
  };
  EXPECT_THROW(r.submit_bulk(100, make), std::logic_error);
  expect_all_done();
  EXPECT_EQ(n, 40);
  EXPECT_THROW(r.submit_bulk(1, [](std::size_t, descriptor&) { throw 5; }), int);
  expect_all_done();
}

LEV_TEST(bulk_test, may_be_released) {
  runtime& r = open();
  counter n = 0;
  r.submit_bulk(500, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); }).release();
  expect_all_done();
  EXPECT_EQ(n, 500);
}

LEV_TEST(bulk_test, several_may_be_under_way) {
  config c = settings();
  c.tickets = 128;
  runtime& r = open(c);
  counter n = 0;
  std::vector<ticket> t;
  for (int i = 0; i < 20; ++i) {
    t.push_back(
        r.submit_bulk(100, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); }));
  }
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(n, 2000);
}

LEV_TEST(bulk_test, tasks_with_strides_and_diced_tasks_go_in_too) {
  runtime& r = open();
  words x(100 * 16, 0);
  expect_ok(r.submit_bulk(100, [&](std::size_t i, descriptor& d) {
    std::uint64_t* mine = x.data() + i * 16;
    d = i % 2 == 0 ? pack(increment, strided(mine, 2, 4, 8))
                   : pack(increment, sliced(view(mine, 16)));
  }));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool expected = (i / 16) % 2 == 1 || i % 8 < 4;
    ASSERT_EQ(x[i], expected ? 1u : 0u) << i;
  }
}

// Submitted by a task: the bulk is larger than the pool, and its submitter must help.
const auto from_inside = define("bulk.from_inside", [](ref<runtime> home, ref<counter> n) {
  home.to->submit_bulk(300, [n](std::size_t, descriptor& d) { d = pack(count_one, n); }).wait();
});

LEV_TEST(bulk_test, may_be_submitted_by_a_task) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.tickets = 32;
  runtime& r = open(c);
  counter n = 0;
  r.submit(from_inside, ref{&r}, ref{&n}).wait();
  EXPECT_EQ(n, 300);
}

using bulk_threads_test = bulk_test;
LEV_ON_THREADS(bulk_threads_test);

struct bulks_of_one_host {
  runtime* home = nullptr;
  std::atomic<bool> is_in_second{false};
  std::atomic<bool> may_end{false};
};
const auto submits_second = define("bulk.submits_second", [](ref<bulks_of_one_host> b) {
  const auto make = [&](std::size_t, descriptor& d) {
    b.to->is_in_second = true;
    this_task().wait_until([&] { return b.to->may_end.load(); });
    d = pack(nothing);
  };
  b.to->home->submit_bulk(1, make).wait();
});
const auto begins_second = define("bulk.begins_second", [](ref<bulks_of_one_host> b) {
  b.to->home->post(submits_second, b);
  this_task().wait_until([&] { return b.to->is_in_second.load(); });
});

// A host that waits for a ticket in its bulk runs a task, which has a bulk of its own.
LEV_TEST(bulk_threads_test, one_that_waits_for_a_ticket_beside_another_is_ended_by_close) {
  config c = settings();
  c.workers = 1;
  c.tickets = 8;
  bulks_of_one_host both;
  both.home = &open(c);
  std::atomic<bool> is_refused{false};
  std::vector<ticket> held;
  {
    gate busy(*both.home, 1);
    std::thread submits([&] {
      try {
        both.home->submit_bulk(std::size_t{1} << 30, [&](std::size_t i, descriptor& d) {
          d = i == 0 ? pack(begins_second, ref{&both}) : pack(nothing);
        });
      } catch (const error& e) {
        is_refused = e.code() == status::closed;
      }
    });
    while (!both.is_in_second) std::this_thread::yield();
    const auto hold_another = [&](std::int64_t timeout_ns) {
      refusal why;
      ticket t = both.home->submit_within(pack(nothing), nullptr, &why, timeout_ns);
      if (t) held.push_back(std::move(t));
      return why.code == status::ok;
    };
    while (hold_another(50'000'000)) {
    }
    both.may_end = true;
    // With those of the gate and of the bulk that waits, all of them.
    while (held.size() < 6) hold_another(1'000'000);
    busy.open();
    EXPECT_EQ(both.home->close(wait_limit_ns()), status::ok);
    submits.join();
  }
  EXPECT_TRUE(is_refused);
  EXPECT_EQ(wait_all(held).code, status::ok);
}

using bulk_local_test = bulk_test;
LEV_ON_LOCAL_MACHINES(bulk_local_test);

const auto awaits_own_first = define("bulk.awaits_own_first", [](ref<runtime> home) {
  counter n = 0;
  const auto make = [&](std::size_t i, descriptor& d) {
    if (i == 1) this_task().wait_until([&] { return n == 1; });
    d = pack(count_one, ref{&n});
  };
  home.to->submit_bulk(2, make).wait();
});

// A task that makes a bulk gives way in between: what is made by then may run.
LEV_TEST(bulk_local_test, a_generator_may_poll_for_a_task_before) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  expect_ok(r.submit(awaits_own_first, ref{&r}));
}

// A host runs another's bulk while it waits for a ticket: it tells of that before its program goes
// on, which makes the tasks.
LEV_TEST(bulk_threads_test, what_a_submitter_has_run_is_told_before_it_makes_more) {
  config c = settings();
  c.workers = 1;
  c.tickets = 8;
  runtime& r = open(c);
  counter n = 0;
  const auto made = [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); };
  gate busy(r, 1);
  ticket first = r.submit_bulk(2, made);
  bool is_told = false;
  ticket second = r.submit_bulk(100, [&](std::size_t, descriptor& d) {
    if (n >= 2 && !std::exchange(is_told, true))
      std::thread([&] { EXPECT_EQ(wait(first).code, status::ok); }).join();
    d = pack(count_one, ref{&n});
  });
  EXPECT_EQ(wait(second).code, status::ok);
  EXPECT_TRUE(is_told);
  EXPECT_EQ(n, 102);
}

struct polled {
  std::atomic<bool> is_polling{false};
  std::atomic<bool> is_over{false};
};
const auto waits_for_polls = define("bulk.waits_for_polls", [](ref<polled> p) {
  this_task().wait_until([&] { return p.to->is_polling.load(); });
});
const auto polls_for_last = define("bulk.polls_for_last", [](ref<polled> p) {
  p.to->is_polling = true;
  this_task().wait_until([&] { return p.to->is_over.load(); });
});
const auto ends_polls = define("bulk.ends_polls", [](ref<polled> p) { p.to->is_over = true; });

// The host runs tasks of its bulk while it waits for tickets; one of them needs the last one.
LEV_TEST(bulk_threads_test, a_task_that_waits_for_the_rest_does_not_hold_it_up) {
  config c = settings();
  c.workers = 1;
  c.tickets = 16;
  runtime& r = open(c);
  polled p;
  gate busy(r, 1);
  expect_ok(r.submit_bulk(200, [&](std::size_t i, descriptor& d) {
    d = i == 2     ? pack(waits_for_polls, ref{&p})
        : i == 3   ? pack(polls_for_last, ref{&p})
        : i == 199 ? pack(ends_polls, ref{&p})
                   : pack(nothing);
  }));
}

}  // namespace
}  // namespace lev::test
