// Waits that signals interrupt all the time.
#include <gtest/gtest.h>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "machines/processes/poll_until.hpp"
#include "support/machine_test.hpp"

namespace lev::processes {
namespace {

std::atomic<int> signals{0};

class poll_until_test : public testing::Test {
 protected:
  void SetUp() override {
    test::start_alarm();
    signals = 0;
    struct sigaction on{};
    on.sa_handler = [](int) { ++signals; };
    sigaction(SIGUSR1, &on, &before_);
  }
  void TearDown() override {
    sigaction(SIGUSR1, &before_, nullptr);
    alarm(0);
  }
  // Signals go to this thread one after the other, until it has stopped them.
  void send_signals(const std::atomic<bool>& goes_on) {
    sender_ = std::thread([&goes_on, to = pthread_self()] {
      for (int sent = 0; goes_on; ++sent) {
        pthread_kill(to, SIGUSR1);
        while (goes_on && signals <= sent) std::this_thread::yield();
      }
    });
  }
  std::thread sender_;
  struct sigaction before_{};
};

TEST_F(poll_until_test, ends_at_its_deadline_whatever_interrupts_it) {
  std::atomic<bool> goes_on{true};
  send_signals(goes_on);
  const std::uint64_t deadline_ns = in_ms(300);
  EXPECT_EQ(poll_until({}, deadline_ns), 0);
  EXPECT_GE(monotonic_ns(), deadline_ns);
  goes_on = false;
  sender_.join();
}

TEST_F(poll_until_test, sees_a_file_whatever_interrupts_it) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> goes_on{true};
  send_signals(goes_on);
  std::thread writer([&] {
    while (signals < 100) std::this_thread::yield();
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  });
  pollfd file{ends[0], POLLIN, 0};
  EXPECT_EQ(poll_until({&file, 1}, no_deadline), 1);
  EXPECT_EQ(file.revents, POLLIN);
  goes_on = false;
  writer.join();
  sender_.join();
  close(ends[0]);
  close(ends[1]);
}

TEST_F(poll_until_test, looks_once_when_the_time_is_over) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pollfd file{ends[0], POLLIN, 0};
  EXPECT_EQ(poll_until({&file, 1}, 1), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(poll_until({&file, 1}, 1), 1);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace lev::processes
