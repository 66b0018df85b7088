// Jack Rabbit's pool on the simulated Cell: results are right, each task and each piece runs once,
// the dicer is that of Figure 4.6, runs repeat.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "jack_rabbit/applications.hpp"

namespace leveret_papers {
namespace {

TEST(jack_rabbit, lu_has_the_values_of_a_serial_one) {
  for (const unsigned size : {8u, 36u, 64u})
    for (const unsigned spes : {1u, 5u})
      for (const bool is_double_buffered : {false, true}) {
        world w;
        const double difference = lu_difference(w, {size, spes, is_double_buffered});
        EXPECT_LT(difference, 1e-4) << size << " columns, " << spes << " SPEs";
      }
}

rabbit_batch batch_of(unsigned tasks, unsigned pieces_each) {
  rabbit_batch b;
  for (unsigned i = 0; i < tasks; ++i) {
    rabbit_task t;
    t.first = i * pieces_each;
    t.count = pieces_each;
    t.work = 1000 * pieces_each;
    b.tasks.push_back(t);
  }
  return b;
}

// How often each piece has run.
std::vector<unsigned> runs_of_pieces(const rabbit_batch& b, unsigned spes, bool is_diced,
                                     rabbit_outcome* out = nullptr) {
  std::vector<unsigned> runs(b.tasks.back().first + b.tasks.back().count, 0);
  rabbit_pool pool;
  pool.spes = spes;
  if (is_diced) pool.pieces.assign(runs.size(), 1000);
  pool.body = [&](const rabbit_task& t, void*, void*) {
    for (std::uint32_t i = 0; i < t.count; ++i) ++runs[t.first + i];
  };
  world w;
  const rabbit_outcome o =
      run_rabbit(w, pool, [&](cell::machine&) { return std::vector<rabbit_batch>{b}; });
  if (out != nullptr) *out = o;
  return runs;
}

TEST(jack_rabbit, each_task_runs_once_also_when_the_queues_are_full) {
  for (const unsigned spes : {1u, 3u, 6u})
    for (const unsigned tasks : {1u, 7u, 3000u})
      EXPECT_EQ(runs_of_pieces(batch_of(tasks, 1), spes, false), std::vector(tasks, 1u)) << spes;
}

TEST(jack_rabbit, each_piece_of_diced_tasks_runs_once) {
  for (const unsigned tasks : {1u, 2u, 40u}) {
    rabbit_outcome o;
    const std::vector<unsigned> runs = runs_of_pieces(batch_of(tasks, 50), 6, true, &o);
    EXPECT_EQ(runs, std::vector(runs.size(), 1u)) << tasks;
    EXPECT_GE(o.diced, 1u);
    EXPECT_GT(o.executed, tasks);
  }
}

TEST(jack_rabbit, a_barrier_parts_batches) {
  std::vector<unsigned> order;
  rabbit_pool pool;
  pool.body = [&](const rabbit_task& t, void*, void*) { order.push_back(t.kind); };
  world w;
  const rabbit_outcome o = run_rabbit(w, pool, [](cell::machine&) {
    std::vector<rabbit_batch> batches(4, batch_of(9, 1));
    batches[2].tasks.clear();
    for (unsigned i = 0; i < batches.size(); ++i)
      for (rabbit_task& t : batches[i].tasks) t.kind = i;
    return batches;
  });
  EXPECT_EQ(o.seconds.size(), 4u);
  EXPECT_EQ(order.size(), 27u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// Section 4.8. Four tasks are there at once, and each of two workers loads two. The second of one
// waits for the end of the first, which is long, while the other worker has nothing more to do.
TEST(jack_rabbit, a_worker_loads_two_tasks_at_a_time) {
  for (const bool is_double_buffered : {false, true}) {
    std::vector<unsigned> begun;
    rabbit_pool pool;
    pool.spes = 2;
    pool.is_double_buffered = is_double_buffered;
    pool.body = [&](const rabbit_task& t, void*, void*) { begun.push_back(t.first); };
    world w;
    run_rabbit(w, pool, [](cell::machine&) {
      rabbit_batch b = batch_of(4, 1);
      b.tasks[0].work = 5000000;
      return std::vector<rabbit_batch>{b};
    });
    EXPECT_EQ(begun, (std::vector{0u, 2u, 3u, 1u})) << is_double_buffered;
  }
}

// Of 100 tasks with two buffers, the second of which is written back, on one SPE.
double seconds_of_transfers(std::uint32_t first_bytes, std::uint32_t second_bytes) {
  rabbit_pool pool;
  pool.spes = 1;
  pool.is_double_buffered = true;
  world w({{"jack_rabbit.task_buffered", 100}, {"jack_rabbit.post_buffered", 100}});
  const rabbit_outcome o = run_rabbit(w, pool, [=](cell::machine& m) {
    const cell::ea_t there = m.memory<char>(16384).ea;
    rabbit_batch b = batch_of(100, 1);
    for (rabbit_task& t : b.tasks) {
      t.in = {rabbit_bytes{there, first_bytes}, rabbit_bytes{there, second_bytes}};
      t.out = {there, 16384};
    }
    return std::vector<rabbit_batch>{b};
  });
  return o.seconds[0];
}

// Section 4.8: transfers are independent, each buffer has a tag. A large buffer that waited for a
// small one would come a latency later, 0.3 us for each task.
TEST(jack_rabbit, a_buffer_does_not_wait_for_another) {
  EXPECT_NEAR(seconds_of_transfers(16, 16384), seconds_of_transfers(16384, 16), 100 * 0.05e-6);
}

// Figure 4.6 asks each task whether it can be diced, so all go through it.
TEST(jack_rabbit, the_dicer_passes_over_tasks_that_cannot_be_diced) {
  world w;
  lu_seconds(w, {256, 2, false});
  EXPECT_TRUE(w.read().contains("jack_rabbit.threshold"));
  world without;
  frames_seconds(without, 40, false);
  EXPECT_FALSE(without.read().contains("jack_rabbit.threshold"));
}

TEST(jack_rabbit, the_dicer_asks_as_in_the_paper) {
  EXPECT_EQ(dicer_asks(0, 16, 6), 0u);
  EXPECT_EQ(dicer_asks(1, 16, 6), 95u);
  EXPECT_EQ(dicer_asks(32, 16, 6), 2u);
  EXPECT_EQ(dicer_asks(33, 16, 6), 0u);
  EXPECT_EQ(dicer_asks(96, 16, 6), 0u);
  EXPECT_EQ(dicer_asks(500, 16, 6), 0u);
}

// A worker that finds nothing comes back to the locks again and again, and gets whole buffers each
// time: another's looks must come between, whatever memory takes.
TEST(jack_rabbit, an_idle_worker_keeps_no_lock_from_another) {
  for (int percent = 50; percent <= 100; percent += 2) {
    world w({{"memory.efficiency", percent * 0.01}});
    EXPECT_GT(lu_seconds(w, {4096, 2, true}), 100) << percent;
  }
  world w({{"memory.efficiency", 0.704}});
  EXPECT_GT(lu_seconds(w, {4096, 2, true}), 100);
}

TEST(jack_rabbit, six_spes_with_double_buffering_repeat) {
  world first;
  world second;
  EXPECT_EQ(lu_seconds(first, {256, 6, true}), lu_seconds(second, {256, 6, true}));
  EXPECT_EQ(first.hash(), second.hash());
}

}  // namespace
}  // namespace leveret_papers
