// Conformance: dice hooks of users, good and bad ones.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class dice_hook_test : public machine_test {
 protected:
  // A runtime in which the tasks of these tests are too big for the local store.
  runtime& open_small() {
    config c = settings();
    c.staging = staging::copy;
    c.local_store_bytes = 4096;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(dice_hook_test);

using words = std::vector<std::uint64_t>;

// The answers of the hooks below; a test may also count calls.
void halve(const descriptor& whole, descriptor* pieces) {
  const argument& x = whole.arguments[0];
  const std::uint64_t half = x.row_bytes / x.unit_bytes / 2 * x.unit_bytes;
  pieces[0] = whole;
  pieces[0].arguments[0].row_bytes = half;
  pieces[0].arguments[0].stride_bytes = static_cast<std::int64_t>(half);
  pieces[1] = whole;
  pieces[1].arguments[0].address += half;
  pieces[1].arguments[0].row_bytes -= half;
  pieces[1].arguments[0].stride_bytes -= static_cast<std::int64_t>(half);
}

void add_one(inout<std::uint64_t> x) {
  for (std::size_t i = 0; i < x.size(); ++i) ++x[i];
}

const auto by_halves =
    define("hook.by_halves", &add_one, [](const descriptor& whole, descriptor* pieces, unsigned) {
      if (whole.arguments[0].row_bytes < 2 * sizeof(std::uint64_t)) return 1u;
      halve(whole, pieces);
      return 2u;
    });

LEV_TEST(dice_hook_test, a_hook_cuts_where_it_likes) {
  runtime& r = open();
  for (const std::size_t n : {1u, 2u, 3u, 100u, 5000u}) {
    words x(n, 1);
    r.submit(by_halves, x).wait();
    ASSERT_EQ(x, words(n, 2));
  }
}

LEV_TEST(dice_hook_test, a_hook_makes_a_big_task_fit) {
  runtime& r = open_small();
  words x(20'000, 1);
  expect_ok(r.submit(by_halves, x));
  EXPECT_EQ(x, words(x.size(), 2));
}

// A hook that says "cannot be split", with each of its answers.
template <unsigned Answer>
const auto refuses = define(("hook.refuses" + std::to_string(Answer)).c_str(), &add_one,
                            [](const descriptor&, descriptor*, unsigned) { return Answer; });

LEV_TEST(dice_hook_test, a_hook_that_refuses_leaves_the_task_whole) {
  runtime& r = open();
  words x(1000, 1);
  expect_ok(r.submit(refuses<0>, x));
  expect_ok(r.submit(refuses<1>, x));
  expect_ok(r.submit(refuses<0xffffffffu>, x));
  EXPECT_EQ(x, words(1000, 4));
  EXPECT_EQ(r.count().diced, 0u);
}

LEV_TEST(dice_hook_test, a_big_task_that_the_hook_refuses_to_cut_fails) {
  runtime& r = open_small();
  words x(2000, 1);
  ticket t = r.submit(refuses<0>, x);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::dice_loop);
  EXPECT_EQ(x, words(2000, 1));
  words small(10, 1);
  expect_ok(r.submit(refuses<0>, small));
  EXPECT_EQ(small, words(10, 2));
}

// Hooks whose pieces are as large as the whole: dicing would never end.
template <unsigned Pieces>
const auto never_shrinks = define(("hook.never_shrinks" + std::to_string(Pieces)).c_str(), &add_one,
                                  [](const descriptor& whole, descriptor* pieces, unsigned max) {
                                    const unsigned n = Pieces < max ? Pieces : max;
                                    for (unsigned i = 0; i < n; ++i) pieces[i] = whole;
                                    return n;
                                  });

LEV_TEST(dice_hook_test, a_hook_that_never_shrinks_is_a_dice_loop) {
  runtime& r = open_small();
  words x(2000, 1);
  for (int i = 0; i < 3; ++i) {
    ticket two = r.submit(never_shrinks<2>, x);
    EXPECT_EQ(wait(two).code, status::dice_loop);
    ticket many = r.submit(never_shrinks<32>, x);
    EXPECT_EQ(wait(many).code, status::dice_loop);
  }
  EXPECT_EQ(x, words(2000, 1));
  expect_ok(r.submit(by_halves, x));
  EXPECT_EQ(x, words(2000, 2));
}

// One piece stays as large as the whole: as bad.
const auto keeps_one =
    define("hook.keeps_one", &add_one, [](const descriptor& whole, descriptor* pieces, unsigned) {
      halve(whole, pieces);
      pieces[0] = whole;
      return 2u;
    });

LEV_TEST(dice_hook_test, a_piece_as_large_as_the_whole_is_a_dice_loop) {
  runtime& r = open_small();
  words x(2000, 1);
  ticket t = r.submit(keeps_one, x);
  EXPECT_EQ(wait(t).code, status::dice_loop);
}

// Where there are no tickets for the pieces, a worker cuts the task for itself. (A worker process
// gets memory beside its store.)
const auto stops_early =
    define("hook.stops_early", &add_one, [](const descriptor& whole, descriptor* pieces, unsigned) {
      if (whole.arguments[0].row_bytes <= 8192) return 0u;
      halve(whole, pieces);
      return 2u;
    });

LEV_TEST(dice_hook_test, a_hook_that_stops_too_early_is_a_dice_loop) {
  for (const std::uint32_t tickets : {2u, 1024u}) {
    if (is_remote() && tickets == 2) continue;
    config c = settings();
    c.staging = staging::copy;
    c.local_store_bytes = 4096;
    c.tickets = tickets;
    runtime& r = open(c);
    words x(4096, 1);
    ticket held = r.submit(nothing);
    ticket t = r.submit(stops_early, x);
    EXPECT_EQ(wait(t).code, status::dice_loop) << tickets;
    EXPECT_EQ(x, words(4096, 1));
  }
}

// Pieces that no submit would accept.
const auto makes_nonsense = define("hook.makes_nonsense", &add_one,
                                   [](const descriptor& whole, descriptor* pieces, unsigned) {
                                     halve(whole, pieces);
                                     pieces[1].argument_count = 200;
                                     pieces[1].procedure = 999;
                                     return 2u;
                                   });

LEV_TEST(dice_hook_test, pieces_that_are_nonsense_are_refused) {
  runtime& r = open_small();
  words x(2000, 1);
  ticket t = r.submit(makes_nonsense, x);
  EXPECT_EQ(wait(t).code, status::dice_loop);
  EXPECT_EQ(x, words(2000, 1));
}

// A slow hook of the other kind: one item off at a time, to the depth limit and beyond.
const auto peels =
    define("hook.peels", &add_one, [](const descriptor& whole, descriptor* pieces, unsigned) {
      const argument& x = whole.arguments[0];
      if (x.row_bytes < 2 * x.unit_bytes) return 0u;
      pieces[0] = whole;
      pieces[0].arguments[0].row_bytes = x.unit_bytes;
      pieces[0].arguments[0].stride_bytes = x.unit_bytes;
      pieces[1] = whole;
      pieces[1].arguments[0].address += x.unit_bytes;
      pieces[1].arguments[0].row_bytes -= x.unit_bytes;
      pieces[1].arguments[0].stride_bytes -= x.unit_bytes;
      return 2u;
    });

LEV_TEST(dice_hook_test, a_hook_that_peels_off_single_items_ends_at_the_depth_limit) {
  runtime& r = open_small();
  words x(3000, 1);
  ticket t = r.submit(peels, x);
  EXPECT_EQ(wait(t).code, status::dice_loop);
  words y(520, 1);  // a few items above what fits
  expect_ok(r.submit(peels, y));
  EXPECT_EQ(y, words(520, 2));
}

const auto submits_halved =
    define("hook.submits_halved", [](ref<runtime> home, inout<std::uint64_t> x, int count) {
      for (int i = 0; i < count; ++i) home.to->submit(by_halves, x).wait();
    });

// The only worker needs no second piece, and so no ticket for one.
LEV_TEST(dice_hook_test, a_task_that_nobody_gains_by_cutting_takes_no_ticket) {
  LEV_SKIP_IF_REMOTE();
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  c.dice_threshold = 1;
  c.tickets = 64;
  c.full = when_full::fail;
  runtime& r = open(c);
  words x(8, 0);
  expect_ok(r.submit(submits_halved, ref{&r}, x, 200));
  EXPECT_EQ(x, words(8, 200));
  std::vector<ticket> all;
  for (int i = 0; i < 64; ++i) all.push_back(r.try_submit(pack(nothing), nullptr, nullptr));
  for (const ticket& t : all) EXPECT_TRUE(t);
  EXPECT_EQ(wait_all(all).code, status::ok);
}

// Its pieces do not fit either.
const auto halved_once =
    define("hook.halved_once", &add_one, [](const descriptor& whole, descriptor* pieces, unsigned) {
      if (whole.arguments[0].row_bytes < 20'000 * sizeof(std::uint64_t)) return 1u;
      halve(whole, pieces);
      return 2u;
    });

using dice_hook_hosts_test = dice_hook_test;
LEV_ON_THREADS(dice_hook_hosts_test);

// The submitter's program goes on, and never asks.
LEV_TEST(dice_hook_hosts_test, pieces_that_do_not_fit_are_told_to_others) {
  runtime& r = open_small();
  words x(20'000, 1);
  ticket t;
  std::thread([&] { t = r.submit(halved_once, x); }).join();
  EXPECT_EQ(wait(t).code, status::dice_loop);
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
}

struct long_submitter {
  runtime* home = nullptr;
  words x = words(20'000, 1);
  ticket t;
  std::atomic<bool> is_submitted{false};
  std::atomic<bool> may_end{false};
};
const auto submits_and_goes_on = define("hook.submits_and_goes_on", [](ref<long_submitter> s) {
  s.to->t = s.to->home->submit(halved_once, s.to->x);
  s.to->is_submitted = true;
  while (!s.to->may_end) std::this_thread::yield();
});

LEV_TEST(dice_hook_hosts_test, pieces_that_do_not_fit_are_told_by_a_task) {
  long_submitter s;
  s.home = &open_small();
  ticket submits = s.home->submit(submits_and_goes_on, ref{&s});
  while (!s.is_submitted) std::this_thread::yield();
  EXPECT_EQ(wait(s.t).code, status::dice_loop);
  s.may_end = true;
  EXPECT_EQ(wait(submits).code, status::ok);
}

// As a filter is (filter_test): nothing goes on before it returns.
struct waits_of_a_hook {
  runtime* r = nullptr;
  status completion{}, end{};
};
waits_of_a_hook told_hook;

const auto waits_in_hook = define(
    "hook.waits", [](range) {},
    [](const descriptor&, descriptor*, unsigned) {
      told_hook.completion = told_hook.r->wait_for_completion().code;
      told_hook.end = told_hook.r->close();
      return 1u;
    });

LEV_TEST(dice_hook_test, a_hook_that_waits_is_told) {
  runtime& r = open();
  const filter in_order = filters::fifo();  // the task comes to where it is cut
  ASSERT_EQ(r.set_filters(&in_order, 1), status::ok);
  told_hook = {&r};
  r.submit(waits_in_hook, range{0, 1000}).wait();
  EXPECT_EQ(told_hook.completion, status::would_deadlock) << status_name(told_hook.completion);
  EXPECT_EQ(told_hook.end, status::would_deadlock) << status_name(told_hook.end);
}

}  // namespace
}  // namespace lev::test
