// Conformance: tasks that get data themselves, give way where they wait, and have threads of their
// own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

class contexts_test : public machine_test {
 protected:
  static config with_contexts(std::uint32_t n) {
    config c = settings();
    c.contexts = n;
    return c;
  }
};
LEV_ON_LOCAL_MACHINES(contexts_test);

// Lists through shuffled memory: which element is next is known only when one is there.
std::vector<std::uint32_t> make_ring(std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  std::uint64_t state = 88172645463325252u;
  for (std::uint32_t i = size - 1; i > 0; --i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::swap(order[i], order[state % (i + 1)]);
  }
  std::vector<std::uint32_t> next(size);
  for (std::uint32_t i = 0; i < size; ++i) next[order[i]] = order[(i + 1) % size];
  return next;
}

std::uint32_t walk_serially(const std::vector<std::uint32_t>& next, std::uint32_t at, int steps) {
  for (int i = 0; i < steps; ++i) at = next[at];
  return at;
}

const auto walk = define("contexts.walk", [](far<const std::uint32_t> next, std::uint32_t at,
                                             int steps, result<std::uint32_t> reached) {
  auto task = this_task();
  for (int i = 0; i < steps; ++i) {
    const std::uint32_t* p = task.get(next, at);
    task.wait();
    at = *p;
  }
  reached = at;
});

LEV_TEST(contexts_test, walks_reach_what_a_serial_walk_reaches) {
  const std::vector<std::uint32_t> next = make_ring(1 << 16);
  for (const std::uint32_t n : {0u, 1u, 2u, 5u, 16u}) {
    runtime& r = open(with_contexts(n));
    constexpr std::uint32_t walks = 64;
    constexpr int steps = 50;
    std::vector<std::uint32_t> reached(walks);
    std::vector<ticket> all;
    for (std::uint32_t i = 0; i < walks; ++i)
      all.push_back(r.submit(walk, next, i * 97, steps, reached[i]));
    ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
    for (std::uint32_t i = 0; i < walks; ++i)
      EXPECT_EQ(reached[i], walk_serially(next, i * 97, steps)) << n << " contexts";
  }
}

// Get, compute, put: every element is updated once, by many tasks under different tags.
const auto add_one_each =
    define("contexts.add_one", [](far<std::uint64_t> data, std::uint64_t begin, std::uint64_t end) {
      auto task = this_task();
      constexpr std::size_t block = 16;
      for (std::uint64_t i = begin; i < end; i += block) {
        const unsigned tag = static_cast<unsigned>(i / block % task_tags);
        std::uint64_t* p = task.get(data, i, block, tag);
        task.wait(tag);
        for (std::size_t k = 0; k < block; ++k) ++p[k];
        task.put(data, i, block, p, tag);
      }
      task.wait_all(0xffff);
    });

LEV_TEST(contexts_test, get_compute_put_updates_every_element_once) {
  runtime& r = open(with_contexts(8));
  std::vector<std::uint64_t> data(16 * 256);
  std::iota(data.begin(), data.end(), std::uint64_t{5});
  std::vector<ticket> all;
  for (std::uint64_t i = 0; i < 16; ++i)
    all.push_back(r.submit(add_one_each, data, i * 256, (i + 1) * 256));
  ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], i + 6);
}

// In place the parts overlap in the caller's memory; copied, they do not.
LEV_TEST(contexts_test, a_part_is_put_elsewhere_in_the_same_memory) {
  static const auto shift = define("contexts.shift", [](far<int> data) {
    auto task = this_task();
    const std::size_t size = data.size() - 1;
    const int* const up = task.get(data, 0, size, 1);
    task.wait(1);
    task.put(data, 1, size, up, 1);
    task.wait(1);
    const int* const down = task.get(data, 1, size, 2);
    task.wait(2);
    task.put(data, 0, size, down, 2);
    task.wait(2);
  });
  runtime& r = open();
  std::vector<int> x(1000);
  std::iota(x.begin(), x.end(), 0);
  expect_ok(r.submit(shift, x));
  for (int i = 0; i < 999; ++i) ASSERT_EQ(x[i], i);
  EXPECT_EQ(x[999], 998);
}

// Two tasks that need each other's steps get on only if they take turns: with one worker that is
// two contexts of it.
struct ping {
  std::atomic<int> turn{0};
};
const auto play = define("contexts.play", [](ref<ping> p, int me, int rounds) {
  auto task = this_task();
  for (int i = 0; i < rounds; ++i) {
    task.wait_until([&] { return p.to->turn.load() % 2 == me; });
    p.to->turn.fetch_add(1);
  }
});

LEV_TEST(contexts_test, tasks_that_wait_for_each_other_take_turns) {
  for (const std::uint32_t n : {0u, 2u, 16u}) {
    config c = with_contexts(n);
    c.wait = wait_policy::park;
    runtime& r = open(c);
    ping p;
    ticket both[2] = {r.submit(play, ref{&p}, 0, 200), r.submit(play, ref{&p}, 1, 200)};
    ASSERT_EQ(wait_all(both, 2, wait_limit_ns()).code, status::ok);
    EXPECT_EQ(p.turn.load(), 400);
  }
}

// A worker whose contexts have all ended is woken for what comes next. The host does not help, and
// hands over the next tasks at once or when the worker has gone to sleep.
const auto step = define("contexts.step", [](ref<counter> done, int yields) {
  auto task = this_task();
  for (int i = 0; i < yields; ++i) task.yield();
  ++*done.to;
});

LEV_TEST(contexts_test, a_worker_is_woken_after_its_contexts_have_ended) {
  config c = with_contexts(16);
  c.workers = 1;
  c.wait = wait_policy::park;
  c.spin_ns = 0;
  runtime& r = open(c);
  counter done = 0;
  constexpr int rounds = 300;
  constexpr int tasks = 6;
  for (int round = 0; round < rounds; ++round) {
    std::vector<ticket> all;
    for (int i = 0; i < tasks; ++i) all.push_back(r.submit(step, ref{&done}, i * round % 50));
    ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok) << round;
  }
  EXPECT_EQ(done, rounds * tasks);
}

// A task waits for its child while other contexts run on: both kinds of waiting mix.
const auto with_child = define("contexts.with_child", [](ref<runtime> home, int depth,
                                                         std::int64_t x, result<std::int64_t> sum) {
  auto task = this_task();
  std::int64_t own = 0;
  std::int64_t below = 0;
  ticket t = home.to->submit(square, x, own);
  for (int i = 0; i < depth; ++i) task.yield();
  t.wait();
  home.to->submit(square, own, below).wait();
  sum = own + below;
});

LEV_TEST(contexts_test, tasks_with_children_end) {
  for (const std::uint32_t n : {1u, 3u, 16u}) {
    runtime& r = open(with_contexts(n));
    constexpr std::int64_t tasks = 100;
    std::vector<std::int64_t> sums(tasks);
    std::vector<ticket> all;
    for (std::int64_t i = 0; i < tasks; ++i)
      all.push_back(r.submit(with_child, ref{&r}, static_cast<int>(i % 5), i, sums[i]));
    ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
    for (std::int64_t i = 0; i < tasks; ++i) EXPECT_EQ(sums[i], i * i + i * i * i * i);
  }
}

// The children end late, on another worker or a long time later: all contexts of the waiting
// worker go to sleep together, and wake.
const auto opens_late = define(
    "contexts.slow",
    [](ref<gate_state> g) {
      if (g.to->blocks) g.to->is_open.wait(false);
    },
    nullptr, [](const descriptor&) { return gate_ns; });
std::uint64_t cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

const auto wait_for_slow = define("contexts.wait_for_slow",
                                  [](ref<runtime> home, ref<gate_state> g, ref<counter> waiting) {
                                    ticket t = home.to->submit(opens_late, g);
                                    ++*waiting.to;
                                    this_task().yield();
                                    t.wait();
                                  });

LEV_TEST(contexts_test, contexts_sleep_together) {
  config c = with_contexts(4);
  c.wait = wait_policy::park;
  c.workers = 6;
  c.spin_ns = 1000;
  runtime& r = open(c);
  gate_state g;
  g.blocks = !is_sim();
  counter waiting;
  ticket all[3];
  for (ticket& t : all) t = r.submit(wait_for_slow, ref{&r}, ref{&g}, ref{&waiting});
  if (!is_sim()) {
    while (waiting.load() < 3) std::this_thread::yield();
    // All of them wait now, and nobody has anything to do: not even poll.
    constexpr std::uint64_t looked_ns = 100'000'000;
    const std::uint64_t before_ns = cpu_ns();
    EXPECT_EQ(all[0].wait_outcome(looked_ns).code, status::timed_out);
    EXPECT_LT(cpu_ns() - before_ns, looked_ns / 2);
    g.is_open = true;
    g.is_open.notify_all();
  }
  ASSERT_EQ(wait_all(all, 3, wait_limit_ns()).code, status::ok);
}

const auto take_time = define("contexts.take_time", [](ref<runtime> home, std::uint64_t cycles,
                                                       result<std::uint64_t> passed_ns) {
  auto task = this_task();
  const std::uint64_t before_ns = home.to->now_ns();
  task.pass_time(cycles);
  passed_ns = home.to->now_ns() - before_ns;
});

// In virtual time exactly what the task says: as much for each of its computations.
LEV_TEST(contexts_test, a_task_says_what_a_computation_takes) {
  runtime& r = open(with_contexts(0));
  std::uint64_t once_ns = 0;
  std::uint64_t thrice_ns = 0;
  expect_ok(r.submit(take_time, ref{&r}, std::uint64_t{1'000'000}, once_ns));
  expect_ok(r.submit(take_time, ref{&r}, std::uint64_t{3'000'000}, thrice_ns));
  if (!is_sim()) return;
  EXPECT_GT(once_ns, 0u);
  EXPECT_EQ(thrice_ns, 3 * once_ns);
}

const auto spawn_some = define("contexts.spawn_some", [](int threads, int rounds, result<int> sum) {
  auto task = this_task();
  int total = 0;
  auto part = [&](int by) {
    return [&total, task, by, rounds]() mutable {
      for (int i = 0; i < rounds; ++i) {
        total += by;
        task.yield();
      }
    };
  };
  auto a = task.spawn(part(1));
  if (threads > 1) {
    auto b = task.spawn(part(100));
    EXPECT_NE(a.id(), b.id());
    b.join();
  }
  a.join();
  EXPECT_TRUE(a.is_done());
  sum = total;
});

LEV_TEST(contexts_test, a_task_has_threads_of_its_own) {
  runtime& r = open(with_contexts(0));
  // 5 tasks and 7 threads: no more than one worker's contexts.
  int sums[5] = {};
  ticket all[5];
  for (int i = 0; i < 5; ++i) all[i] = r.submit(spawn_some, 1 + i % 2, 10, sums[i]);
  ASSERT_EQ(wait_all(all, 5, wait_limit_ns()).code, status::ok);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sums[i], i % 2 == 0 ? 10 : 1010);
}

const auto spawn_thrower = define("contexts.spawn_thrower", [] {
  auto task = this_task();
  auto quiet = task.spawn([] { throw std::runtime_error("nobody joins me"); });
  auto t = task.spawn([] { throw std::runtime_error("thrown in a thread"); });
  t.join();
});

LEV_TEST(contexts_test, what_a_thread_throws_reaches_who_joins_it) {
  runtime& r = open(with_contexts(0));
  ticket t = r.submit(spawn_thrower);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  try {
    std::rethrow_exception(o.exception);
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "thrown in a thread");
  }
}

// Exceptions in flight belong to a context: both are handled across a switch.
const auto throw_across = define("contexts.throw_across", [](int number, result<int> caught) {
  auto task = this_task();
  try {
    try {
      throw number;
    } catch (int n) {
      for (int i = 0; i < 5; ++i) task.yield();
      throw n + 1;
    }
  } catch (int n) {
    task.yield();
    caught = n;
  }
});

LEV_TEST(contexts_test, exceptions_stay_with_their_task) {
  runtime& r = open(with_contexts(0));
  int caught[40] = {};
  ticket all[40];
  for (int i = 0; i < 40; ++i) all[i] = r.submit(throw_across, i, caught[i]);
  ASSERT_EQ(wait_all(all, 40, wait_limit_ns()).code, status::ok);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(caught[i], i + 1);
}

// Recursion far below a yield, on a context's own stack.
int dig(task_context& task, int depth, std::size_t* least) {
  volatile char room[512] = {};
  room[0] = 1;
  if (depth == 0) {
    *least = task.stack_left();
    task.yield();
    return 0;
  }
  return dig(task, depth - 1, least) + room[0];
}
const auto digger = define("contexts.digger", [](int depth, result<int> reached) {
  auto task = this_task();
  std::size_t least = 0;
  const std::size_t before = task.stack_left();
  reached = dig(task, depth, &least);
  if (task.id() == 0) return;  // the worker's own stack: its end is not known
  EXPECT_GE(before, least + static_cast<std::size_t>(depth) * 2 * sizeof(void*));
  EXPECT_LT(before, std::size_t{1} << 40);
});

LEV_TEST(contexts_test, tasks_yield_deep_in_their_calls) {
  runtime& r = open(with_contexts(4));
  int reached[24] = {};
  ticket all[24];
  for (int i = 0; i < 24; ++i) all[i] = r.submit(digger, 400, reached[i]);
  ASSERT_EQ(wait_all(all, 24, wait_limit_ns()).code, status::ok);
  for (const int n : reached) EXPECT_EQ(n, 400);
}

const auto spawn_too_many = define("contexts.spawn_too_many", [](result<int> code) {
  auto task = this_task();
  auto idle = [&] { task.yield(); };
  try {
    auto a = task.spawn(idle);
    auto b = task.spawn(idle);
    auto c = task.spawn(idle);
  } catch (const error& e) {
    code = static_cast<int>(e.code());
  }
});

LEV_TEST(contexts_test, more_threads_than_contexts_are_refused) {
  for (const std::uint32_t n : {1u, 2u, 3u}) {
    runtime& r = open(with_contexts(n));
    int code = 0;
    expect_ok(r.submit(spawn_too_many, code));
    EXPECT_EQ(code, static_cast<int>(status::too_many_contexts));
  }
}

const auto get_beyond =
    define("contexts.get_beyond", [](far<std::uint64_t> data, std::uint64_t first,
                                     std::uint64_t count, unsigned tag, result<int> code) {
      code = 0;
      auto task = this_task();
      try {
        std::uint64_t* p = task.get(data, first, count, tag);
        task.wait(tag);
        task.put(data, first, count, p, tag);
        task.wait(tag);
      } catch (const error& e) {
        code = static_cast<int>(e.code());
      }
    });

LEV_TEST(contexts_test, a_get_outside_of_what_was_declared_is_refused) {
  runtime& r = open(with_contexts(0));
  std::vector<std::uint64_t> data(64);
  struct row {
    std::uint64_t first, count;
    unsigned tag;
    status expected;
  };
  const row rows[] = {{0, 64, 0, status::ok},
                      {63, 1, 15, status::ok},
                      {64, 0, 0, status::ok},
                      {0, 65, 0, status::bad_range},
                      {64, 1, 0, status::bad_range},
                      {~std::uint64_t{0}, 2, 0, status::bad_range},
                      {1, ~std::uint64_t{0}, 0, status::bad_range},
                      {0, 1, 16, status::bad_argument}};
  for (const row& w : rows) {
    int code = 0;
    expect_ok(r.submit(get_beyond, data, w.first, w.count, w.tag, code));
    EXPECT_EQ(code, static_cast<int>(w.expected)) << w.first << " " << w.count << " " << w.tag;
  }
}

LEV_TEST(contexts_test, the_host_is_no_task) {
  open();
  expect_refused(status::not_in_task, "", [&] { this_task(); });
}

LEV_TEST(contexts_test, far_memory_is_one_row_and_not_sliced) {
  runtime& r = open();
  std::vector<std::uint64_t> data(64);
  int code = 0;
  EXPECT_EQ(expect_refused(status::bad_argument, "",
                           [&] { r.submit(get_beyond, sliced(data), 0, 1, 0, code); }),
            0);
  EXPECT_THROW(r.submit(get_beyond, strided(data.data(), 4, 8, 16), 0, 1, 0, code), error);
}

LEV_TEST(contexts_test, bad_numbers_of_contexts_are_refused) {
  EXPECT_THROW(open(with_contexts(17)), error);
  config c = settings();
  c.context_stack_bytes = 4096;
  EXPECT_THROW(open(c), error);
}

using contexts_remote_test = machine_test;
LEV_ON_PROCESSES(contexts_remote_test);

// Before the task runs, one by one and in bulk.
LEV_TEST(contexts_remote_test, far_memory_is_refused) {
  runtime& r = open();
  const std::vector<std::uint32_t> next(16);
  std::uint32_t reached = 0;
  const auto make = [&](std::size_t, descriptor& task) { task = pack(walk, next, 0u, 1, reached); };
  for (const bool in_bulk : {false, true}) {
    expect_refused(status::not_supported, "far memory", [&] {
      in_bulk ? r.submit_bulk(1, make).wait() : r.submit(walk, next, 0u, 1, reached).wait();
    });
  }
  expect_ok(r.submit(nothing));
}

}  // namespace
}  // namespace lev::test
