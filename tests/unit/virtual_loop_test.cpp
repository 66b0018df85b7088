// The loop of virtual time: order, hand-computed times, deadlock, no progress, replays.
#include "virtual/loop.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lev::virt {
namespace {

using namespace std::chrono_literals;

std::string stuck_text(loop& l) {
  try {
    l.run();
  } catch (const stuck& s) {
    return s.what();
  }
  return "it ended";
}

TEST(virtual_loop, actors_go_on_in_the_order_of_their_times) {
  loop l;
  std::string said;
  l.start("a", [&] {
    l.wait(10ns);
    said += 'a';
    l.wait(20ns);
    said += 'A';
  });
  l.start("b", [&] {
    l.wait(15ns);
    said += 'b';
    l.wait(5ns);
    said += 'B';
  });
  l.run();
  EXPECT_EQ(said, "abBA");
  EXPECT_EQ(l.end(), virtual_time(30ns));
}

TEST(virtual_loop, at_one_time_who_came_first_goes_first) {
  loop l;
  std::string said;
  for (const char c : {'a', 'b', 'c', 'd'}) {
    l.start(std::string(1, c), [&l, &said, c] {
      l.wait(1us);
      said += c;
    });
  }
  l.run();
  EXPECT_EQ(said, "abcd");
}

TEST(virtual_loop, a_wake_ends_a_block_and_a_deadline_does) {
  loop l;
  bool by_wake = false;
  bool by_time = true;
  actor& sleeper = l.start("sleeper", [&] {
    by_wake = l.block_until(virtual_time(50ns), "a call");
    EXPECT_EQ(l.now(), virtual_time(20ns));
    by_time = l.block_until(virtual_time(60ns), "a call");
    EXPECT_EQ(l.now(), virtual_time(60ns));
    l.wait(100ns);
    EXPECT_EQ(l.now(), virtual_time(160ns));
  });
  l.start("caller", [&] {
    l.wait(20ns);
    l.wake(sleeper);
  });
  l.run();
  EXPECT_TRUE(by_wake);
  EXPECT_FALSE(by_time);
}

TEST(virtual_loop, a_deadlock_names_each_actor_and_what_it_waits_for) {
  loop l;
  l.start("reader", [&] { (void)l.block("a letter"); });
  l.start("writer", [&] {
    l.wait(3us);
    (void)l.block("room");
  });
  l.start("done", [] {});
  const std::string text = stuck_text(l);
  EXPECT_NE(text.find("deadlock"), std::string::npos);
  EXPECT_NE(text.find("after 3000 ns"), std::string::npos);
  EXPECT_NE(text.find("reader waits for a letter"), std::string::npos);
  EXPECT_NE(text.find("writer waits for room"), std::string::npos);
  EXPECT_EQ(text.find("done"), std::string::npos);
}

TEST(virtual_loop, polls_that_nothing_will_answer_are_no_progress) {
  loop_options o;
  o.polls_max = 1000;
  loop l(o);
  l.start("poller", [&] {
    for (;;) l.poll(10ns);
  });
  EXPECT_NE(stuck_text(l).find("no progress"), std::string::npos);
}

TEST(virtual_loop, polls_that_something_will_answer_go_on) {
  loop_options o;
  o.polls_max = 1000;
  loop l(o);
  bool is_there = false;
  l.start("poller", [&] {
    while (!is_there) l.poll(10ns);
  });
  l.start("worker", [&] {
    l.wait(1ms);
    is_there = true;
  });
  EXPECT_EQ(stuck_text(l), "it ended");
}

TEST(virtual_loop, polls_that_take_no_time_are_told_of) {
  loop_options o;
  o.polls_max = 1000;
  loop l(o);
  bool is_there = false;
  l.start("poller", [&] {
    for (int i = 0; i < 5000; ++i) l.poll(i % 500 == 0 ? 1ns : 0ns);  // some time, now and then
    while (!is_there) l.poll(0ns);
  });
  l.start("worker", [&] {
    l.wait(1ms);
    is_there = true;
  });
  const std::string text = stuck_text(l);
  EXPECT_NE(text.find("polls that take no time"), std::string::npos) << text;
  EXPECT_NE(text.find("after 10 ns"), std::string::npos) << text;
}

TEST(virtual_loop, each_run_counts_its_own_polls_that_take_no_time) {
  loop_options o;
  o.polls_max = 1000;
  loop l(o);
  for (int run = 0; run < 3; ++run) {
    l.start("poller", [&] {
      for (int i = 0; i < 600; ++i) l.poll(0ns);
    });
    EXPECT_EQ(stuck_text(l), "it ended") << "run " << run;
  }
}

// The text is the loop's own when the run ends.
TEST(virtual_loop, what_an_actor_is_doing_is_kept) {
  loop l;
  l.start("a", [&] {
    std::string what = "a step with a long name, number 7";
    l.doing(what.c_str());
    what.assign(what.size(), '?');
    (void)l.block("a letter");
  });
  l.start("b", [&] {
    l.doing("a step");
    l.doing(nullptr);
    (void)l.block("a letter");
  });
  const std::string text = stuck_text(l);
  EXPECT_NE(text.find("a waits for a letter, at a step with a long name, number 7"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("b waits for a letter")) << text;
}

TEST(virtual_loop, actors_that_do_not_get_on_are_named_with_what_they_do) {
  loop_options o;
  o.progress_max = 1us;
  loop l(o);
  l.start("busy", [&] {
    l.progress(0us);
    l.doing("the lock");
    for (;;) l.wait(100ns);
  });
  l.start("idle", [&] { (void)l.block("a letter"); });
  const std::string text = stuck_text(l);
  EXPECT_NE(text.find("no progress: nobody has got on for 1 us"), std::string::npos) << text;
  EXPECT_NE(text.find("busy goes on by itself, at the lock, got on last at 0 ns"),
            std::string::npos);
  EXPECT_NE(text.find("idle waits for a letter"), std::string::npos);
}

TEST(virtual_loop, actors_that_say_that_they_get_on_go_on) {
  loop_options o;
  o.progress_max = 1us;
  loop l(o);
  l.start("steady", [&] {
    for (int i = 0; i < 100; ++i) {
      l.wait(900ns);
      l.progress(0us);
    }
    l.progress(1ms);  // one long step
    l.wait(1ms);
    l.progress(virtual_time::max());
    l.wait(1s);
  });
  EXPECT_EQ(stuck_text(l), "it ended");
}

TEST(virtual_loop, a_run_stops_when_its_time_is_over) {
  loop_options o;
  o.time_max = 1us;
  loop l(o);
  l.start("long", [&] {
    for (;;) l.wait(100ns);
  });
  EXPECT_NE(stuck_text(l).find("time of this run is over"), std::string::npos);
}

TEST(virtual_loop, a_run_without_a_limit_ends_with_the_clock) {
  loop_options o;
  o.time_max = virtual_time::max();
  o.progress_max = virtual_time::max();
  loop l(o);
  int steps = 0;
  for (const bool is_alone : {true, false}) {
    l.start("long", [&] {
      while (++steps < 100) {
        l.wait(1h);
        l.progress(1h);
      }
    });
    if (!is_alone) l.start("other", [&] { l.wait(1ns); });
    EXPECT_NE(stuck_text(l).find("time of this run is over"), std::string::npos);
    EXPECT_LT(steps, 10);
  }
}

TEST(virtual_loop, each_run_has_its_own_time) {
  loop_options o;
  o.time_max = 1us;
  loop l(o);
  for (int run = 0; run < 5; ++run) {
    l.start("short", [&] { l.wait(400ns); });
    EXPECT_EQ(stuck_text(l), "it ended");
  }
  l.start("long", [&] {
    for (;;) {
      l.wait(400ns);
      l.progress(0ns);
    }
  });
  const std::string text = stuck_text(l);
  EXPECT_NE(text.find("the time of this run is over after 800 ns"), std::string::npos) << text;
  EXPECT_NE(text.find("got on last at 800 ns"), std::string::npos) << text;
}

TEST(virtual_loop, stacks_of_a_stopped_run_are_unwound) {
  loop l;
  int alive = 0;
  struct counted {
    explicit counted(int& n) : count(n) { ++count; }
    ~counted() { --count; }
    int& count;
  };
  l.start("holder", [&] {
    const counted c(alive);
    (void)l.block("what never comes");
  });
  l.start("thrower", [&] {
    const counted c(alive);
    l.wait(1ns);
    throw std::runtime_error("enough");
  });
  EXPECT_THROW(l.run(), std::runtime_error);
  EXPECT_EQ(alive, 0);
}

TEST(virtual_loop, an_actor_that_catches_everything_is_left) {
  loop l;
  unsigned caught = 0;
  l.start("stubborn", [&] {
    for (;;) {
      try {
        (void)l.block("what never comes");
      } catch (...) {
        ++caught;
      }
    }
  });
  EXPECT_NE(stuck_text(l).find("stubborn"), std::string::npos);
  EXPECT_GT(caught, 0u);
}

std::uint64_t hash_of(std::uint64_t seed, std::string* said) {
  loop_options o;
  o.seed = seed;
  loop l(o);
  for (unsigned i = 0; i < 8; ++i) {
    l.start("actor", [&l, said, i] {
      for (int k = 0; k < 50; ++k) {
        l.wait(std::chrono::nanoseconds(l.current()->random.below(4)));
        if (said != nullptr) *said += static_cast<char>('a' + i);
      }
    });
  }
  l.run();
  return l.hash();
}

TEST(virtual_loop, equal_seeds_give_one_hash_and_other_seeds_others) {
  std::set<std::uint64_t> hashes;
  std::string first;
  const std::uint64_t hash = hash_of(7, &first);
  for (int i = 0; i < 100; ++i) {
    std::string said;
    EXPECT_EQ(hash_of(7, &said), hash);
    EXPECT_EQ(said, first);
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) hashes.insert(hash_of(seed, nullptr));
  EXPECT_EQ(hashes.size(), 20u);
}

// Written down from a run: the same for every compiler and machine, or a result is none.
TEST(virtual_loop, the_hash_is_what_it_was) {
  EXPECT_EQ(hash_of(0, nullptr), 4412712924465989517u);
  EXPECT_EQ(hash_of(7, nullptr), 12014300959613079628u);
}

TEST(virtual_time, cycles_become_time_by_their_clock) {
  constexpr clock_rate spe(3.2e9);
  EXPECT_EQ(spe.time_of(cycles(16)), virtual_time(5ns));
  EXPECT_EQ(spe.cycles_in(virtual_time(385ns)).count, 1232);
  EXPECT_LT(cycles(3) + cycles(4), cycles(2) * 4);
}

}  // namespace
}  // namespace lev::virt
