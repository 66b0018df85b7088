// Several host processes at one pool of confined workers: each has processes of its own, which take
// turns.
#include <gtest/gtest.h>

#include <leveret/leveret.hpp>

#include <poll.h>
#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "fault/pool_hosts.hpp"
#include "machines/processes/berth.hpp"

namespace lev::test {
namespace {

class confined_pool : public shared_pool {
 protected:
  std::vector<std::string> at_confined(const std::string& workers,
                                       const std::string& task_ns_max = "0") const {
    std::vector<std::string> all = at_pool(workers, task_ns_max);
    all.emplace_back("confined");
    return all;
  }
};

TEST_F(confined_pool, hosts_have_their_own_processes_and_come_and_go) {
  member a(at_confined("2")), b(at_confined("2"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  for (int i = 0; i < 3; ++i) {
    a.say("run 300 50");
    b.say("run 300 50");
    const answer of_a = parse(a.hear());
    const answer of_b = parse(b.hear());
    EXPECT_TRUE(of_a.is_right && of_b.is_right);
    for (const pid_t worker : of_a.workers) EXPECT_EQ(of_b.workers.count(worker), 0u);
    EXPECT_EQ(parent_of(*of_a.workers.begin()), parent_of(*of_b.workers.begin())) << "one keeper";
    EXPECT_EQ(a.ask("share 100"), "right");
    EXPECT_EQ(b.ask("leave"), "left");
    for (const pid_t worker : of_b.workers) EXPECT_TRUE(ends(worker));
    EXPECT_EQ(b.ask("join"), "joined");
  }
}

TEST_F(confined_pool, a_task_without_end_ends_with_its_host) {
  member a(at_confined("1"));
  ASSERT_EQ(a.hear(), "there");
  member b(at_confined("1"));
  ASSERT_EQ(b.hear(), "there");
  EXPECT_TRUE(parse(b.ask("run 10 10")).is_right);
  ASSERT_EQ(b.ask("post_hang"), "posted");
  a.say("run 20 100");
  b.die();
  EXPECT_TRUE(parse(a.hear()).is_right);
}

TEST_F(confined_pool, no_host_pays_for_the_tasks_of_another) {
  member a(at_confined("1", "50000000"));  // 50 ms
  member b(at_confined("1"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  for (int i = 0; i < 3; ++i) {
    b.say("run 200 50");
    EXPECT_EQ(a.ask(i == 1 ? "crash" : "overrun"), i == 1 ? "poison" : "overran");
    const answer of_b = parse(b.hear());
    EXPECT_TRUE(of_b.is_right);
    EXPECT_EQ(of_b.reruns, 0);
  }
}

// A task that was posted to a worker that waits for its turn, which another host's task has for
// ever, goes to one that is free.
TEST_F(confined_pool, no_task_waits_for_a_turn_where_a_worker_is_free) {
  member a(at_confined("2")), b(at_confined("1"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  ASSERT_EQ(b.ask("post_hang"), "posted");
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(parse(a.ask("run 4 1000")).is_right) << i;
  }
  b.die();
}

// A worker that waits for its turn is not one that hides that it has begun: see attend.cpp. The
// limit is far more than a worker loses its core for in a task of 10 us.
TEST_F(confined_pool, a_time_limit_does_not_run_while_the_worker_waits) {
  constexpr int long_enough_ms = 3'400;
  member a(at_confined("1", "1000000000"));  // 1 s
  member b(at_confined("1"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  const int before = parse(a.ask("run 10 10")).reruns;
  ASSERT_EQ(b.ask("post_hang"), "posted");
  poll(nullptr, 0, 100);
  a.say("run 1 10");
  poll(nullptr, 0, long_enough_ms);
  b.die();
  const answer of_a = parse(a.hear());
  EXPECT_TRUE(of_a.is_right);
  EXPECT_EQ(of_a.reruns, before);
}

// A hostile body overwrites the word that says whose turn it is, and is ended, or ends its worker.
// Its library has looked for that word before the worker was confined.
processes::pool_page* page_of_pool = nullptr;
[[gnu::constructor]] void look_for_page_in_children() {
  pthread_atfork(nullptr, nullptr, [] {
    std::ifstream mappings("/proc/self/maps");
    for (std::string line; std::getline(mappings, line);) {
      if (line.find("leveret-pool") == std::string::npos) continue;
      page_of_pool = reinterpret_cast<processes::pool_page*>(std::stoul(line, nullptr, 16));
    }
  });
}
const auto seize_turn = define("confined_pool.seize_turn", [](std::uint32_t holder, bool dies) {
  page_of_pool->berths[worker_index()].serving.store(holder, memory_order_relaxed);
  if (dies) std::abort();
  for (volatile bool goes_on = true; goes_on;) {
  }
});
// Or it goes on when another worker waits.
const auto hide_wish = define("confined_pool.hide_wish", [](std::uint32_t holder) {
  auto& turn = page_of_pool->berths[worker_index()].serving;
  while ((turn.load(memory_order_relaxed) & processes::berth<>::wanted) == 0) {
  }
  turn.store(holder, memory_order_relaxed);
});
const auto no_work = define("confined_pool.nothing", [] {});

TEST_F(confined_pool, a_body_that_gives_the_turn_away_keeps_it_from_nobody_when_it_has_ended) {
  constexpr std::int64_t limit_ns = 20'000'000'000;
  constexpr std::uint32_t nobody = 0x12345, of_the_other = 2, doomed = 1u << 31 | 2;
  constexpr std::uint32_t wanted_only = processes::berth<>::wanted;
  for (const bool dies : {false, true}) {
    for (const std::uint32_t holder : {nobody, of_the_other, doomed, wanted_only}) {
      config c;
      c.machine = "processes";
      c.workers = 1;
      c.processes.pool = name_.c_str();
      c.processes.isolation = isolation::confined;
      c.processes.max_attempts = 1;
      runtime hostile(c), other(c);
      EXPECT_EQ(other.submit(no_work).wait_outcome(limit_ns).code, status::ok);
      // A limit for the one that dies, too, might be over before it does.
      const options limited = options().task_ns_max(dies ? no_time_limit : 10'000'000);
      ticket t = hostile.submit(limited, seize_turn, holder, dies);
      EXPECT_EQ(t.wait_outcome(limit_ns).code, dies ? status::poison : status::overran);
      EXPECT_EQ(other.submit(no_work).wait_outcome(limit_ns).code, status::ok) << holder << dies;
      EXPECT_EQ(hostile.submit(no_work).wait_outcome(limit_ns).code, status::ok) << holder << dies;
    }
  }
}

TEST_F(confined_pool, a_body_that_hides_who_waits_keeps_the_turn_from_nobody_when_it_is_over) {
  constexpr std::int64_t limit_ns = 20'000'000'000;
  for (const std::uint32_t holder : {0x12345u, 1u, 2u, processes::berth<>::wanted}) {
    config c;
    c.machine = "processes";
    c.workers = 1;
    c.processes.pool = name_.c_str();
    c.processes.isolation = isolation::confined;
    runtime hostile(c), other(c);
    ticket hides = hostile.submit(hide_wish, holder);
    status code = status::ok;
    while (!hides.done() && code == status::ok)  // which may not have begun
      code = other.submit(no_work).wait_outcome(limit_ns).code;
    EXPECT_EQ(code, status::ok) << holder;
    EXPECT_EQ(hides.wait_outcome(limit_ns).code, status::ok) << holder;
    EXPECT_EQ(hostile.submit(no_work).wait_outcome(limit_ns).code, status::ok) << holder;
  }
}

TEST_F(confined_pool, a_keeper_that_dies_is_replaced) {
  member a(at_confined("2")), b(at_confined("2"));
  ASSERT_EQ(a.hear(), "there");
  ASSERT_EQ(b.hear(), "there");
  const pid_t keeper = parent_of(*parse(a.ask("run 100 50")).workers.begin());
  a.say("run 500 50");
  b.say("run 500 50");
  kill(keeper, SIGKILL);
  EXPECT_TRUE(parse(a.hear()).is_right);
  EXPECT_TRUE(parse(b.hear()).is_right);
}

TEST_F(confined_pool, hosts_at_different_levels_share_no_pool) {
  member a(at_confined("1"));
  ASSERT_EQ(a.hear(), "there");
  member b(at_pool("1"));
  const std::string why = b.hear();
  EXPECT_NE(why.find("config.processes.isolation"), std::string::npos) << why;
}

}  // namespace
}  // namespace lev::test
