// The system calls behind sleep_while() and wake_sleeper().
#include "sync/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace lev {

namespace {

int operation(int plain, sleepers who) noexcept {
  return who == sleepers::here ? plain | FUTEX_PRIVATE_FLAG : plain;
}

}  // namespace

std::uint64_t monotonic_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::uint64_t deadline_ns, sleepers who) noexcept {
  const timespec until{static_cast<time_t>(deadline_ns / 1'000'000'000u),
                       static_cast<long>(deadline_ns % 1'000'000'000u)};
  const bool is_limited = deadline_ns != no_deadline;
  // Pairs with the waker's store: the loop ends with what it wrote before visible.
  while (word.load(memory_order_acquire) == expected) {
    if (is_limited && deadline_ns <= monotonic_ns()) return;
    syscall(SYS_futex, &word, operation(FUTEX_WAIT_BITSET, who), expected,
            is_limited ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
}

void wake_sleeper(const std::atomic<std::uint32_t>& word, sleepers who) noexcept {
  syscall(SYS_futex, &word, operation(FUTEX_WAKE, who), 1, nullptr, nullptr, 0);
}

}  // namespace lev
