// Conformance: locked tasks. Tasks that name the same mutex never run at the same time, come in the
// order of their submit, and give the mutex back whatever becomes of them.
#include <gtest/gtest.h>
#include <leveret/this_task.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class mutex_test : public machine_test {
 protected:
  static std::vector<mutex_id> make(runtime& r, std::size_t count) {
    std::vector<mutex_id> ids(count);
    for (mutex_id& id : ids) EXPECT_EQ(r.make_mutex(&id), status::ok);
    return ids;
  }
};
LEV_ON_EVERY_MACHINE(mutex_test);

// Guarded by a mutex of the runtime: plain memory, so that a sanitizer sees two tasks at once.
struct guarded {
  int inside = 0;
  bool broken = false;
  bounded_list<int, 1000> order;

  void enter() { broken |= ++inside != 1; }
  void leave(int n) {
    order.push_back(n);
    --inside;
  }
};
struct guarded_set {
  guarded* all;
  std::uint64_t mask;
};

const auto visit_all = define("mutex.visit_all", [](guarded_set s, int n) {
  for (int i = 0; i < 64; ++i) {
    if ((s.mask >> i & 1) != 0) s.all[i].enter();
  }
  for (int i = 0; i < 64; ++i) {
    if ((s.mask >> i & 1) != 0) s.all[i].leave(n);
  }
  if (n % 7 == 3) throw std::runtime_error("with the mutex in hand");
});

LEV_TEST(mutex_test, one_mutex_is_held_by_one_task_at_a_time_in_order) {
  runtime& r = open();
  const std::vector<mutex_id> m = make(r, 1);
  shared_array<guarded> g(1);
  for (int i = 0; i < 500; ++i) r.submit(locks(m[0]), visit_all, guarded_set{g.data(), 1}, i * 7);
  expect_all_done();
  EXPECT_FALSE(g[0].broken);
  ASSERT_EQ(g[0].order.size(), 500u);
  EXPECT_TRUE(std::is_sorted(g[0].order.begin(), g[0].order.end()));
}

LEV_TEST(mutex_test, random_sets_of_mutexes_with_failures) {
  runtime& r = open();
  constexpr std::size_t mutexes = 8;
  const std::vector<mutex_id> m = make(r, mutexes);
  shared_array<guarded> g(mutexes);
  std::size_t visits[mutexes] = {};
  random_source random(base_seed() + GetParam().seed);
  unsigned failing = 0;
  for (int i = 0; i < 600; ++i) {
    options o;
    std::uint64_t mask = 0;
    for (unsigned n = 1 + random.below(mutexes_per_task_max); n > 0; --n) {
      const std::uint32_t which = random.below(mutexes);
      o.locks(m[which]);
      mask |= std::uint64_t{1} << which;
    }
    for (std::size_t k = 0; k < mutexes; ++k) visits[k] += mask >> k & 1;
    failing += i % 7 == 3;
    r.submit(o, visit_all, guarded_set{g.data(), mask}, i);
  }
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).failures, failing);
  for (std::size_t k = 0; k < mutexes; ++k) {
    EXPECT_FALSE(g[k].broken) << k;
    EXPECT_EQ(g[k].order.size(), visits[k]) << k;
  }
}

// A ring of tasks that each need two neighbours: none starves, and nothing locks up.
LEV_TEST(mutex_test, philosophers) {
  runtime& r = open();
  constexpr std::size_t seats = 5;
  const std::vector<mutex_id> forks = make(r, seats);
  shared_array<guarded> g(seats);
  for (int round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < seats; ++i) {
      const std::size_t right = (i + 1) % seats;
      const std::uint64_t mask = std::uint64_t{1} << i | std::uint64_t{1} << right;
      r.submit(locks(forks[i], forks[right]), visit_all, guarded_set{g.data(), mask}, 7 * round);
    }
  }
  expect_all_done();
  for (const guarded& fork : g) {
    EXPECT_FALSE(fork.broken);
    EXPECT_EQ(fork.order.size(), 200u);
  }
}

// A task with many mutexes among a stream of others that need one each. It takes its mutexes one
// after the other: at each it waits for those that were there before it, never for later ones.
LEV_TEST(mutex_test, a_task_with_many_mutexes_does_not_starve) {
  runtime& r = open();
  const std::vector<mutex_id> m = make(r, 4);
  shared_array<guarded> g(4);
  constexpr int count = 800;
  constexpr int special = 200;
  for (int i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(i % 4);
    r.submit(locks(m[k]), visit_all, guarded_set{g.data(), std::uint64_t{1} << k}, 7 * i);
    if (i == special) {
      r.submit(locks(m[3], m[2], m[1], m[0]), visit_all, guarded_set{g.data(), 0xf}, 7 * count);
    }
  }
  expect_all_done();
  for (const guarded& one : g) {
    EXPECT_FALSE(one.broken);
    EXPECT_EQ(one.order.size(), static_cast<std::size_t>(count / 4 + 1));
  }
  const auto place = std::find(g[0].order.begin(), g[0].order.end(), 7 * count);
  EXPECT_EQ(place - g[0].order.begin(), special / 4 + 1) << "overtaken at its first mutex";
}

LEV_TEST(mutex_test, a_cancelled_holder_lets_go) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  const std::vector<mutex_id> m = make(r, 1);
  shared_array<guarded> g(1);
  std::vector<ticket> t;
  {
    gate busy(r, r.workers());
    for (int i = 0; i < 10; ++i) {
      t.push_back(r.submit(locks(m[0]), visit_all, guarded_set{g.data(), 1}, 7 * i));
    }
    for (std::size_t i = 0; i < 10; i += 2) EXPECT_EQ(t[i].cancel(), status::ok);
  }
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(wait(t[i]).code, i % 2 == 0 ? status::cancelled : status::ok);
  }
  EXPECT_EQ(g[0].order, (std::vector<int>{7, 21, 35, 49, 63}));
}

LEV_TEST(mutex_test, mutexes_and_predecessors_together) {
  runtime& r = open();
  const std::vector<mutex_id> m = make(r, 2);
  shared_array<guarded> g(2);
  ticket bad = r.submit(throw_error, 1);
  ticket fails = r.submit(after(bad).locks(m[0], m[1]), visit_all, guarded_set{g.data(), 3}, 0);
  ticket good = r.submit(locks(m[1]), visit_all, guarded_set{g.data(), 2}, 0);
  ticket runs = r.submit(after(good).locks(m[0], m[1]), visit_all, guarded_set{g.data(), 3}, 0);
  EXPECT_EQ(wait(runs).code, status::ok);
  EXPECT_EQ(wait(fails).code, status::dependency_failed);
  EXPECT_EQ(g[0].order.size(), 1u);
  EXPECT_EQ(g[1].order.size(), 2u);
  expect_ok(good);
  EXPECT_EQ(wait(bad).code, status::task_failed);
}

LEV_TEST(mutex_test, the_same_mutex_named_twice_is_one) {
  runtime& r = open();
  const std::vector<mutex_id> m = make(r, 2);
  shared_array<guarded> g(2);
  expect_ok(r.submit(locks(m[1], m[0], m[1], m[0]), visit_all, guarded_set{g.data(), 3}, 0));
}

LEV_TEST(mutex_test, there_are_256_per_runtime) {
  runtime& r = open();
  make(r, mutex_count_max);
  mutex_id id = 0;
  EXPECT_EQ(r.make_mutex(&id), status::too_big);
  expect_ok(r.submit(locks(255), nothing));
}

using mutex_hosts_test = mutex_test;
LEV_ON_THREADS(mutex_hosts_test);

// No more come to be by asking for more at the same time.
LEV_TEST(mutex_hosts_test, none_beyond_them_is_ever_taken_for_one) {
  runtime& r = open();
  make(r, mutex_count_max);
  std::atomic<bool> is_over{false};
  std::thread asks([&] {
    for (mutex_id unused = 7; !is_over;) {
      EXPECT_EQ(r.make_mutex(&unused), status::too_big);
      EXPECT_EQ(unused, 7u);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    refusal why;
    const options o = options().locks(mutex_count_max);
    EXPECT_FALSE(r.try_submit(pack(nothing), &o, &why));
    EXPECT_EQ(why.code, status::bad_argument);
  }
  is_over = true;
  asks.join();
}

struct waits_of_all {
  std::vector<ticket> behind;
  std::atomic<bool> may_wait{false};
  std::atomic<int> refused{0};
};
const auto waits_behind_last =
    define("mutex.waits_behind_last", [](ref<waits_of_all> all, std::size_t i) {
      this_task().wait_until([&] { return all.to->may_wait.load(); });
      const std::int64_t time_ns = i == 7 ? no_timeout : 200'000'000;
      const status code = all.to->behind[i].wait_outcome(time_ns).code;
      all.to->refused += code == status::would_deadlock;
    });

// Their contexts are free when the time is over, so the one without a time limit waits as well.
LEV_TEST(mutex_hosts_test, waits_with_a_time_limit_are_no_deadlock) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  waits_of_all all;
  all.behind.resize(16);
  std::vector<ticket> waiting;
  for (std::size_t i = 0; i < 16; ++i) waiting.push_back(r.submit(waits_behind_last, ref{&all}, i));
  ticket last = r.submit(nothing);
  for (ticket& one : all.behind) one = r.submit(options().after(last), nothing);
  all.may_wait = true;
  EXPECT_EQ(wait_all(waiting).code, status::ok);
  EXPECT_EQ(all.refused, 0);
  last.wait();
  for (ticket& one : all.behind) one.wait_outcome(wait_limit_ns());
}

// A holder submits another user of its mutex: that one runs when the holder is done.
const auto hand_on = define("mutex.hand_on", [](ref<runtime> home, guarded_set s, mutex_id m) {
  s.all[0].enter();
  home.to->submit(locks(m), visit_all, s, 7);
  s.all[0].leave(0);
});

LEV_TEST(mutex_test, a_holder_may_submit_the_next_one) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  const std::vector<mutex_id> m = make(r, 1);
  shared_array<guarded> g(1);
  for (int i = 0; i < 50; ++i) {
    r.submit(locks(m[0]), hand_on, ref{&r}, guarded_set{g.data(), 1}, m[0]);
  }
  expect_all_done();
  EXPECT_FALSE(g[0].broken);
  EXPECT_EQ(g[0].order.size(), 100u);
}

struct timed_waits {
  std::vector<ticket> behind;
  std::atomic<int> early{0};
};
const auto waits_behind_itself =
    define("mutex.waits_behind_itself", [](ref<timed_waits> all, std::size_t i) {
      const auto begin = std::chrono::steady_clock::now();
      const status code = all.to->behind[i].wait_outcome(100'000'000).code;
      const auto took = std::chrono::steady_clock::now() - begin;
      all.to->early += code != status::timed_out || took < std::chrono::milliseconds(100);
    });

// In all contexts of all participants, but not without end.
LEV_TEST(mutex_hosts_test, waits_with_a_time_limit_last_until_then) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  const std::vector<mutex_id> m = make(r, 16);
  timed_waits all;
  all.behind.resize(m.size());
  std::vector<ticket> waiting;
  {
    gate busy(r, 1);
    for (std::size_t i = 0; i < m.size(); ++i) {
      waiting.push_back(r.submit(locks(m[i]), waits_behind_itself, ref{&all}, i));
      all.behind[i] = r.submit(locks(m[i]), nothing);
    }
  }
  EXPECT_EQ(wait_all(waiting).code, status::ok);
  EXPECT_EQ(wait_all(all.behind).code, status::ok);
  EXPECT_EQ(all.early, 0);
}

}  // namespace
}  // namespace lev::test
