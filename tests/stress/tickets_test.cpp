// Stress: what several threads do to one ticket at the moment its task completes. Waiting, polling,
// releasing, cancelling, callbacks: each in its race with completion, and with each other.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/stress.hpp"

namespace lev::test {
namespace {

config small(int workers, std::uint32_t hosts) {
  config c;
  c.workers = workers;
  c.host_threads = hosts;
  c.tickets = 64;
  c.spin_ns = 1'000;
  return c;
}

void close_and_check(runtime& r) {
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

TEST(tickets_stress, many_wait_for_one_and_one_collects) {
  start_alarm();
  constexpr int hosts = 4;
  sometimes collected("collected");
  sometimes stale("came too late");
  runtime r(small(2, hosts));
  const time_box box;
  std::atomic<std::uint64_t> round{0};
  std::atomic<std::uint64_t> id{0};
  std::atomic<int> winners{0};
  std::atomic<int> arrived{0};
  std::atomic<bool> is_over{false};
  on_threads_together(hosts, [&](int me) {
    for (std::uint64_t mine = 1;; ++mine) {
      if (me == 0) {
        is_over = box.is_over();
        ticket t = r.submit(nothing);
        id = t.id();
        t.forget();
        winners = 0;
        arrived = 0;
        round = mine;
        round.notify_all();
      }
      for (std::uint64_t now = round; now < mine; now = round) round.wait(now);
      ticket t(r.state(), id.load());
      const status code = t.wait_outcome().code;
      winners += code == status::ok;
      collected.note_if(code == status::ok);
      stale.note_if(code == status::stale_ticket);
      const bool ends = is_over;
      if (++arrived == hosts) arrived.notify_all();
      for (int n = arrived; n < hosts; n = arrived) arrived.wait(n);
      ASSERT_EQ(winners, 1);
      if (ends) return;
      if (me == 0) {
        // The others may still read `arrived`; the next round begins when all have seen this one.
        for (int n = arrived; n < 2 * hosts - 1; n = arrived) arrived.wait(n);
      } else {
        ++arrived;
        arrived.notify_all();
      }
    }
  });
  close_and_check(r);
}

TEST(tickets_stress, callbacks_race_with_completion) {
  start_alarm();
  runtime r(small(3, 2));
  const time_box box;
  std::uint64_t submitted = 0;
  std::atomic<std::uint64_t> called{0};
  while (!box.is_over()) {
    ticket t[8];
    for (ticket& one : t) {
      one = r.submit(nothing);
      ++submitted;
      ASSERT_EQ(one.then([](void* n) { ++*static_cast<std::atomic<std::uint64_t>*>(n); }, &called),
                status::ok);
    }
    if (submitted % 16 == 0) {
      ASSERT_EQ(wait_all(t, 8).code, status::ok);
    }
  }
  EXPECT_EQ(r.wait_for_completion().code, status::ok);
  EXPECT_EQ(called, submitted);
  close_and_check(r);
}

TEST(tickets_stress, releases_and_cancellations_race_with_completion) {
  start_alarm();
  constexpr int hosts = 3;
  sometimes cancelled("cancelled");
  sometimes ran("ran though cancelled");
  runtime r(small(2, hosts));
  const time_box box;
  std::atomic<std::uint64_t> accepted{0};
  on_threads_together(hosts, [&](int me) {
    random_source random(base_seed() * 10 + static_cast<std::uint64_t>(me));
    while (!box.is_over()) {
      counter n = 0;
      ticket t = r.submit(count_one, ref{&n});
      ticket u = r.submit(count_one, ref{&n});
      accepted += 3;
      r.post(nothing);
      if (random.below(2) == 0) u.cancel();
      t.cancel();
      const status first = t.wait_outcome().code;
      const status second = u.wait_outcome().code;
      ASSERT_EQ(n, (first == status::ok) + (second == status::ok));
      cancelled.note_if(first == status::cancelled || second == status::cancelled);
      ran.note_if(first == status::ok);
      if (random.below(4) == 0) r.submit(nothing).release(), ++accepted;
    }
  });
  r.wait_for_completion();
  EXPECT_EQ(r.count().completed, accepted);
  close_and_check(r);
}

// Host threads are born, use a runtime shortly and die: places and slots are handed on.
TEST(tickets_stress, hosts_come_and_go) {
  start_alarm();
  runtime r(small(2, 3));
  const time_box box;
  counter ran{0};
  int expected = 0;
  while (!box.is_over()) {
    on_threads_together(3, [&](int) {
      for (int i = 0; i < 20; ++i) r.submit(count_one, ref{&ran}).release();
    });
    expected += 60;
  }
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  EXPECT_EQ(ran, expected);
  expect_nothing_leaked(r);
}

// Runtimes opened and closed by several threads at once.
TEST(tickets_stress, lives_of_many_runtimes_side_by_side) {
  start_alarm();
  const time_box box;
  on_threads_together(3, [&](int me) {
    random_source random(base_seed() * 10 + static_cast<std::uint64_t>(me));
    while (!box.is_over()) {
      config c = small(1 + static_cast<int>(random.below(3)), 2);
      c.spin_ns = random.below(2) * 10'000;
      counter n = 0;
      const int count = static_cast<int>(random.below(30));
      {
        runtime r(c);
        for (int i = 0; i < count; ++i) r.submit(count_one, ref{&n}).release();
        if (random.below(2) == 0) close_and_check(r);
      }
      ASSERT_EQ(n, count);
    }
  });
}

}  // namespace
}  // namespace lev::test
