// Tests by one thread of the bookkeeping that tasks go through: free slots, lists of dependants,
// mutexes, the pass lock, the parker, and the ring of trace events.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "flow/dependants.hpp"
#include "flow/mutex_table.hpp"
#include "flow/slot_pool.hpp"
#include "sync/parker.hpp"
#include "sync/pass_lock.hpp"
#include "trace/events.hpp"

namespace lev {
namespace {

// A pool of slots and the memory it works in.
struct pool_fixture {
  static constexpr std::uint32_t spare = 8;
  static constexpr std::uint32_t last = 4;
  static constexpr std::uint32_t own = 2;
  static constexpr std::uint32_t kept = spare + last;
  explicit pool_fixture(std::uint32_t count)
      : slots(new slot[count + kept + own]),
        rests(new slot_rest[count + kept + own]),
        extras(new slot_extra[count + kept + own]),
        cells(new index_ring<>::cell[count + kept]) {
    index_ring<>::cell* const first = cells.get();
    pool.open({slots.get(), rests.get(), extras.get(), first, first + count, first + count + spare},
              {count, spare, last, own});
  }
  std::unique_ptr<slot[]> slots;
  std::unique_ptr<slot_rest[]> rests;
  std::unique_ptr<slot_extra[]> extras;
  std::unique_ptr<index_ring<>::cell[]> cells;
  slot_pool pool;
};

class slot_pool_test : public testing::TestWithParam<std::uint32_t> {};

TEST_P(slot_pool_test, hands_out_every_slot_once_and_takes_all_back) {
  pool_fixture f(64);
  index_cache cache;
  cache.limit = GetParam();
  for (int round = 0; round < 5; ++round) {
    std::set<std::uint32_t> taken;
    std::uint32_t s = 0;
    while ((s = f.pool.try_take(cache)) != no_slot) EXPECT_TRUE(taken.insert(s).second);
    EXPECT_EQ(taken.size(), 64u);
    EXPECT_TRUE(f.pool.looks_exhausted());
    for (const std::uint32_t t : taken) f.pool.give(cache, t);
    EXPECT_LE(cache.count(), cache.limit);
    EXPECT_EQ(f.pool.free_count() + cache.count(), 64u + f.kept);
  }
  f.pool.flush(cache);
  EXPECT_EQ(cache.count(), 0u);
  EXPECT_EQ(f.pool.free_count(), 64u + f.kept);
}

TEST_P(slot_pool_test, spare_and_last_slots_stay_apart) {
  pool_fixture f(64);
  index_cache cache;
  cache.limit = GetParam();
  for (int round = 0; round < 5; ++round) {
    std::set<std::uint32_t> spare;
    std::uint32_t s = 0;
    while ((s = f.pool.try_take_spare()) != no_slot) EXPECT_TRUE(spare.insert(s).second);
    EXPECT_EQ(spare.size(), f.spare);
    EXPECT_GE(*spare.begin(), 64u);
    EXPECT_LT(*spare.rbegin(), 64u + f.spare);
    while ((s = f.pool.try_take_last(false)) != no_slot) EXPECT_TRUE(spare.insert(s).second);
    EXPECT_EQ(spare.size(), f.kept);
    EXPECT_LT(*spare.rbegin(), f.pool.count());
    std::uint32_t taken = 0;
    while ((s = f.pool.try_take(cache)) != no_slot) {
      EXPECT_LT(s, 64u);
      f.pool.give(cache, s);
      if (++taken == 64) break;
    }
    EXPECT_TRUE(!f.pool.looks_exhausted(true));
    for (const std::uint32_t t : spare) EXPECT_TRUE(f.pool.give(cache, t));
  }
  EXPECT_EQ(f.pool.free_count() + cache.count(), 64u + f.kept);
}

TEST_P(slot_pool_test, an_own_slot_is_one_hosts_and_held_by_one_task) {
  pool_fixture f(64);
  index_cache cache;
  cache.limit = GetParam();
  std::set<std::uint32_t> own;
  for (std::uint32_t host = 0; host < f.own; ++host) {
    const std::uint32_t s = f.pool.try_take_own(host);
    EXPECT_TRUE(own.insert(s).second);
    EXPECT_EQ(f.pool.try_take_own(host), no_slot);
    EXPECT_FALSE(f.pool.give(cache, s));  // nobody waits for it
    EXPECT_EQ(f.pool.try_take_own(host), s);
  }
  EXPECT_EQ(*own.begin(), f.pool.listed_count());
  EXPECT_EQ(*own.rbegin() + 1, f.pool.count());
  EXPECT_EQ(cache.count(), 0u);
  EXPECT_EQ(f.pool.free_count(), 64u + f.kept);
}

INSTANTIATE_TEST_SUITE_P(cache_limits, slot_pool_test, testing::Values(0u, 1u, 2u, 5u, 32u));

struct edges_fixture {
  explicit edges_fixture(std::uint32_t count, std::uint32_t kept = 0)
      : nodes(new dependant[count]), cells(new index_ring<>::cell[count]) {
    edges.open(nodes.get(), cells.get(), count);
    own.limit = kept;
  }
  bool add(slot& predecessor, slot_extra& extra, std::uint32_t generation, std::uint32_t to) {
    std::uint32_t node = 0;
    EXPECT_EQ(edges.reserve(own, &node, 1), 1u);
    if (edges.add(predecessor, extra, generation, node, to)) return true;
    edges.give(own, node);
    return false;
  }
  std::vector<std::uint32_t> take_all(slot_extra& extra) {
    std::vector<std::uint32_t> slots;
    for (std::uint32_t n = edges.take(extra); n != 0;) {
      const dependant d = edges.node(n);
      edges.give(own, n - 1);
      slots.push_back(d.slot);
      n = d.next;
    }
    return slots;
  }
  std::unique_ptr<dependant[]> nodes;
  std::unique_ptr<index_ring<>::cell[]> cells;
  dependants edges;
  index_cache own;
};

TEST(dependants, a_completer_takes_all_edges_once) {
  edges_fixture f(4);
  slot predecessor;
  slot_extra extra;
  predecessor.state.open();
  for (std::uint32_t s = 10; s < 14; ++s) EXPECT_TRUE(f.add(predecessor, extra, 0, s));
  std::uint32_t none = 0;
  EXPECT_EQ(f.edges.reserve(f.own, &none, 1), 0u);
  EXPECT_FALSE(f.edges.has(f.own, 1));
  EXPECT_EQ(f.take_all(extra), (std::vector<std::uint32_t>{13, 12, 11, 10}));
  EXPECT_TRUE(f.edges.has(f.own, 4));
  EXPECT_TRUE(f.take_all(extra).empty());
  EXPECT_TRUE(f.add(predecessor, extra, 0, 99));
}

TEST(dependants, an_edge_to_a_completed_task_is_late_and_leaves_nothing) {
  edges_fixture f(4);
  slot predecessor;
  slot_extra extra;
  predecessor.state.open();
  std::uint64_t seen = predecessor.state.word();
  ASSERT_TRUE(predecessor.state.try_finish(seen, status::ok));
  EXPECT_FALSE(f.add(predecessor, extra, 0, 5));
  EXPECT_TRUE(f.take_all(extra).empty());
  EXPECT_TRUE(f.edges.has(f.own, 4));
}

// A thread that comes too late for a task finds the slot's next one, or the one before.
TEST(dependants, an_edge_to_another_generation_harms_no_list) {
  edges_fixture f(4);
  slot predecessor;
  slot_extra extra;
  predecessor.state.open();
  predecessor.state.retire();
  predecessor.state.open();
  ASSERT_TRUE(f.add(predecessor, extra, 1, 6));
  EXPECT_FALSE(f.add(predecessor, extra, 0, 5));
  EXPECT_FALSE(f.add(predecessor, extra, 2, 7));
  EXPECT_EQ(f.take_all(extra), std::vector<std::uint32_t>{6});
}

TEST(dependants, a_reservation_is_all_that_there_is_at_most) {
  edges_fixture f(4);
  std::uint32_t nodes[6];
  EXPECT_EQ(f.edges.reserve(f.own, nodes, 6), 4u);
  EXPECT_EQ(std::set<std::uint32_t>(nodes, nodes + 4).size(), 4u);
  for (int i = 0; i < 4; ++i) f.edges.give(f.own, nodes[i]);
  EXPECT_TRUE(f.edges.has(f.own, 4));
  EXPECT_FALSE(f.edges.has(f.own, 5));
}

// Those that a participant keeps are there for its own submits, and not for others until it gives
// them back.
TEST(dependants, a_participant_keeps_a_few_edges_for_itself) {
  edges_fixture f(16, 4);
  index_cache other;
  std::uint32_t nodes[16];
  for (const std::uint32_t count : {1u, 3u, 7u, 16u}) {
    ASSERT_EQ(f.edges.reserve(f.own, nodes, count), count);
    EXPECT_EQ(std::set<std::uint32_t>(nodes, nodes + count).size(), count);
    EXPECT_EQ(f.edges.free_count() + f.own.count(), 16 - count);
    bool has_told = false;
    for (std::uint32_t i = 0; i < count; ++i) has_told |= f.edges.give(f.own, nodes[i]);
    EXPECT_EQ(has_told, count > 4);
    EXPECT_LE(f.own.count(), 4u);
    EXPECT_TRUE(f.edges.has(f.own, 16));
    EXPECT_FALSE(f.edges.has(other, 16));
  }
  EXPECT_TRUE(f.edges.flush(f.own));
  EXPECT_FALSE(f.edges.flush(f.own));
  EXPECT_TRUE(f.edges.has(other, 16));
}

TEST(mutex_table, passes_a_mutex_on_in_order_of_arrival) {
  pool_fixture f(8);
  mutex_table table;
  mutex_id id = 0;
  ASSERT_TRUE(table.make(&id));
  for (std::uint32_t t = 0; t < 4; ++t) {
    f.pool.extra(t).locks[0] = id;
    f.pool.extra(t).lock_count = 1;
    EXPECT_EQ(table.acquire(f.pool, t), t == 0);
  }
  for (std::uint32_t t = 1; t < 4; ++t) {
    EXPECT_EQ(table.release(f.pool, id), t);
    EXPECT_TRUE(table.acquire(f.pool, t));
  }
  EXPECT_EQ(table.release(f.pool, id), no_slot);
}

TEST(mutex_table, a_task_waits_for_each_of_its_mutexes_in_turn) {
  pool_fixture f(4);
  mutex_table table;
  mutex_id a = 0;
  mutex_id b = 0;
  ASSERT_TRUE(table.make(&a));
  ASSERT_TRUE(table.make(&b));
  const auto wants = [&](std::uint32_t t, std::vector<mutex_id> ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) f.pool.extra(t).locks[i] = ids[i];
    f.pool.extra(t).lock_count = static_cast<std::uint8_t>(ids.size());
    return table.acquire(f.pool, t);
  };
  EXPECT_TRUE(wants(0, {a}));
  EXPECT_TRUE(wants(1, {b}));
  EXPECT_FALSE(wants(2, {a, b}));
  EXPECT_EQ(table.release(f.pool, a), 2u);
  EXPECT_FALSE(table.acquire(f.pool, 2));
  EXPECT_EQ(table.release(f.pool, b), 2u);
  EXPECT_TRUE(table.acquire(f.pool, 2));
  EXPECT_EQ(f.pool.extra(2).locks_held, 2);
}

TEST(mutex_table, there_are_256_mutexes) {
  mutex_table table;
  mutex_id id = 0;
  for (unsigned i = 0; i < mutex_count_max; ++i) {
    ASSERT_TRUE(table.make(&id));
    EXPECT_EQ(id, i);
    EXPECT_TRUE(table.exists(id));
  }
  EXPECT_FALSE(table.make(&id));
  EXPECT_FALSE(table.make(&id));
  EXPECT_FALSE(table.exists(mutex_count_max));
}

TEST(pass_lock, whoever_asks_meanwhile_gets_another_round) {
  pass_lock<> lock;
  int rounds = 0;
  lock.run([&] {
    if (++rounds < 3) lock.run([] { ADD_FAILURE() << "somebody is at it already"; });
  });
  EXPECT_EQ(rounds, 3);
  lock.run([&] { ++rounds; });
  EXPECT_EQ(rounds, 4);
}

TEST(pass_lock, holding_it_for_something_else_keeps_requests) {
  pass_lock<> lock;
  int rounds = 0;
  ASSERT_TRUE(lock.try_hold());
  EXPECT_FALSE(lock.try_hold());
  lock.run([&] { ++rounds; });
  EXPECT_EQ(rounds, 0);
  EXPECT_FALSE(lock.release_hold());
  EXPECT_TRUE(lock.release_hold());
  EXPECT_TRUE(lock.try_hold());
  EXPECT_TRUE(lock.release_hold());
}

// Sleeps are counted; each ends at once, as if for no reason.
struct counting_sleeper {
  void wait_word(atomic<std::uint32_t>&, std::uint32_t, std::uint64_t) noexcept { ++sleeps; }
  void wake_word(atomic<std::uint32_t>&) noexcept { ++wakes; }
  int sleeps = 0;
  int wakes = 0;
};

TEST(parker, a_token_saves_one_sleep) {
  parker<> p;
  counting_sleeper sleeper;
  p.unpark(sleeper);
  p.unpark(sleeper);
  EXPECT_EQ(sleeper.wakes, 0);
  p.park(sleeper, ~std::uint64_t{0});
  EXPECT_EQ(sleeper.sleeps, 0);
  p.park(sleeper, ~std::uint64_t{0});
  EXPECT_EQ(sleeper.sleeps, 1);
}

TEST(event_ring, keeps_the_last_events_and_hashes_all) {
  kept_event kept[4];
  event_ring ring;
  EXPECT_FALSE(ring.is_open());
  ring.open(kept, 4);
  std::set<std::uint64_t> hashes;
  for (std::uint32_t i = 0; i < 10; ++i) {
    ring.record({i, i + 1, i, 1, step::execute});
    EXPECT_TRUE(hashes.insert(ring.hash()).second);
  }
  EXPECT_EQ(ring.written(), 10u);
  ASSERT_EQ(ring.kept(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(ring.at(i).task, 6 + i);
}

TEST(event_ring, may_be_read_while_it_is_written) {
  kept_event kept[2];
  event_ring ring;
  ring.open(kept, 2);
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over.load(std::memory_order_relaxed)) {
      for (std::uint32_t i = 0; i < ring.kept(); ++i) {
        const event e = ring.at(i);
        EXPECT_LE(e.begin_ns, e.end_ns);
        EXPECT_EQ(e.procedure, 7);
        EXPECT_EQ(e.context, 3);
      }
    }
  });
  for (std::uint32_t i = 1; i < 20'000; ++i) {
    ring.record({i, i + 1, i, 7, i % 2 == 0 ? step::execute : step::park, 3});
  }
  is_over.store(true, std::memory_order_relaxed);
  reader.join();
}

}  // namespace
}  // namespace lev
