// Conformance: tasks that post more tasks than there are tickets. Each runs, once, and none waits
// for a slot that only its successors could give back.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/runtime_state.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class backlog_test : public machine_test {
 protected:
  static config few(std::uint32_t tickets) {
    config c = settings();
    c.tickets = tickets;
    return c;
  }
  outcome wait_for_all() {
    outcome o = open().wait_for_completion(wait_limit_ns());
    EXPECT_NE(o.code, status::timed_out);
    return o;
  }
};
LEV_ON_LOCAL_MACHINES(backlog_test);

// A search through a graph: a task posts one for each place that it is the first to see.
struct graph {
  graph(std::uint32_t places, std::uint32_t seed) : next(places), seen(places) {
    std::mt19937 random(seed);
    for (std::uint32_t from = 0; from < places; ++from) {
      // Few places see many others, so that a task may post all of them.
      const std::uint32_t degree = from % 97 == 0 ? places / 4 : 1 + random() % 6;
      for (std::uint32_t i = 0; i < degree; ++i)
        next[from].push_back(static_cast<std::uint32_t>(random() % places));
      next[from].push_back((from + 1) % places);
    }
  }
  runtime* home = nullptr;
  std::vector<std::vector<std::uint32_t>> next;
  std::vector<std::atomic<std::uint32_t>> seen;
  std::atomic<std::uint32_t> visits{0};
};
void search_from(ref<graph> g, std::uint32_t place);
const auto visit_place = define("backlog.visit", search_from);
void search_from(ref<graph> g, std::uint32_t place) {
  ++g.to->visits;
  for (const std::uint32_t other : g.to->next[place]) {
    if (g.to->seen[other].fetch_add(1) == 0) g.to->home->post(visit_place, g, other);
  }
}

LEV_TEST(backlog_test, a_search_visits_each_place_once) {
  constexpr std::uint32_t places = 4'000;
  for (const std::uint32_t tickets : {2u, 16u, 1024u}) {
    for (const wait_policy policy : {wait_policy::help, wait_policy::park}) {
      config c = few(tickets);
      c.wait = policy;
      graph g(places, tickets);
      g.home = &open(c);
      g.seen[0] = 1;
      g.home->post(visit_place, ref{&g}, 0u);
      EXPECT_EQ(wait_for_all().code, status::ok);
      ASSERT_EQ(g.visits, places) << tickets << " tickets";
    }
  }
}

// What a task posts, and what it does besides.
struct posts {
  runtime* home = nullptr;
  std::uint32_t count = 0;
  mutex_id mutex = 0;
  std::atomic<std::uint32_t> ran{0};
  std::atomic<std::uint64_t> sum{0};
  std::uint32_t unguarded = 0;
  std::atomic<std::uint32_t> refused{0};
  std::atomic<std::uint32_t> began{0};
};
const auto add_posted = define("backlog.add", [](ref<posts> p, std::uint32_t value) {
  p.to->sum += value;
  ++p.to->ran;
});
const auto post_sums = define("backlog.post_sums", [](ref<posts> p) {
  ++p.to->began;
  for (std::uint32_t i = 0; i < p.to->count; ++i) p.to->home->post(add_posted, p, i);
});

// Nobody gives a ticket back before the posted tasks have run.
LEV_TEST(backlog_test, posted_tasks_run_while_the_host_holds_all_tickets) {
  for (const std::uint32_t tickets : {2u, 8u}) {
    posts p;
    p.home = &open(few(tickets));
    p.count = 3'000;
    std::vector<ticket> held;
    for (std::uint32_t i = 0; i < tickets; ++i) held.push_back(p.home->submit(post_sums, ref{&p}));
    EXPECT_EQ(wait_for_all().code, status::ok);
    EXPECT_EQ(p.ran, tickets * p.count);
    EXPECT_EQ(p.sum, std::uint64_t{tickets} * p.count * (p.count - 1) / 2);
    for (ticket& t : held) expect_ok(t);
  }
}

const auto hold_mutex = define("backlog.hold", [](ref<posts> p) {
  ++p.to->unguarded;  // a race, were it not for the mutex
  ++p.to->ran;
});
const auto post_holders = define("backlog.post_holders", [](ref<posts> p) {
  options o;
  o.locks(p.to->mutex).priority(3);
  for (std::uint32_t i = 0; i < p.to->count; ++i) p.to->home->post(o, hold_mutex, p);
});

LEV_TEST(backlog_test, their_mutexes_exclude_each_other) {
  posts p;
  p.home = &open(few(4));
  p.count = 2'000;
  ASSERT_EQ(p.home->make_mutex(&p.mutex), status::ok);
  for (int i = 0; i < 3; ++i) p.home->post(post_holders, ref{&p});
  EXPECT_EQ(wait_for_all().code, status::ok);
  EXPECT_EQ(p.ran, 3 * p.count);
  EXPECT_EQ(p.unguarded, 3 * p.count);
}

// The holder of a mutex posts many tasks that want it, and waits for one that does not: that one
// gets a slot, however many of the others there are.
const auto hold_and_wait = define("backlog.hold_and_wait", [](ref<posts> p) {
  options o;
  o.locks(p.to->mutex);
  for (std::uint32_t i = 0; i < p.to->count; ++i) p.to->home->post(o, hold_mutex, p);
  p.to->home->post(add_posted, p, 5u);
  this_task().wait_until([&] { return p.to->sum.load() != 0; });
});

LEV_TEST(backlog_test, tasks_that_wait_for_a_mutex_leave_slots_to_others) {
  for (const std::uint32_t tickets : {2u, 64u}) {
    posts p;
    p.home = &open(few(tickets));
    p.count = 1'000;
    ASSERT_EQ(p.home->make_mutex(&p.mutex), status::ok);
    options o;
    o.locks(p.mutex);
    p.home->post(o, hold_and_wait, ref{&p});
    EXPECT_EQ(wait_for_all().code, status::ok);
    EXPECT_EQ(p.ran, p.count + 1);
    EXPECT_EQ(p.unguarded, p.count);
  }
}

const auto sometimes_fail = define("backlog.fail", [](ref<posts> p, std::uint32_t i) {
  ++p.to->ran;
  if (i % 10 == 0) throw std::runtime_error("posted");
});
const auto post_failures = define("backlog.post_failures", [](ref<posts> p) {
  for (std::uint32_t i = 0; i < p.to->count; ++i) p.to->home->post(sometimes_fail, p, i);
});

LEV_TEST(backlog_test, each_failure_is_counted) {
  posts p;
  p.home = &open(few(2));
  p.count = 1'000;
  p.home->post(post_failures, ref{&p});
  const outcome o = wait_for_all();
  EXPECT_EQ(o.code, status::task_failed);
  EXPECT_EQ(o.failures, p.count / 10);
  EXPECT_EQ(p.ran, p.count);
}

// Many arguments, and a range that is cut.
const auto add_many = define(
    "backlog.add_many", [](ref<posts> p, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                           std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t g) {
      p.to->sum += a + b + c + d + e + f + g;
      ++p.to->ran;
    });
const auto add_range = define("backlog.add_range", [](ref<posts> p, range r) {
  p.to->ran += static_cast<std::uint32_t>(r.end - r.begin);
});
const auto post_mixed = define("backlog.post_mixed", [](ref<posts> p) {
  for (std::uint64_t i = 0; i < p.to->count; ++i) {
    p.to->home->post(add_many, p, i, i, i, i, i, i, i);
    p.to->home->post(add_range, p, range{0, 10});
  }
});

LEV_TEST(backlog_test, keeps_all_arguments_and_cuts_ranges) {
  for (const bool has_filter : {false, true}) {
    posts p;
    p.home = &open(few(4));
    const filter chain[] = {filters::fifo()};
    if (has_filter) {
      ASSERT_EQ(p.home->set_filters(chain, 1), status::ok);
    }
    p.count = 500;
    p.home->post(post_mixed, ref{&p});
    p.home->post(post_mixed, ref{&p});
    EXPECT_EQ(wait_for_all().code, status::ok);
    EXPECT_EQ(p.ran, 2 * p.count * 11);
    EXPECT_EQ(p.sum, std::uint64_t{7} * p.count * (p.count - 1));
  }
}

// Children with tickets are made and waited for in between.
const auto wait_and_post = define("backlog.wait_and_post", [](ref<posts> p) {
  for (std::uint32_t i = 0; i < p.to->count; ++i) {
    p.to->home->post(add_posted, p, i);
    if (i % 8 == 0) p.to->home->submit(add_posted, p, 0u).wait();
  }
});

LEV_TEST(backlog_test, tasks_of_the_backlog_and_children_get_slots_side_by_side) {
  posts p;
  p.home = &open(few(8));
  p.count = 400;
  for (int i = 0; i < 40; ++i) p.home->post(wait_and_post, ref{&p});
  EXPECT_EQ(wait_for_all().code, status::ok);
  EXPECT_EQ(p.ran, 40 * (p.count + p.count / 8));
}

LEV_TEST(backlog_test, a_runtime_that_closes_runs_or_cancels_all_of_it) {
  for (const bool cancels : {false, true}) {
    posts p;
    p.home = &open(few(2));
    p.count = 2'000;
    p.home->post(post_sums, ref{&p});
    EXPECT_EQ(p.home->close(wait_limit_ns(), cancels), status::ok);
    const counters n = p.home->count();
    EXPECT_EQ(n.submitted, n.completed);
    EXPECT_EQ(n.submitted - n.failed, p.ran + p.began);
    if (!cancels) {
      EXPECT_EQ(p.ran, p.count);
    }
  }
}

const auto try_posts = define("backlog.try_posts", [](ref<posts> p) {
  for (std::uint32_t i = 0; i < p.to->count; ++i) {
    try {
      p.to->home->post(add_posted, p, i);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), status::would_block);
      ++p.to->refused;
    }
  }
});

LEV_TEST(backlog_test, a_runtime_that_is_to_fail_refuses_instead) {
  posts p;
  config c = few(8);
  c.full = when_full::fail;
  p.home = &open(c);
  p.count = 2'000;
  p.home->post(try_posts, ref{&p});
  EXPECT_EQ(wait_for_all().code, status::ok);
  EXPECT_EQ(p.ran + p.refused, p.count);
  EXPECT_EQ(p.home->state()->backlog.size(), 0u);
}

const auto count_ran = define("backlog.count", [](ref<posts> p) { ++p.to->ran; });
const auto post_and_look = define("backlog.post_and_look", [](ref<posts> p) {
  for (std::uint32_t i = 0; i < p.to->count; ++i) {
    p.to->home->post(count_ran, p);
    const std::uint64_t waiting = p.to->home->state()->backlog.size();
    if (waiting > p.to->sum) p.to->sum = waiting;
  }
});

// A task that posts faster than others run must not fill the memory.
LEV_TEST(backlog_test, one_task_posts_no_more_ahead_than_there_are_tickets) {
  constexpr std::uint32_t tickets = 32;
  posts p;
  p.home = &open(few(tickets));
  p.count = 20'000;
  p.home->post(post_and_look, ref{&p});
  EXPECT_EQ(wait_for_all().code, status::ok);
  EXPECT_EQ(p.ran, p.count);
  EXPECT_LE(p.sum, tickets);
}

// Tasks of the backlog wait in all contexts of several hosts that help: those that they post get
// slots all the same.
const auto post_and_poll = define("backlog.post_and_poll", [](ref<posts> p, std::uint32_t i) {
  ++p.to->began;
  task_context task = this_task();
  task.wait_until([&] { return p.to->began.load() == p.to->count; });
  p.to->home->post(add_posted, p, i);
  task.wait_until([&] { return p.to->ran.load() == p.to->count; });
});
const auto post_pollers = define("backlog.post_pollers", [](ref<posts> p) {
  for (std::uint32_t i = 0; i < p.to->count; ++i) p.to->home->post(post_and_poll, p, i);
});

LEV_TEST(backlog_test, there_are_slots_for_the_contexts_of_each_host) {
  if (is_sim()) GTEST_SKIP() << "sim has one host thread";
  config c = few(64);
  c.workers = 1;
  posts p;
  p.home = &open(c);
  p.count = 40;
  std::vector<ticket> held;
  for (int i = 0; i < 63; ++i) held.push_back(p.home->submit(nothing));
  p.home->post(post_pollers, ref{&p});
  std::vector<std::thread> hosts;
  for (int i = 0; i < 3; ++i) hosts.emplace_back([&] { wait_for_all(); });
  for (std::thread& t : hosts) t.join();
  EXPECT_EQ(p.ran, p.count);
  for (ticket& t : held) expect_ok(t);
}

}  // namespace
}  // namespace lev::test
