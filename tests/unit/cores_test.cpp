// Tests of cores: a thread that is kept off a core, and what it may run on afterwards.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <thread>

#include "machines/threads/cores.hpp"

namespace lev {
namespace {

bool are_same(const cpu_set_t& a, const cpu_set_t& b) {
  return CPU_EQUAL(&a, &b) != 0;
}

cpu_set_t cores_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}

// A thread that does nothing, as long as the test lasts.
class other_thread {
 public:
  other_thread()
      : thread_([this] {
          id_ = gettid();
          id_.notify_one();
          ends_.wait(false);
        }) {
    id_.wait(0);
  }
  ~other_thread() { end(); }
  pid_t id() const { return id_; }
  void end() {
    if (!thread_.joinable()) return;
    ends_ = true;
    ends_.notify_one();
    thread_.join();
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST(cores, a_thread_is_kept_off_a_core_for_a_while) {
  const cpu_set_t mine = cores_of(0);
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "there is one core";
  const auto core = static_cast<std::uint32_t>(core_at(1));
  other_thread t;
  atomic<std::uint32_t> note{0};
  {
    const kept_off off(static_cast<std::uint32_t>(t.id()), core, &note);
    EXPECT_EQ(note.load(), 1u);
    const cpu_set_t now = cores_of(t.id());
    EXPECT_FALSE(CPU_ISSET(core, &now));
    EXPECT_EQ(CPU_COUNT(&now), CPU_COUNT(&mine) - 1);
  }
  EXPECT_TRUE(are_same(cores_of(t.id()), mine));
  EXPECT_EQ(note.load(), 0u);
}

TEST(cores, a_thread_with_one_core_keeps_it) {
  const auto core = static_cast<std::uint32_t>(core_at(0));
  other_thread t;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(t.id(), sizeof one, &one), 0);
  atomic<std::uint32_t> note{0};
  const kept_off off(static_cast<std::uint32_t>(t.id()), core, &note);
  EXPECT_TRUE(are_same(cores_of(t.id()), one));
  EXPECT_EQ(note.load(), 0u);
}

TEST(cores, a_thread_that_has_ended_does_no_harm) {
  other_thread t;
  const auto id = static_cast<std::uint32_t>(t.id());
  t.end();
  atomic<std::uint32_t> note{0};
  const kept_off off(id, 0, &note);
  const kept_off none(0, 0, &note);
}

TEST(cores, a_thread_makes_its_cores_what_they_were) {
  const cpu_set_t mine = cores_of(0);
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "there is one core";
  cpu_set_t after;
  std::thread([&after] {
    note_cores();
    bind_to_core(core_at(0));
    restore_cores();
    after = cores_of(0);
  }).join();
  EXPECT_TRUE(are_same(after, mine));
}

}  // namespace
}  // namespace lev
