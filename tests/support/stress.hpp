// Common parts of the stress tests: a box of time, threads that start together, and counts of what
// must have happened at least sometimes, or the test would show nothing.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "support/environment.hpp"

namespace lev::test {

// Time for a stress test: about a second, or a minute when deep.
class time_box {
 public:
  time_box() : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(box_ms())) {}
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  static int box_ms() { return is_deep() ? 60'000 : 1'200; }
  std::chrono::steady_clock::time_point end_;
};

// Runs body(i) on `count` threads that start at the same moment.
template <class Body>
void on_threads_together(int count, Body&& body) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& t : threads) t.join();
}

// An event that a test must have seen at least once, or it would show nothing. On a busy machine a
// second may be too short for it, so only a deep run insists.
class sometimes {
 public:
  explicit sometimes(const char* what) : what_(what) {}
  ~sometimes() {
    if (is_deep()) {
      EXPECT_GT(count_, 0u) << "never happened: " << what_;
    }
    testing::Test::RecordProperty(what_, std::to_string(count_.load()));
  }
  sometimes(sometimes&&) = delete;

  void note(std::uint64_t times = 1) { count_ += times; }
  void note_if(bool happened) { count_ += happened; }

 private:
  const char* what_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace lev::test
