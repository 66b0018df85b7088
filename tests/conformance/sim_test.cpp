// Conformance of the simulated machine: a seed is a schedule. Equal seeds give equal runs, another
// seed another one, and results do not depend on it.
#include <gtest/gtest.h>
#include <leveret/this_task.hpp>

#include <cfenv>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "runtime/set_timeout.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/task_graph.hpp"

namespace lev::test {
namespace {

struct run_result {
  std::uint64_t hash = 0;
  std::uint64_t end_ns = 0;
  graph_memory memory;
};

run_result run_graph(const task_graph& graph, std::uint64_t seed, int workers,
                     const char* file = nullptr) {
  config c;
  c.machine = "sim";
  c.sim_machine = file;
  c.workers = workers;
  c.seed = seed;
  c.tickets = 512;
  c.trace_events = 64;
  runtime r(c);
  run_result result;
  graph.run(r, result.memory);
  result.hash = r.trace_hash();
  result.end_ns = r.now_ns();
  EXPECT_EQ(r.close(), status::ok);
  expect_nothing_leaked(r);
  return result;
}

// Of cycles at 3.2 GHz.
constexpr std::uint64_t ns_of(std::uint64_t cycles) {
  return cycles * 10 / 32;
}

TEST(sim_test, the_same_seed_gives_the_same_run) {
  start_alarm();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const task_graph graph(base_seed() + seed);
    const run_result first = run_graph(graph, seed, 4);
    const run_result second = run_graph(graph, seed, 4);
    EXPECT_NE(first.hash, 0u);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.end_ns, second.end_ns) << "seed " << seed;
  }
}

TEST(sim_test, other_seeds_give_other_schedules) {
  start_alarm();
  const task_graph graph(base_seed());
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    hashes.insert(run_graph(graph, seed, 4).hash);
  }
  EXPECT_EQ(hashes.size(), 20u);
}

TEST(sim_test, two_hundred_seeds_give_the_serial_result) {
  start_alarm();
  for (int i = 0; i < rounds(200); ++i) {
    const std::uint64_t seed = base_seed() * 10'000 + static_cast<std::uint64_t>(i);
    const task_graph graph(seed);
    graph_memory expected;
    graph.run_serially(expected);
    const run_result result = run_graph(graph, seed, 1 + i % 8);
    ASSERT_EQ(result.memory, expected) << "LEVERET_SEED " << base_seed() << ", graph seed " << seed;
  }
}

TEST(sim_test, more_workers_take_less_virtual_time) {
  start_alarm();
  static const auto costly = define(
      "sim.costly", [] {}, nullptr, [](const descriptor&) -> std::uint64_t { return 100'000; });
  std::uint64_t previous = ~std::uint64_t{0};
  for (const int workers : {1, 2, 4, 8}) {
    config c;
    c.machine = "sim";
    c.workers = workers;
    c.wait = wait_policy::park;
    runtime r(c);
    std::vector<ticket> t;
    for (int i = 0; i < 64; ++i) t.push_back(r.submit(costly));
    const std::uint64_t begin = r.now_ns();
    EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
    const std::uint64_t took = r.now_ns() - begin;
    const std::uint64_t ideal = ns_of(64u * 100'000u) / static_cast<unsigned>(workers);
    EXPECT_GE(took, ideal * 9 / 10);
    EXPECT_LE(took, ideal * 12 / 10);
    EXPECT_LT(took, previous);
    previous = took;
  }
}

TEST(sim_test, copies_take_time) {
  start_alarm();
  config c;
  c.machine = "sim";
  c.workers = 1;
  runtime r(c);
  std::vector<std::uint64_t> small(8, 0);
  std::vector<std::uint64_t> large(16 * 1024, 0);
  const auto time_of = [&r](auto& x) {
    const std::uint64_t begin = r.now_ns();
    r.submit(increment, x).wait();
    return r.now_ns() - begin;
  };
  const std::uint64_t short_ns = time_of(small);
  const std::uint64_t long_ns = time_of(large);
  EXPECT_GT(long_ns, short_ns + ns_of(2 * 16 * 1024));  // 128 KiB there and back, 8 bytes a cycle
}

// By pieces, or by strips where no ticket is free for a piece.
TEST(sim_test, a_task_costs_the_same_however_it_is_made_to_fit) {
  start_alarm();
  static const auto read = define(
      "sim.read", [](in<char>) {}, nullptr,
      [](const descriptor& d) { return d.arguments[0].row_bytes; });
  std::vector<char> data(2 << 20);
  std::uint64_t took[2];
  for (const std::uint32_t tickets : {64u, 2u}) {
    config c;
    c.machine = "sim";
    c.workers = 1;
    c.tickets = tickets;
    c.wait = wait_policy::park;
    runtime r(c);
    ticket held = r.submit(nothing);
    const std::uint64_t begin = r.now_ns();
    r.submit(read, sliced(data)).wait();
    took[tickets == 2] = r.now_ns() - begin;
    EXPECT_EQ(r.count().diced == 0, tickets == 2);
  }
  EXPECT_LT(took[1], 2 * took[0]);
}

// It ends those that it has staged ahead.
TEST(sim_test, a_host_that_helps_leaves_when_its_time_is_over) {
  start_alarm();
  static const auto slow = define(
      "sim.helped", [](ref<counter> n) { ++*n.to; }, nullptr,
      [](const descriptor&) -> std::uint64_t { return 10'000; });
  config c;
  c.machine = "sim";
  c.workers = 1;
  c.wait = wait_policy::help;
  runtime r(c);
  counter n = 0;
  std::vector<ticket> all;
  for (int i = 0; i < 300; ++i) all.push_back(r.submit(slow, ref{&n}));
  EXPECT_EQ(all.back().wait_outcome(static_cast<std::int64_t>(ns_of(30'000))).code,
            status::timed_out);
  EXPECT_LT(n, 100);
  EXPECT_EQ(wait_all(all).code, status::ok);
  EXPECT_EQ(n, 300);
}

TEST(sim_test, an_idle_runtime_lets_time_pass_only_when_asked) {
  start_alarm();
  config c;
  c.machine = "sim";
  c.workers = 2;
  c.wait = wait_policy::park;
  runtime r(c);
  static const auto slow = define(
      "sim.slow", [] {}, nullptr, [](const descriptor&) -> std::uint64_t { return 5'000'000'000; });
  ticket t = r.submit(slow);
  EXPECT_EQ(t.wait_outcome(1'000'000).code, status::timed_out);
  EXPECT_GE(r.now_ns(), 1'000'000u);
  EXPECT_LT(r.now_ns(), 100'000'000u);
  EXPECT_EQ(t.wait_outcome().code, status::ok);
  EXPECT_GE(r.now_ns(), ns_of(5'000'000'000u));
}

TEST(sim_test, a_wait_that_nothing_can_end_is_told) {
  start_alarm();
  config c;
  c.machine = "sim";
  runtime r(c);
  r.begin_submit();
  r.submit(nothing).wait();
  EXPECT_EQ(r.wait_for_completion().code, status::would_deadlock);
  r.end_submit();
  EXPECT_EQ(r.wait_for_completion().code, status::ok);
}

TEST(sim_test, tasks_of_a_bulk_that_take_for_ever_take_long) {
  config c;
  c.machine = "sim";
  c.workers = 1;
  runtime r(c);
  static const auto slow = define(
      "sim.for_ever", [](result<int> x) { x = 1; }, nullptr,
      [](const descriptor&) -> std::uint64_t { return std::uint64_t{1} << 63; });
  int x[2] = {};
  r.submit_bulk(2, slow, each(x)).wait();
  EXPECT_GE(r.now_ns(), 1'000'000'000u);
  EXPECT_EQ(x[0] + x[1], 2);
}

std::uint64_t thousands(const descriptor& d) {
  return 1000 * d.arguments[0].address;
}

// Each has its own price, by its own values, and once, also behind one that fails.
TEST(sim_test, tasks_of_a_bulk_cost_what_single_ones_do) {
  start_alarm();
  static const auto any = define(
      "sim.costs_thousands", [](std::uint32_t n, result<int> x) { x = static_cast<int>(n); },
      nullptr, &thousands);
  static const auto fails = define(
      "sim.fails_for_thousands", [](std::uint32_t, result<int>) { throw 1; }, nullptr, &thousands);
  for (const auto& p : {any, fails}) {
    config c;
    c.machine = "sim";
    c.workers = 1;
    c.wait = wait_policy::park;
    runtime r(c);
    std::vector<std::uint32_t> n(64);
    std::vector<int> x(64);
    std::iota(n.begin(), n.end(), 1u);
    const outcome o = r.submit_bulk(n.size(), p, each(n), each(x)).wait_outcome();
    EXPECT_EQ(o.failures, p.id == fails.id ? 64u : 0u);
    const std::uint64_t ideal = ns_of(64 * 65 / 2 * 1000);
    EXPECT_GE(r.now_ns(), ideal);
    EXPECT_LE(r.now_ns(), ideal * 12 / 10);
  }
}

// Whatever it is that a program asks for again and again without waiting.
TEST(sim_test, a_poll_lets_time_pass) {
  start_alarm();
  config c;
  c.machine = "sim";
  c.workers = 1;
  c.wait = wait_policy::park;
  static const auto does_nothing = define("sim.does_nothing", [] {});
  runtime r(c);
  constexpr int polls_max = 10'000;
  const auto is_late = [](auto&& poll) {
    int polls = 0;
    while (poll() == status::timed_out && ++polls < polls_max) {
    }
    return polls == polls_max;
  };
  std::size_t index = 0;
  ticket t = r.submit(does_nothing);
  EXPECT_FALSE(is_late([&] { return t.wait_outcome(0).code; }));
  t = r.submit(does_nothing);
  EXPECT_FALSE(is_late([&] { return wait_all(&t, 1, 0).code; }));
  t = r.submit(does_nothing);
  EXPECT_FALSE(is_late([&] { return wait_any(&t, 1, &index, 0).code; }));
  r.post(does_nothing);
  EXPECT_FALSE(is_late([&] { return r.wait_for_completion(0).code; }));
  r.post(does_nothing);
  EXPECT_FALSE(is_late([&] { return r.close(0); }));
}

// Where time goes no further, sleepers are woken and copies end all the same.
TEST(sim_test, everything_ends_at_the_end_of_time) {
  start_alarm();
  config c;
  c.machine = "sim";
  c.workers = 2;
  static const auto copies = define("sim.copies", [](far<int> x, in<int> by) {
    auto task = this_task();
    int* const p = task.get(x, 0, x.size());
    task.wait();
    for (std::size_t i = 0; i < x.size(); ++i) p[i] += by[i];
    task.put(x, 0, x.size(), p);
    task.wait();
  });
  runtime r(c);
  std::uint64_t before = 0;
  do {
    before = r.now_ns();
    r.pass_time(~std::uint64_t{0});
  } while (r.now_ns() != before);
  std::vector<int> x(1000, 1), y(1000, 1);
  const std::vector<int> by(1000, 1);
  ticket one = r.submit(copies, x, by), other = r.submit(copies, y, by);
  EXPECT_EQ(one.wait_outcome().code, status::ok);
  EXPECT_EQ(other.wait_outcome().code, status::ok);
  EXPECT_EQ(x, std::vector<int>(1000, 2));
  EXPECT_EQ(y, x);
  EXPECT_EQ(r.close(), status::ok);
}

// Neither how the program rounds nor which of its operations trap is Leveret's affair.
std::uint64_t end_of_copies() {
  config c;
  c.machine = "sim";
  c.workers = 2;
  runtime r(c);
  static const auto copied = define("sim.copied", [](in<int> x, out<int> y) {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i];
  });
  const std::vector<int> x(1001, 1);
  std::vector<int> y(1001);
  for (int i = 0; i < 20; ++i) r.submit(copied, x, y).wait();
  EXPECT_EQ(x, y);
  return r.now_ns();
}

TEST(sim_runs, take_the_same_time_in_each_floating_point_mode) {
  start_alarm();
  const std::uint64_t usual = end_of_copies();
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(rounding);
    EXPECT_EQ(end_of_copies(), usual);
    EXPECT_EQ(std::fegetround(), rounding);
  }
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)  // other processors may have no traps
  feenableexcept(FE_ALL_EXCEPT);
  const std::uint64_t with_traps = end_of_copies();
  EXPECT_EQ(fedisableexcept(FE_ALL_EXCEPT), FE_ALL_EXCEPT);
  EXPECT_EQ(with_traps, usual);
#endif
}

// When the time of a wait for a set is over, its first wait still takes a moment, as others are to
// run, and the rest of the set is only looked at.
TEST(sim_runs, wait_for_no_more_than_one_of_a_set_when_the_time_is_over) {
  start_alarm();
  config c;
  c.machine = "sim";
  c.workers = 1;
  runtime r(c);
  detail::set_timeout early(1'000), late(1'000);
  EXPECT_EQ(early.next_ns(r.state()), 1'000);
  late.begin(r.state());
  r.pass_time(1'000'000);
  EXPECT_EQ(early.next_ns(r.state()), 0);
  EXPECT_EQ(late.next_ns(r.state()), 1);
  EXPECT_EQ(late.next_ns(r.state()), 0);
  EXPECT_TRUE(late.is_poll());
}

}  // namespace
}  // namespace lev::test
