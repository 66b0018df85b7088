// Stress: dependencies and mutexes of several submitters on the same tasks. Edges are hung on a
// task while it completes; failures reach each dependant once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/stress.hpp"
#include "sync/pause.hpp"

namespace lev::test {
namespace {

constexpr int hosts = 3;

config several_hosts() {
  config c;
  c.workers = 2;
  c.host_threads = hosts + 1;
  c.tickets = 256;
  c.spin_ns = 2'000;
  return c;
}

const auto maybe_fail = define("edges.maybe_fail", [](bool fails) {
  if (fails) throw 1;
});

// In each round all hosts hang successors on the same task, which completes meanwhile.
TEST(edges_stress, successors_of_a_task_that_completes_meanwhile) {
  start_alarm();
  sometimes ran("successor ran");
  sometimes failed("successor failed with its predecessor");
  runtime r(several_hosts());
  const time_box box;
  std::atomic<std::uint64_t> first_id{0};
  std::atomic<bool> fails{false};
  std::atomic<bool> is_over{false};
  ticket first;
  std::barrier together(hosts);
  on_threads_together(hosts, [&](int me) {
    random_source random(base_seed() * 10 + static_cast<std::uint64_t>(me));
    while (!is_over) {
      if (me == 0) {
        fails = random.below(2) == 0;
        first = r.submit(maybe_fail, fails.load());
        first_id = first.id();
      }
      together.arrive_and_wait();
      counter n = 0;
      std::array<ticket, 5> mine;
      ticket before(r.state(), first_id.load());
      for (ticket& t : mine) t = r.submit(after(before), count_one, ref{&n});
      before.forget();
      const bool expected = !fails;
      for (ticket& t : mine) {
        ASSERT_EQ(t.wait_outcome().code, expected ? status::ok : status::dependency_failed);
      }
      ASSERT_EQ(n, expected ? 5 : 0);
      ran.note_if(expected);
      failed.note_if(!expected);
      together.arrive_and_wait();
      if (me == 0) {
        first.wait_outcome();
        is_over = box.is_over();
      }
      together.arrive_and_wait();
    }
  });
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

// One thread submits after a ticket that another one consumes meanwhile, and whose slot gets a task
// with successors of its own at once. The submit is accepted, and then its task runs, or refused.
TEST(edges_stress, after_a_ticket_that_another_thread_consumes) {
  start_alarm();
  sometimes accepted("accepted");
  sometimes refused("refused as stale");
  config c = several_hosts();
  c.workers = 1;
  runtime r(c);
  const time_box box;
  std::atomic<std::uint64_t> mail{0};
  std::atomic<bool> is_over{false};
  const auto consume = [&] {
    while (!is_over) {
      const std::uint64_t id = mail.exchange(0);
      if (id == 0) continue;
      ticket first(r.state(), id);
      ASSERT_EQ(first.wait_outcome().code, status::ok);
      ticket next = r.submit(maybe_fail, false);
      ticket behind = r.submit(after(next), maybe_fail, false);
      ASSERT_EQ(behind.wait_outcome(30'000'000'000).code, status::ok);
      ASSERT_EQ(next.wait_outcome().code, status::ok);
    }
  };
  const auto submit = [&] {
    random_source random(base_seed());
    while (!box.is_over()) {
      ticket first = r.submit(maybe_fail, false);
      mail = first.id();
      for (std::uint32_t i = random.below(200); i > 0; --i) relax_core();
      const options o = after(first);
      first.forget();
      refusal why;
      ticket t = r.try_submit(pack(maybe_fail, false), &o, &why);
      accepted.note_if(static_cast<bool>(t));
      refused.note_if(!t);
      if (t) {
        ASSERT_EQ(t.wait_outcome(30'000'000'000).code, status::ok);
      } else {
        ASSERT_EQ(why.code, status::stale_ticket);
      }
      while (mail != 0) std::this_thread::yield();
    }
  };
  on_threads_together(2, [&](int me) {
    if (me == 0) return consume();
    submit();
    is_over = true;
  });
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

// Each host runs chains; a failure in the middle reaches everything behind it, and only that.
TEST(edges_stress, chains_that_break_in_their_middle) {
  start_alarm();
  runtime r(several_hosts());
  const time_box box;
  on_threads_together(hosts, [&](int me) {
    random_source random(base_seed() * 10 + static_cast<std::uint64_t>(me));
    while (!box.is_over()) {
      constexpr std::size_t length = 30;
      const std::size_t broken = random.below(2 * length);
      std::vector<ticket> chain;
      for (std::size_t i = 0; i < length; ++i) {
        options o;
        if (i > 0) o.after(chain[i - 1]);
        if (i > 1) o.after(chain[i / 2]);
        chain.push_back(r.submit(o, maybe_fail, i == broken));
      }
      for (std::size_t i = length; i-- > 0;) {
        const status expected = i < broken    ? status::ok
                                : i == broken ? status::task_failed
                                              : status::dependency_failed;
        ASSERT_EQ(chain[i].wait_outcome().code, expected)
            << i << " of a chain broken at " << broken;
      }
    }
  });
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

// Plain memory under mutexes: ThreadSanitizer sees it if two tasks are inside at once, or if a
// mutex does not hand over what its last holder wrote.
struct account {
  long balance = 0;
};
struct transfer {
  account* from;
  account* to;
};
const auto move_money = define("edges.move_money", [](transfer t, bool fails) {
  --t.from->balance;
  ++t.to->balance;
  if (fails) throw 1;
});

TEST(edges_stress, accounts_under_mutexes) {
  start_alarm();
  constexpr std::size_t accounts = 6;
  runtime r(several_hosts());
  std::vector<mutex_id> mutexes(accounts);
  for (mutex_id& m : mutexes) ASSERT_EQ(r.make_mutex(&m), status::ok);
  std::array<account, accounts> all;
  const time_box box;
  on_threads_together(hosts, [&](int me) {
    random_source random(base_seed() * 10 + static_cast<std::uint64_t>(me));
    ticket last;
    while (!box.is_over()) {
      const std::uint32_t a = random.below(accounts);
      const std::uint32_t b = (a + 1 + random.below(accounts - 1)) % accounts;
      options o;
      o.locks(mutexes[a], mutexes[b]);
      if (random.below(4) == 0) o.after(last);
      last = r.submit(o, move_money, transfer{&all[a], &all[b]}, random.below(8) == 0);
      if (random.below(16) == 0) last.cancel();
      if (random.below(16) == 0) last.wait_outcome(50'000);
    }
  });
  r.wait_for_completion();
  long sum = 0;
  for (const account& one : all) sum += one.balance;
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(r.close(60'000'000'000), status::ok);
  expect_nothing_leaked(r);
}

}  // namespace
}  // namespace lev::test
