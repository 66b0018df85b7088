// linger: the step between polling and sleeping where workers are processes. A sleeper must be
// woken, which costs the other side a system call and the sleeper 20 to 50 us. So a thread polls on
// for a while before it sleeps, and offers its core to others between its polls.
//
// If another thread takes the core, it is better to sleep: a woken thread gets a core at once, but
// a thread that has given its core away waits until the other's time slice is over. So the first
// offer that is taken ends the lingering, and each such failure makes more of the next waits skip
// it. An offer that took long was not necessarily taken: on a virtual machine the hypervisor has
// the core for 50 us some 300 times a second. So the system's count of this thread's switches has
// the last word.
//
// It belongs to one thread; it reads no clock and makes only the calls that it is given.
#pragma once

#include "base/numbers.hpp"

#include <cstdint>

namespace lev {

class lingerer {
 public:
  // How long to linger after polling for `spin_ns` (config). Eight times as long: a call through
  // Python that takes 100 us finds its worker awake (bench python-array; spin_ns is 20 us there).
  // But not longer than 2 % of a core for a host that waits for 10 ms.
  static constexpr std::uint64_t span_ns(std::uint64_t spin_ns) noexcept {
    return smaller<std::uint64_t>(8 * spin_ns, 150'000);
  }
  // An offer that no thread takes costs 0.3 us here, one that is taken at least a thread switch.
  static constexpr std::uint64_t taken_ns = 10'000;
  // An offer that is taken costs up to 3 ms, a time slice, and lingering with success saves 0.1 ms.
  static constexpr std::uint32_t failures_max = 10;
  static constexpr std::uint32_t successes_per_failure = 64;
  static_assert(failures_max < 32);  // skips are doubled with each

  // begin() is called when polling ends. False: this wait does not linger. switches(): how often
  // another thread has had this one's core so far.
  template <class Switches>
  bool begin(Switches&& switches) noexcept {
    if (skips_ == 0) {
      switches_ = switches();
      return true;
    }
    --skips_;
    return false;
  }

  // offer() gives the core to any thread that wants it. False: another thread took it.
  template <class Clock, class Give, class Switches>
  bool offer(Clock&& now_ns, Give&& give_core, Switches&& switches) noexcept {
    const std::uint64_t begin_ns = now_ns();
    give_core();
    if (now_ns() - begin_ns < taken_ns || switches() == switches_) return true;
    successes_ = 0;
    failures_ = smaller(failures_ + 1, failures_max);
    skips_ = 1u << failures_;
    return false;
  }

  // end() is called when what was waited for came meanwhile.
  void end() noexcept {
    if (failures_ == 0 || ++successes_ < successes_per_failure) return;
    successes_ = 0;
    --failures_;
  }

  // Whether waits skip lingering because another thread took the core: polling should be short
  // then, too.
  bool is_wanted() const noexcept { return skips_ != 0; }

 private:
  std::uint32_t failures_ = 0;
  std::uint32_t successes_ = 0;  // since the last failure, or since they made up for one
  std::uint32_t skips_ = 0;
  std::uint64_t switches_ = 0;  // when the lingering began
};

}  // namespace lev
