// Processors of virtual time: quantum, yield, yield to one, sleep, pinning; each by its times.
#include "virtual/processor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "virtual/homes.hpp"
#include "virtual/link.hpp"

namespace lev::virt {
namespace {

using namespace std::chrono_literals;

struct world {
  explicit world(unsigned contexts) : cpu(time, settings(contexts)) {}

  static processor_settings settings(unsigned contexts) { return {contexts, 100us, 5us, 6us, 1us}; }
  // A thread whose body gets its handle.
  template <class Body>
  void thread(const std::string& name, int pinned, Body body) {
    time.start(name, [this, pinned, body] {
      processor::thread& t = cpu.enter(pinned);
      body(t);
      cpu.leave(t);
    });
  }
  std::int64_t us() const { return time.now() / 1us; }

  loop time;
  processor cpu;
};

TEST(virtual_processor, threads_that_fit_run_side_by_side) {
  world w(2);
  std::vector<std::int64_t> ends;
  for (int i = 0; i < 2; ++i)
    w.thread("t", processor::anywhere, [&](processor::thread& t) {
      w.cpu.run(t, 250us);
      ends.push_back(w.us());
    });
  w.time.run();
  EXPECT_EQ(ends, (std::vector<std::int64_t>{250, 250}));
}

TEST(virtual_processor, a_quantum_ends_when_another_thread_waits) {
  world w(1);
  std::vector<std::int64_t> ends;
  for (int i = 0; i < 2; ++i)
    w.thread("t", processor::anywhere, [&](processor::thread& t) {
      w.cpu.run(t, 150us);
      ends.push_back(w.us());
    });
  w.time.run();
  // 100 of the first, switch, 100 of the second, switch, 50, switch, 50.
  EXPECT_EQ(ends, (std::vector<std::int64_t>{260, 315}));
}

TEST(virtual_processor, yield_gives_the_context_to_the_next_for_a_switch) {
  world w(1);
  std::string order;
  for (const char c : {'a', 'b', 'c'})
    w.thread("t", processor::anywhere, [&w, &order, c](processor::thread& t) {
      for (int i = 0; i < 2; ++i) {
        w.cpu.run(t, 10us);
        order += c;
        w.cpu.yield(t);
      }
    });
  w.time.run();
  EXPECT_EQ(order, "abcabc");
  // Six times 10; a switch for each yield, and for the ends of the first two.
  EXPECT_EQ(w.us(), 60 + 6 * 5 + 2 * 5);
}

TEST(virtual_processor, yield_to_names_who_goes_on) {
  world w(1);
  std::string order;
  processor::thread* last = nullptr;
  w.thread("a", processor::anywhere, [&](processor::thread& t) {
    w.cpu.run(t, 1us);  // the others come to be
    w.cpu.yield(t);
    order += 'a';
    EXPECT_TRUE(w.cpu.yield_to(t, *last));
    order += 'A';
  });
  for (const char c : {'b', 'c'})
    w.thread("t", processor::anywhere, [&w, &order, &last, c](processor::thread& t) {
      last = &t;
      w.cpu.yield(t);
      order += c;
    });
  w.time.run();
  EXPECT_EQ(order, "acbA");
}

TEST(virtual_processor, a_pinned_thread_waits_for_its_context) {
  world w(2);
  std::vector<std::string> said;
  w.thread("a", 0, [&](processor::thread& t) {
    w.cpu.run(t, 30us);
    EXPECT_EQ(t.context(), 0);
  });
  w.thread("b", 0, [&](processor::thread& t) {
    EXPECT_EQ(t.context(), 0);
    EXPECT_EQ(w.us(), 35);
    w.cpu.run(t, 10us);
    EXPECT_EQ(t.context(), 0);
  });
  w.time.run();
  EXPECT_EQ(w.us(), 45);
}

TEST(virtual_processor, sleep_frees_the_context_until_a_wake) {
  world w(1);
  processor::thread* sleeper = nullptr;
  std::int64_t woken = 0;
  w.thread("sleeper", processor::anywhere, [&](processor::thread& t) {
    sleeper = &t;
    w.cpu.sleep(t, "a call");
    woken = w.us();
    w.cpu.sleep(t, "a call that came before");
  });
  w.thread("caller", processor::anywhere, [&](processor::thread& t) {
    w.cpu.run(t, 20us);
    w.cpu.wake(*sleeper);
    w.cpu.wake(*sleeper);
    w.cpu.run(t, 20us);
  });
  w.time.run();
  EXPECT_EQ(woken, 40 + 5);
}

TEST(virtual_processor, who_spins_keeps_its_context_for_a_quantum) {
  world w(1);
  processor::thread* spinner = nullptr;
  std::int64_t seen = 0;
  w.thread("spinner", processor::anywhere, [&](processor::thread& t) {
    spinner = &t;
    w.cpu.spin(t, "a word");
    seen = w.us();
  });
  w.thread("other", processor::anywhere, [&](processor::thread& t) {
    EXPECT_EQ(w.us(), 105);
    w.cpu.run(t, 10us);
    w.cpu.poke(*spinner);
    w.cpu.run(t, 20us);
  });
  w.time.run();
  EXPECT_EQ(seen, 105 + 30 + 5);
}

// It looks at the queue when another one comes to it, and goes on to spin until the word changes.
TEST(virtual_processor, who_spins_alone_sees_a_change_behind_a_newcomer) {
  world w(1);
  processor::thread* sleeper = nullptr;
  processor::thread* spinner = nullptr;
  std::int64_t seen = 0;
  w.thread("sleeper", processor::anywhere, [&](processor::thread& t) {
    sleeper = &t;
    w.cpu.sleep(t, "a call");
  });
  w.thread("spinner", processor::anywhere, [&](processor::thread& t) {
    spinner = &t;
    w.cpu.spin(t, "a word");
    seen = w.us();
  });
  w.time.start("others", [&] {
    w.time.wait(20us);
    w.cpu.wake(*sleeper);
    w.time.wait(20us);
    w.cpu.poke(*spinner);
  });
  w.time.run();
  EXPECT_EQ(seen, 40);
}

TEST(virtual_link, a_piece_goes_between_two_of_what_is_under_way) {
  link l(1024e6);  // 128 bytes take 125 ns
  EXPECT_EQ(l.pass(0us, 1024), 1us);
  EXPECT_EQ(l.pass_line(100ns, 128), 350ns);  // behind one piece of the 1024 bytes
  EXPECT_EQ(l.pass_line(100ns, 128), 600ns);  // behind the piece before, and another one
  EXPECT_EQ(l.pass(0us, 1024), 2250ns);       // nothing of the link's time is lost
}

TEST(virtual_link, pieces_alone_go_one_after_the_other) {
  link l(1024e6);
  for (int i = 1; i <= 8; ++i) EXPECT_EQ(l.pass_line(0us, 128), 125ns * i);
  EXPECT_EQ(l.pass(0us, 1024), 2us);
  EXPECT_EQ(l.pass_line(1950ns, 128), 2125ns);  // what is left is less than a piece
}

TEST(virtual_link, what_cannot_end_in_time_ends_behind_the_clock) {
  link slow(1e3);
  virtual_time last{};
  for (int i = 0; i < 10; ++i) {
    const virtual_time end = slow.pass(virtual_time(0), 4 << 20);
    EXPECT_GE(end, last);
    last = end;
  }
  EXPECT_GT(last, clock_end);
  EXPECT_GE(slow.pass_line(virtual_time(0), 128), virtual_time(0));
  EXPECT_GT(slow.pass(virtual_time(0), 128), clock_end);
}

TEST(virtual_link, bytes_go_one_after_the_other) {
  link l(1024e6);  // a KiB takes a microsecond
  EXPECT_EQ(l.pass(virtual_time(0us), 1024), virtual_time(1us));
  EXPECT_EQ(l.pass(virtual_time(0us), 2048), virtual_time(3us));
  EXPECT_EQ(l.pass(virtual_time(10us), 512), virtual_time(10us + 500ns));
}

TEST(virtual_homes, a_write_leaves_one_holder_and_a_write_through_two) {
  homes h(128);
  h.read(130, 0);
  h.read(250, 1);
  EXPECT_TRUE(h.holds(128, 0));
  EXPECT_TRUE(h.holds(128, 1));
  h.wrote(128, 2);
  EXPECT_FALSE(h.holds(128, 0));
  h.read(128, 0);
  h.wrote_through(128, 3, 0);
  EXPECT_TRUE(h.holds(128, 0));
  EXPECT_FALSE(h.holds(128, 2));
  h.drop(64, 128);
  EXPECT_FALSE(h.is_cached(128));
}

}  // namespace
}  // namespace lev::virt
