// The limit of waking a sleeper: a thread asleep in a futex is woken and answers by a store that
// the waker polls.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace bench {

class futex_sleeper {
 public:
  explicit futex_sleeper(int core);
  ~futex_sleeper();
  futex_sleeper(futex_sleeper&&) = delete;

  // wait_asleep() polls until the thread is about to sleep.
  void wait_asleep() const noexcept;

  // wake() wakes the thread and returns when it has answered.
  void wake() noexcept;

 private:
  void sleep_and_answer() noexcept;

  static constexpr std::uint32_t stop = ~std::uint32_t{0};
  // Written by the owner: number of the last question; read by the thread, which sleeps on it.
  alignas(128) std::atomic<std::uint32_t> question_{0};
  // Written by the thread: number of the last answer; read by the owner.
  alignas(128) std::atomic<std::uint32_t> answer_{0};
  // Written by the thread before it sleeps: number of the question it waits to change; read by the
  // owner.
  alignas(128) std::atomic<std::uint32_t> asleep_at_{stop};
  std::thread thread_;
};

}  // namespace bench
