// Looking at worker processes from outside: what is seen of a task that runs, after a death, and of
// runtimes that end.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>
#include <leveret/look.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/environment.hpp"

namespace lev::test {
namespace {

struct flag {
  int* is_set;
};
const auto waits = define("look.waits", [](flag f) {
  while (__atomic_load_n(f.is_set, __ATOMIC_SEQ_CST) == 0) std::this_thread::yield();
});
const auto adds = define("look.adds", [](std::int64_t a, result<std::int64_t> b) { b = a + 1; });

config two_workers() {
  config c;
  c.machine = "processes";
  c.workers = 2;
  c.host_threads = 2;
  return c;
}

// The one pool of this process.
seen_pool look_here() {
  const auto pools = look_at_pools(getpid());
  EXPECT_EQ(pools.size(), 1u);
  return pools.at(0);
}

// Looks until a worker runs `waits` at that attempt; its place.
std::size_t await_attempt(std::uint32_t attempt) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    const seen_pool pool = look_here();
    for (std::size_t i = 0; i < pool.workers.size(); ++i) {
      const seen_worker& w = pool.workers[i];
      if (w.attempt == attempt && std::string(w.procedure) == "look.waits" && w.pid != 0) return i;
    }
    std::this_thread::yield();
  }
  ADD_FAILURE() << "no worker was seen at attempt " << attempt;
  return 0;
}

TEST(Look, SeesTheTaskAndItsAttempts) {
  runtime r(two_workers());
  EXPECT_EQ(look_here().workers.size(), 2u);
  shared_array<int> set(1);
  ticket t = r.submit(waits, flag{&set[0]});
  std::size_t at = await_attempt(1);
  const seen_worker before = look_here().workers[at];
  EXPECT_EQ(before.posted, 1u);
  EXPECT_EQ(before.done, 0u);
  EXPECT_EQ(before.waiting, 0u);
  EXPECT_EQ(before.deaths, 0u);
  EXPECT_EQ(getpgid(before.pid), before.pid);  // it is one, with a group of its own
  ASSERT_EQ(kill(before.pid, SIGKILL), 0);
  at = await_attempt(2);
  std::uint32_t deaths = 0;
  for (const seen_worker& w : look_here().workers) {
    deaths += w.deaths;
    EXPECT_STREQ(w.died_in, w.deaths != 0 ? before.procedure : "");
  }
  EXPECT_EQ(deaths, 1u);
  EXPECT_NE(look_here().workers[at].pid, before.pid);
  __atomic_store_n(&set[0], 1, __ATOMIC_SEQ_CST);
  t.wait();
  for (const seen_worker& w : look_here().workers) {
    EXPECT_EQ(w.attempt, 0u);
    EXPECT_STREQ(w.procedure, "");
    EXPECT_EQ(w.posted, w.done);
  }
}

TEST(Look, CountsEveryTaskOnce) {
  runtime r(two_workers());
  constexpr std::uint32_t count = 1000;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int64_t b = 0;
    r.submit(adds, std::int64_t{i}, b).wait();
    ASSERT_EQ(b, i + 1);
  }
  std::uint32_t done = 0;
  for (const seen_worker& w : look_here().workers) {
    EXPECT_EQ(w.posted, w.done);
    EXPECT_EQ(w.waiting, 0u);
    done += w.done;
  }
  EXPECT_EQ(done, count);
}

status refusal_of(int pid) {
  try {
    look_at_pools(pid);
    return status::ok;
  } catch (const error& e) {
    return e.code();
  }
}

TEST(Look, RuntimesThatAreNotThere) {
  EXPECT_EQ(refusal_of(getpid()), status::unavailable);
  EXPECT_EQ(refusal_of(-1), status::unavailable);
  EXPECT_EQ(refusal_of(1 << 30), status::unavailable);  // more than Linux gives
  {
    runtime r(two_workers());
    runtime other(two_workers());
    EXPECT_EQ(look_at_pools(getpid()).size(), 2u);
    EXPECT_EQ(r.close(), status::ok);
    EXPECT_EQ(look_at_pools(getpid()).size(), 1u);
    EXPECT_GE(look_at_pools().size(), 1u);
  }
  EXPECT_EQ(refusal_of(getpid()), status::unavailable);
}

}  // namespace
}  // namespace lev::test
