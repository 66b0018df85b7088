// poll_until(): poll() that a signal does not end: a program may have a timer that sends them all
// the time, for example a profiler's. So a wait neither begins anew with each of them, nor ends too
// early.
#pragma once

#include "base/numbers.hpp"
#include "sync/futex.hpp"

#include <poll.h>

#include <cerrno>
#include <span>

namespace lev::processes {

// Returns what poll() does: how many files have something to tell; 0 when the time is over, which a
// last look comes before. no_deadline: it waits without a limit.
inline int poll_until(std::span<pollfd> files, std::uint64_t deadline_ns) noexcept {
  for (;;) {
    timespec left{};
    if (deadline_ns != no_deadline) {
      const std::uint64_t now_ns = monotonic_ns();
      const std::uint64_t left_ns = deadline_ns - smaller(now_ns, deadline_ns);
      left.tv_sec = static_cast<time_t>(left_ns / 1'000'000'000u);
      left.tv_nsec = static_cast<long>(left_ns % 1'000'000'000u);
    }
    const int ready =
        ppoll(files.data(), files.size(), deadline_ns == no_deadline ? nullptr : &left, nullptr);
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

inline std::uint64_t in_ms(int ms) noexcept {
  return monotonic_ns() + static_cast<std::uint64_t>(ms) * 1'000'000;
}
inline void pause_for_ms(int ms) noexcept {
  poll_until({}, in_ms(ms));
}

}  // namespace lev::processes
