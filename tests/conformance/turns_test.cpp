// Conformance: a participant runs the tasks of its own inbox one after the other, and what has its
// turn between two of them: its own wait that is over, its deadline, a task that polls in another
// context, and the tasks behind those that are cut.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class turns_test : public machine_test {
 protected:
  static config with_workers(int count, wait_policy host) {
    config c = settings();
    c.workers = count;
    c.wait = host;
    return c;
  }
};
LEV_ON_THREADS(turns_test);

const auto counts = define("turns.counts", [](ref<std::atomic<int>> n) { n.to->fetch_add(1); });
const auto posts_some = define("turns.posts_some", [](ref<runtime> home, ref<std::atomic<int>> n) {
  for (int i = 0; i < 8; ++i) home.to->post(counts, n);
});

// The only worker is busy, so the host runs what it waits for, and its inbox has what that posts.
LEV_TEST(turns_test, a_host_goes_back_when_what_it_waits_for_is_there) {
  runtime& r = open(with_workers(1, wait_policy::help));
  std::atomic<int> ran{0};
  {
    const gate busy(r, 1);
    r.submit(posts_some, ref{&r}, ref{&ran}).wait();  // a wait with a limit runs one at a time
    EXPECT_EQ(ran, 0);
  }
  expect_all_done();
  EXPECT_EQ(ran, 8);
}

const auto posts_some_and_takes_long =
    define("turns.posts_some_and_takes_long", [](ref<runtime> home, ref<std::atomic<int>> n) {
      for (int i = 0; i < 8; ++i) home.to->post(counts, n);
      spend(std::chrono::milliseconds(2));
    });

LEV_TEST(turns_test, a_host_goes_back_when_its_time_is_over) {
  runtime& r = open(with_workers(1, wait_policy::help));
  std::atomic<int> ran{0};
  {
    const gate busy(r, 1);
    r.post(posts_some_and_takes_long, ref{&r}, ref{&ran});
    EXPECT_EQ(r.wait_for_completion(1'000'000).code, status::timed_out);
    EXPECT_EQ(ran, 0);
  }
  expect_all_done();
  EXPECT_EQ(ran, 8);
}

// `waits` waits until `polls_aside` is under way in another context of the same worker, then posts
// tasks.
struct two_contexts {
  static constexpr int posted = 8;
  runtime* home = nullptr;
  std::uint64_t awaited = 0;
  int turns = 0;  // of the one that polls; one thread has all of this
  int ran = 0;
  int last_turn = 0;
  int in_one_turn = 0;
};
const auto polls_aside = define("turns.polls_aside", [](ref<two_contexts> t) {
  while (t.to->ran != two_contexts::posted) {
    ++t.to->turns;
    this_task().yield();
  }
});
const auto is_posted = define("turns.is_posted", [](ref<two_contexts> t) {
  if (std::exchange(t.to->last_turn, t.to->turns) == t.to->turns) ++t.to->in_one_turn;
  ++t.to->ran;
});
const auto waits = define("turns.waits", [](ref<two_contexts> t) {
  ticket a(t.to->home->state(), t.to->awaited);
  a.wait();
  for (int i = 0; i < two_contexts::posted; ++i) t.to->home->post(is_posted, t);
});

LEV_TEST(turns_test, a_task_that_polls_has_its_turn_between_two_of_the_own_inbox) {
  config c = with_workers(1, wait_policy::park);
  c.contexts = 2;
  runtime& r = open(c);
  two_contexts t;
  t.home = &r;
  {
    const gate busy(r, 1);
    r.post(waits, ref{&t});
    r.post(polls_aside, ref{&t});
    ticket a = r.submit(nothing);
    t.awaited = a.id();
    a.forget();
  }
  expect_all_done();
  EXPECT_EQ(t.ran, two_contexts::posted);
  EXPECT_EQ(t.in_one_turn, 0);
}

// The first piece of a loop waits until another task is queued.
struct loop_and_another {
  std::atomic<bool> has_begun{false};
  std::atomic<bool> may_go_on{false};
  int pieces = 0;  // that the one free worker has run
  int before = 0;  // the other task
  std::atomic<std::uint64_t> items{0};
};
const auto another =
    define("turns.another", [](ref<loop_and_another> l) { l.to->before = l.to->pieces; });
const auto piece_of_loop = define("turns.piece_of_loop", [](ref<loop_and_another> l, range r) {
  if (!l.to->has_begun.exchange(true)) {
    while (!l.to->may_go_on) std::this_thread::yield();
  }
  ++l.to->pieces;
  l.to->items += r.end - r.begin;
});

LEV_TEST(turns_test, another_task_does_not_wait_for_all_pieces_of_a_loop) {
  if (copies()) GTEST_SKIP() << "the pieces are queued before the other task";
  constexpr std::uint64_t items = 1'000;
  runtime& r = open(with_workers(2, wait_policy::park));
  loop_and_another l;
  gate busy(r, 1);  // takers cut loops where there are several, but one runs this loop
  r.post(options().grain(1), piece_of_loop, ref{&l}, range{0, items});  // a letter is not cut
  while (!l.has_begun) std::this_thread::yield();
  r.post(another, ref{&l});
  l.may_go_on = true;
  while (l.items != items) std::this_thread::yield();
  busy.open();
  expect_all_done();
  EXPECT_GT(l.pieces, 32);
  EXPECT_LE(l.before, 8);
}

}  // namespace
}  // namespace lev::test
