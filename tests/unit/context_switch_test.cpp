// Tests of lev::context: switches among many contexts, C++ exceptions across them, other threads.
// What a context leaves behind and what misuse does: context_life_test.cpp. What a switch does to
// the CPU's registers: context_registers_test.cpp.
#include <gtest/gtest.h>
#include <unwind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/coroutine.hpp"

namespace lev {
namespace {

using test::coroutine;

TEST(context_switch, ping_pong_alternates_and_finishes) {
  context main;
  coroutine other;
  std::vector<int> seen;
  const auto body = [](coroutine& me) {
    for (int i = 0; i < 1000; ++i) {
      me.as<std::vector<int>>().push_back(2 * i + 1);
      me.pause();
    }
  };
  ASSERT_TRUE(other.start(body, &seen));
  for (int i = 0; i < 1000; ++i) {
    seen.push_back(2 * i);
    other.resume(main);
  }
  ASSERT_FALSE(other.is_done);
  other.resume(main);
  EXPECT_TRUE(other.is_done);
  ASSERT_EQ(seen.size(), 2000u);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

// Contexts hop directly from one to the next; only the last one goes back to the main context.
TEST(context_switch, symmetric_ring_visits_everyone) {
  struct ring {
    context main;
    std::array<coroutine, 16> members;
    int visits = 0;
    std::size_t next_of(const coroutine& me) const {
      return static_cast<std::size_t>(&me - members.data()) + 1;
    }
  } all;
  const auto body = [](coroutine& me) {
    auto& r = me.as<ring>();
    for (;;) {
      ++r.visits;
      const std::size_t next = r.next_of(me);
      context::switch_to(me.self, next < 16 ? r.members[next].self : r.main);
    }
  };
  for (coroutine& member : all.members) ASSERT_TRUE(member.start(body, &all));
  for (int lap = 0; lap < 100; ++lap) context::switch_to(all.main, all.members[0].self);
  EXPECT_EQ(all.visits, 1600);
}

// Recurses to `depth`, is suspended at the deepest point, and adds up what the frames held.
[[gnu::noinline]] std::uint64_t descend(coroutine& me, unsigned depth) {
  volatile std::uint64_t frame[32];
  for (unsigned i = 0; i < 32; ++i) frame[i] = depth + i;
  const std::uint64_t below = depth == 0 ? (me.pause(), 0) : descend(me, depth - 1);
  std::uint64_t sum = below;
  for (unsigned i = 0; i < 32; ++i) sum += frame[i];
  return sum;
}

TEST(context_switch, thousand_contexts_suspended_deep_in_their_stacks) {
  struct deep {
    coroutine flow;
    std::uint64_t sum = 0;
  };
  constexpr unsigned depth = 100;
  context main;
  std::vector<deep> all(1000);
  const auto body = [](coroutine& me) { me.as<deep>().sum = descend(me, depth); };
  for (deep& one : all) ASSERT_TRUE(one.flow.start(body, &one, 128 * 1024));
  for (deep& one : all) one.flow.resume(main);
  for (deep& one : all) one.flow.resume(main);
  std::uint64_t expected = 0;
  for (unsigned d = 0; d <= depth; ++d) expected += 32u * d + 31u * 32u / 2u;
  for (deep& one : all) {
    ASSERT_TRUE(one.flow.is_done);
    ASSERT_EQ(one.sum, expected);
  }
}

TEST(context_switch, exception_thrown_and_caught_inside) {
  context main;
  coroutine flow;
  std::string caught;
  const auto body = [](coroutine& me) {
    try {
      throw std::runtime_error("inside");
    } catch (const std::exception& e) {
      me.as<std::string>() = e.what();
    }
  };
  ASSERT_TRUE(flow.start(body, &caught));
  flow.resume(main);
  EXPECT_TRUE(flow.is_done);
  EXPECT_EQ(caught, "inside");
}

// The frames that a stack walk from inside a context finds: it must end at the context's entry.
[[gnu::noinline]] int frame_count() {
  int count = 0;
  const auto step = [](_Unwind_Context*, void* counter) {
    return ++*static_cast<int*>(counter) < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
  };
  EXPECT_EQ(_Unwind_Backtrace(step, &count), _URC_END_OF_STACK);
  return count;
}

TEST(context_switch, unwinding_stops_at_entry) {
  context main;
  coroutine flow;
  int count = 0;
  ASSERT_TRUE(flow.start([](coroutine& me) { me.as<int>() = frame_count(); }, &count));
  flow.resume(main);
  EXPECT_GE(count, 2);
  EXPECT_LE(count, 10);
}

// Each flow handles its own exception while the others throw, catch and finish theirs, in an order
// that is not last-in-first-out: with one handler stack per thread this mixes them up.
TEST(context_switch, switching_inside_a_catch_block) {
  struct record {
    coroutine flow;
    int id = 0;
    int rethrown = -1;
    bool is_current_kept = false;
  };
  context main;
  std::array<record, 4> all;
  const auto body = [](coroutine& me) {
    auto& mine = me.as<record>();
    try {
      throw mine.id;
    } catch (int id) {
      const std::exception_ptr before = std::current_exception();
      me.pause();
      mine.is_current_kept = before == std::current_exception() && id == mine.id;
      try {
        throw;
      } catch (int again) {
        me.pause();
        mine.rethrown = again;
      }
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  };
  for (int i = 0; i < 4; ++i) {
    record& one = all[static_cast<std::size_t>(i)];
    one.id = 10 + i;
    ASSERT_TRUE(one.flow.start(body, &one));
  }
  for (int pass = 0; pass < 3; ++pass) {
    for (record& one : all) {
      one.flow.resume(main);
      EXPECT_EQ(std::current_exception(), nullptr);
    }
  }
  for (record& one : all) {
    EXPECT_TRUE(one.flow.is_done);
    EXPECT_TRUE(one.is_current_kept);
    EXPECT_EQ(one.rethrown, one.id);
  }
}

TEST(context_switch, main_may_switch_inside_a_catch_block) {
  context main;
  coroutine flow;
  bool was_clean = false;
  const auto body = [](coroutine& me) {
    me.as<bool>() = std::current_exception() == nullptr;
    try {
      throw 1;
    } catch (int) {
      me.pause();
    }
  };
  ASSERT_TRUE(flow.start(body, &was_clean));
  try {
    throw std::runtime_error("main");
  } catch (...) {
    flow.resume(main);
    EXPECT_THROW(throw, std::runtime_error);
    flow.resume(main);
    EXPECT_THROW(throw, std::runtime_error);
  }
  EXPECT_TRUE(flow.is_done);
  EXPECT_TRUE(was_clean);
}

// A destructor that runs because of an exception switches away: the other side must not see it.
TEST(context_switch, uncaught_count_belongs_to_the_context) {
  struct pause_on_exit {
    coroutine& flow;
    ~pause_on_exit() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      flow.pause();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  context main;
  coroutine flow;
  const auto body = [](coroutine& me) {
    try {
      const pause_on_exit guard{me};
      throw 1;
    } catch (int) {
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  };
  ASSERT_TRUE(flow.start(body));
  flow.resume(main);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  flow.resume(main);
  EXPECT_TRUE(flow.is_done);
}

// A context suspended inside a catch block goes on in another thread, with its exception.
TEST(context_switch, a_context_may_change_its_thread) {
  coroutine flow;
  int rethrown = 0;
  const auto body = [](coroutine& me) {
    try {
      throw 42;
    } catch (int) {
      me.pause();
      try {
        throw;
      } catch (int value) {
        me.as<int>() = value;
      }
    }
  };
  ASSERT_TRUE(flow.start(body, &rethrown));
  const auto resume_once = [&flow] {
    context main;
    flow.resume(main);
    EXPECT_EQ(std::current_exception(), nullptr);
  };
  std::thread(resume_once).join();
  EXPECT_FALSE(flow.is_done);
  std::thread(resume_once).join();
  EXPECT_TRUE(flow.is_done);
  EXPECT_EQ(rethrown, 42);
}

}  // namespace
}  // namespace lev
