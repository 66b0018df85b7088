// Leveret's column of the papers' rows: bodies, copies and its own work take what they must, runs
// repeat, a row without a number says why.
#include <leveret_papers/expected.hpp>

#include <gtest/gtest.h>

#include "leveret/by_leveret.hpp"

namespace leveret_papers {
namespace {

constexpr double clock_rate = 3.2e9;  // of cell-ps3

double seconds_of(const tpc_calls& what, double own_work) {
  world w;
  w.take_leveret(own_work);
  return run_tpc(w, what).seconds;
}

TEST(papers_by_leveret, bodies_take_their_time_on_all_workers) {
  tpc_calls c;
  c.tasks = 60;
  c.work = 3'200'000;  // 1 ms
  for (const unsigned spes : {1u, 3u, 6u}) {
    c.spes = spes;
    EXPECT_NEAR(seconds_of(c, 0), 0.060 / spes, 0.0005) << spes;
  }
}

TEST(papers_by_leveret, own_work_is_paid_by_worker_and_host) {
  world w;
  const double lines = w.number("leveret.task_lines") * 800;  // atomic.remote
  const double each = lines + w.number("leveret.instructions") * w.number("leveret.instruction");
  tpc_calls c;
  c.spes = 1;
  c.tasks = 100;
  c.work = 32'000;
  const double free = seconds_of(c, 0);
  // The host's is seen once: the first task waits for its submit.
  const double host = w.number("leveret.submit_lines") * 500 + each - lines;  // ppe.missed_load
  EXPECT_NEAR((seconds_of(c, 1) - free) * clock_rate, 100 * each + host, 200);
  EXPECT_NEAR((seconds_of(c, 2) - free) * clock_rate, 200 * each + 2 * host, 400);
  // Six workers wait for a host that submits more slowly than they work.
  c.spes = 6;
  c.work = 100;
  EXPECT_GT(seconds_of(c, 10) * clock_rate, 10 * 100 * host);
}

TEST(papers_by_leveret, copies_overlap_with_a_second_buffer) {
  tpc_calls c;
  c.spes = 1;
  c.tasks = 200;
  c.work = 16'000;
  c.bytes_in = 16384;
  c.bytes_out = 16384;
  const double bodies = 200 * 16'000 / clock_rate;
  c.queue = 1;
  const double one = seconds_of(c, 0);
  c.queue = 2;
  const double two = seconds_of(c, 0);
  EXPECT_GT(one, 1.4 * bodies);
  EXPECT_LT(two, 1.1 * bodies);
  EXPECT_GT(two, bodies);
}

TEST(papers_by_leveret, each_piece_of_diced_tasks_is_paid_once) {
  rabbit_pool pool;
  pool.pieces.assign(480, 320'000);
  world w;
  w.take_leveret(0);
  const rabbit_outcome o = run_rabbit(w, pool, [](cell::machine& m) {
    const auto row = m.memory<char>(1024);
    rabbit_task all;
    all.count = 480;
    all.out = {row.ea, 1024};
    return std::vector<rabbit_batch>{{{all}}};
  });
  ASSERT_EQ(o.seconds.size(), 1u);
  EXPECT_GE(o.seconds[0], 480 * 1e-4 / 6);
  EXPECT_LT(o.seconds[0], 480 * 1e-4 / 6 * 1.15);
}

TEST(papers_by_leveret, tasks_that_get_their_blocks_give_way_while_they_wait) {
  const auto rate = [](buffering how, unsigned threads) {
    stream s;
    s.how = how;
    s.threads = threads;
    s.bytes = 128;
    s.is_put_back = true;
    world w;
    w.take_leveret(0);
    return bytes_per_second(w, s);
  };
  const double one = rate(buffering::single, 1);
  const double two = rate(buffering::twofold, 1);
  EXPECT_GT(two, 1.5 * one);
  EXPECT_GT(rate(buffering::threads, 15), 1.5 * two);
}

// T8.2 compares what is noted of two runs.
TEST(papers_by_leveret, a_run_leaves_the_hash_of_its_turns) {
  const auto hash_of = [](unsigned tasks) {
    world w;
    w.take_leveret(1);
    tpc_calls c;
    c.tasks = tasks;
    run_tpc(w, c);
    return w.hash();
  };
  EXPECT_NE(hash_of(20), 0u);
  EXPECT_EQ(hash_of(20), hash_of(20));
  EXPECT_NE(hash_of(20), hash_of(21));
}

TEST(papers_by_leveret, answers_repeat_and_the_others_say_why) {
  const leveret_answer first = answer_by_leveret("T2.2 10k 6");
  const leveret_answer again = answer_by_leveret("T2.2 10k 6");
  EXPECT_EQ(first.why_not, "");
  EXPECT_EQ(first.value, again.value);
  EXPECT_EQ(first.dear, again.dear);
  for (const char* unpriced : {"T1.1 1k plain 1", "T4.5", "T5.2", "T5.10", "T5.20", "T8.4"})
    EXPECT_TRUE(answer_by_leveret(unpriced).is_unpriced) << unpriced;
  for (const char* other : {"T2.4 10k", "T5.15 4M", "T6.10", "T7.6"}) {
    EXPECT_FALSE(answer_by_leveret(other).is_unpriced) << other;
    EXPECT_FALSE(answer_by_leveret(other).why_not.empty()) << other;
  }
  EXPECT_THROW(answer_by_leveret("T5.22"), cell::error);
}

}  // namespace
}  // namespace leveret_papers
