// The limit of a round trip: one cache line that two cores write in turn.
//
// Polling with a pause in the loop is faster on some cores (it leaves the line alone for a moment)
// and slower on others. The limit is the faster of the two. A runtime has a line for each way: what
// that costs is for information.
#pragma once

#include "timing.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace bench {

enum class polling { bare, paused };
enum class layout { one_line, line_each_way };

// The answering side, a thread of its own, lives as long as this object: it burns a core.
template <polling Polling, layout Layout = layout::one_line>
class pingpong {
 public:
  explicit pingpong(int answer_core)
      : thread_([this, answer_core] {
          pin_this_thread(answer_core);
          answer();
        }) {}
  ~pingpong() {
    // Pairs with the answering thread's load.
    there_.store(stop, std::memory_order_release);
    thread_.join();
  }
  pingpong(pingpong&&) = delete;

  // round_trip() writes the line and returns when it was answered.
  void round_trip() noexcept {
    turn_ += 2;
    // Pairs with the answering thread's load: it sees the question.
    there_.store(turn_ - 1, std::memory_order_release);
    // Pairs with the answering thread's store.
    while (back().load(std::memory_order_acquire) != turn_) relax();
  }

 private:
  static constexpr std::uint64_t stop = ~std::uint64_t{0};

  static void relax() noexcept {
    if constexpr (Polling == polling::paused) pause_core();
  }

  std::atomic<std::uint64_t>& back() noexcept {
    return Layout == layout::one_line ? there_ : back_;
  }

  void answer() noexcept {
    for (std::uint64_t expected = 1;; expected += 2) {
      std::uint64_t seen;
      // Pairs with the stores of round_trip() and the destructor.
      while ((seen = there_.load(std::memory_order_acquire)) != expected) {
        if (seen == stop) return;
        relax();
      }
      // Pairs with the load of round_trip().
      back().store(expected + 1, std::memory_order_release);
    }
  }

  // Odd values are questions, written by the owner; even ones answers, written by the answering
  // thread; both read both.
  alignas(128) std::atomic<std::uint64_t> there_{0};
  alignas(128) std::atomic<std::uint64_t> back_{0};
  alignas(128) std::uint64_t turn_ = 0;
  std::thread thread_;
};

// pingpong_ns() is the typical of `count` hot round trips between this thread's core and
// `answer_core`, by the faster polling.
double pingpong_ns(int answer_core, std::size_t count, layout lines = layout::one_line);

}  // namespace bench
