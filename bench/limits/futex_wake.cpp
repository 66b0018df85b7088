// Both sides of a bare futex.
#include "limits/futex_wake.hpp"

#include "timing.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {
namespace {

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value,
          nullptr, nullptr, 0);
}

}  // namespace

futex_sleeper::futex_sleeper(int core)
    : thread_([this, core] {
        pin_this_thread(core);
        sleep_and_answer();
      }) {}

futex_sleeper::~futex_sleeper() {
  question_.store(stop);
  futex(question_, FUTEX_WAKE, 1);
  thread_.join();
}

void futex_sleeper::wait_asleep() const noexcept {
  while (asleep_at_.load() != question_.load()) {
  }
}

void futex_sleeper::wake() noexcept {
  const std::uint32_t next = question_.load(std::memory_order_relaxed) + 1;
  question_.store(next);
  futex(question_, FUTEX_WAKE, 1);
  while (answer_.load() != next) {
  }
}

void futex_sleeper::sleep_and_answer() noexcept {
  for (std::uint32_t seen = 0; seen != stop;) {
    asleep_at_.store(seen);
    while (question_.load() == seen) futex(question_, FUTEX_WAIT, seen);
    seen = question_.load();
    answer_.store(seen);
  }
}

}  // namespace bench
