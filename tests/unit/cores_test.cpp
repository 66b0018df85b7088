// Tests of cores: a sleeper that its waker keeps off a core, and what it may run on afterwards.
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

// A thread that sleeps until it is told to end its sleep, and then notes its cores.
class sleeping_thread {
 public:
  explicit sleeping_thread(const cpu_set_t& cores)
      : thread_([this, cores] {
          sched_setaffinity(0, sizeof cores, &cores);
          begin_sleep(sleeper);
          is_asleep_ = true;
          is_asleep_.notify_one();
          ends_.wait(false);
          end_sleep(sleeper);
          after_ = cores_of(0);
        }) {
    is_asleep_.wait(false);
  }
  ~sleeping_thread() {
    if (thread_.joinable()) wake();
  }
  cpu_set_t now() const { return cores_of(static_cast<pid_t>(sleeper.thread)); }
  void set(const cpu_set_t& cores) const {
    EXPECT_EQ(sched_setaffinity(static_cast<pid_t>(sleeper.thread), sizeof cores, &cores), 0);
  }
  cpu_set_t wake() {
    ends_ = true;
    ends_.notify_one();
    thread_.join();
    return after_;
  }

  sleeper_thread sleeper;

 private:
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> ends_{false};
  cpu_set_t after_;
  std::thread thread_;
};

cpu_set_t only(unsigned core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return one;
}

cpu_set_t without(const cpu_set_t& all, unsigned core) {
  cpu_set_t rest = all;
  CPU_CLR(core, &rest);
  return rest;
}

class cores : public testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "there is one core";
  }
  const cpu_set_t all_ = cores_of(0);
  const unsigned core_ = static_cast<unsigned>(core_at(1));
};

TEST_F(cores, a_sleeper_is_kept_off_its_wakers_core_and_gets_it_back) {
  sleeping_thread t(all_);
  keep_off(t.sleeper, core_, false);
  EXPECT_TRUE(are_same(t.now(), without(all_, core_)));
  give_back(t.sleeper);
  EXPECT_TRUE(are_same(t.now(), all_));
  EXPECT_TRUE(are_same(t.wake(), all_));
}

TEST_F(cores, a_sleeper_takes_its_core_back_where_its_waker_is_late) {
  sleeping_thread t(all_);
  keep_off(t.sleeper, core_, false);
  EXPECT_TRUE(are_same(t.wake(), all_));
  give_back(t.sleeper);  // of a thread that has ended
}

TEST_F(cores, a_thread_that_has_woken_is_left_alone) {
  const cpu_set_t before = cores_of(0);
  sleeper_thread self;
  begin_sleep(self);
  end_sleep(self);
  keep_off(self, core_, false);
  EXPECT_TRUE(are_same(cores_of(0), before));
  give_back(self);
  EXPECT_TRUE(are_same(cores_of(0), before));
}

// As `taskset -a` does with all threads of a program.
TEST_F(cores, what_others_set_while_a_thread_sleeps_stays) {
  sleeping_thread before(all_), meanwhile(all_), late(all_);
  const cpu_set_t one = only(core_);
  before.set(one);
  keep_off(before.sleeper, core_, false);
  EXPECT_TRUE(are_same(before.now(), one));
  give_back(before.sleeper);
  EXPECT_TRUE(are_same(before.wake(), one));
  keep_off(meanwhile.sleeper, core_, false);
  meanwhile.set(one);
  give_back(meanwhile.sleeper);
  EXPECT_TRUE(are_same(meanwhile.wake(), one));
  keep_off(late.sleeper, core_, false);
  late.set(one);
  EXPECT_TRUE(are_same(late.wake(), one));
}

TEST_F(cores, a_sleeper_elsewhere_may_be_left_where_it_is) {
  const cpu_set_t first = only(static_cast<unsigned>(core_at(0)));
  sleeping_thread t(first);
  keep_off(t.sleeper, core_, true);
  EXPECT_TRUE(are_same(t.now(), first));
}

TEST_F(cores, a_sleeper_with_one_core_keeps_it) {
  const cpu_set_t one = only(core_);
  sleeping_thread t(one);
  keep_off(t.sleeper, core_, true);
  EXPECT_TRUE(are_same(t.now(), one));
  EXPECT_TRUE(are_same(t.wake(), one));
}

TEST_F(cores, a_bound_thread_has_one_core) {
  std::thread([] {
    const int last = core_at(available_cores() - 1);
    bind_to_core(last);
    EXPECT_TRUE(are_same(cores_of(0), only(static_cast<unsigned>(last))));
  }).join();
}

// Wakers come at any moment: whatever they do, the thread goes on with all its cores.
TEST_F(cores, a_sleeper_and_its_waker_may_meet_anywhere) {
  sleeper_thread s;
  std::atomic<bool> ends{false};
  std::thread waker([&] {
    while (!ends) {
      keep_off(s, core_, false);
      give_back(s);
    }
  });
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    begin_sleep(s);
    end_sleep(s);
    if (!are_same(cores_of(0), all_)) ++wrong;
  }
  ends = true;
  waker.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lev
