// napper: how a host sleeps that waits for one task while workers are busy on every core. A host
// that is told of each end costs a core some 18 us each time, for the worker's bell, the service
// and itself; one that polls costs a core. So it naps: it is told when a line runs low, wakes by
// itself when the nap is over, and takes all ends that have come. If these are few, the tasks are
// long, and naps become longer. A host whose naps are as long as they may be is told of each end
// instead.
//
// An end may be told up to one nap late; no worker runs out of tasks because of that. (64 tasks of
// 32 us on 2 workers and 2 cores took 1.3 times the ideal, 1.6 with a host that was told of each
// end, 2.1 with one that polled; an EPYC of 2026-11-26.)
//
// It belongs to one thread; it reads no clock.
#pragma once

#include <cstdint>

namespace lev {

class napper {
 public:
  static constexpr std::uint64_t first_ns = 100'000;  // the system adds 50 us
  static constexpr std::uint64_t span_ns_max = 4 * first_ns;
  // A nap that spares fewer wake-ups is not worth it.
  static constexpr std::uint64_t ends_min = 4;

  // begin_wait() is called before each wait, which consists of any number of naps.
  void begin_wait() noexcept { *this = {}; }
  // span_ns() is how long to nap next; 0: not at all. count() tells how many tasks ended, ever; it
  // is called if there was a nap since the last call.
  template <class Count>
  std::uint64_t span_ns(Count&& count) noexcept {
    if (has_napped_ && count() - ends_before_ < ends_min)
      span_ns_ = span_ns_ == span_ns_max ? 0 : 2 * span_ns_;
    has_napped_ = false;
    return span_ns_;
  }
  // begin_nap() is called with that number when a nap begins: there is none if the awaited task
  // ends first.
  void begin_nap(std::uint64_t ends) noexcept {
    has_napped_ = true;
    ends_before_ = ends;
  }

 private:
  std::uint64_t span_ns_ = first_ns;
  std::uint64_t ends_before_ = 0;
  bool has_napped_ = false;
};

}  // namespace lev
