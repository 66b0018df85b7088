// Tests of lev::context: abandoned and reopened contexts leave no trace, opening fails clearly, and
// misuse ends the program where it happens.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include "support/coroutine.hpp"

namespace lev {
namespace {

using test::coroutine;

constexpr std::size_t stack_bytes = test::coroutine_stack_bytes;

// The address space of this process, which a leaked stack, fiber or fake stack makes grow.
std::size_t mapped_kibibytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

constexpr std::size_t growth_kibibytes_max = 16 * 1024;

// Contexts are destroyed before their start, in their middle and after their end. A leaked stack
// or fiber would show as two or more mappings each.
TEST(context_life, unfinished_contexts_leave_nothing_behind) {
  context main;
  const auto body = [](coroutine& me) {
    int on_stack = 1;
    me.data = &on_stack;  // its address escapes, so a fake stack is where it lives
    me.pause();
  };
  const auto use_and_drop = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      coroutine flow;
      ASSERT_TRUE(flow.start(body));
      for (int resumed = 0; resumed < i % 3; ++resumed) flow.resume(main);
    }
  };
  use_and_drop(30);
  const std::size_t before = mapped_kibibytes();
  use_and_drop(600);
  EXPECT_LT(mapped_kibibytes(), before + growth_kibibytes_max);
}

TEST(context_life, reopening_keeps_the_stack_and_forgets_the_past) {
  context main;
  coroutine flow;
  int value = 0;
  const auto body = [](coroutine& me) {
    try {
      throw 1;
    } catch (int) {
    }
    for (;;) {
      ++me.as<int>();
      me.pause();
    }
  };
  std::size_t before = 0;
  for (int i = 1; i <= 300; ++i) {
    ASSERT_TRUE(flow.start(body, &value));
    if (i == 10) before = mapped_kibibytes();
    flow.resume(main);
    EXPECT_EQ(value, i);
  }
  EXPECT_LT(mapped_kibibytes(), before + growth_kibibytes_max);
  ASSERT_TRUE(flow.start(body, &value, 16 * stack_bytes));
  flow.resume(main);
  EXPECT_EQ(value, 301);
}

TEST(context_life, open_fails_clearly_when_memory_cannot_be_had) {
  context main;
  coroutine flow;
  const auto body = [](coroutine&) {};
  EXPECT_FALSE(flow.start(body, nullptr, SIZE_MAX));
  EXPECT_FALSE(flow.start(body, nullptr, SIZE_MAX / 2));
  EXPECT_FALSE(flow.self.is_open());
  EXPECT_TRUE(flow.start(body));
  flow.resume(main);
  EXPECT_TRUE(flow.is_done);
  EXPECT_FALSE(flow.start(body, nullptr, SIZE_MAX / 2));
  EXPECT_FALSE(flow.self.is_open());
}

using context_death_test = testing::Test;

TEST(context_death_test, overflowing_the_stack_hits_the_guard) {
  struct endless {
    [[gnu::noinline]] static int dig(volatile int* above) {
      volatile int here[64];
      here[0] = *above + 1;
      return here[0] == 0 ? 0 : dig(here) + here[0];
    }
  };
  const auto overflow = [] {
    context main;
    coroutine flow;
    volatile int start = 0;
    const auto body = [](coroutine& me) { endless::dig(&me.as<volatile int>()); };
    if (flow.start(body, const_cast<int*>(&start))) flow.resume(main);
  };
  EXPECT_DEATH(overflow(), "");
}

TEST(context_death_test, uncaught_exception_terminates_at_the_throw) {
  const auto escape = [] {
    context main;
    coroutine flow;
    std::set_terminate([] {
      std::fputs("terminate called\n", stderr);
      std::_Exit(1);
    });
    if (flow.start([](coroutine&) { throw 1; })) flow.resume(main);
  };
  EXPECT_DEATH(escape(), "terminate called");
}

TEST(context_death_test, entry_must_not_return) {
  const auto misuse = [] {
    context main;
    context flow;
    if (flow.open(stack_bytes, [](void*) {}, nullptr)) context::switch_to(main, flow);
  };
  EXPECT_DEATH(misuse(), "must not return");
}

TEST(context_death_test, a_running_context_must_not_be_closed) {
  const auto misuse = [] {
    context main;
    coroutine flow;
    if (flow.start([](coroutine& me) { me.self.close(); })) flow.resume(main);
  };
  EXPECT_DEATH(misuse(), "is_running");
}

TEST(context_death_test, switching_to_a_finished_context_faults) {
  const auto misuse = [] {
    context main;
    coroutine flow;
    if (!flow.start([](coroutine&) {})) return;
    flow.resume(main);
    flow.resume(main);
  };
  EXPECT_DEATH(misuse(), "");
}

}  // namespace
}  // namespace lev
