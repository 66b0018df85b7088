// link: a server of bytes, one after the other, at a fixed rate. Bytes that come while it is busy
// wait.
//
//   1. pass(): first come, first served, as a whole.
//   2. pass_line(): a single piece, for which the server gives a turn. It queues behind other
//      single pieces, and goes between two pieces of a transfer by pass(). The end of that one is
//      settled; the transfers behind it end that much later.
#pragma once

#include <leveret/virtual_time.hpp>

#include <cstdint>

#include "virtual/clock_end.hpp"

namespace lev::virt {

class link {
 public:
  // Precondition: the rate is above 0. It is kept as femtoseconds for 1 KiB, a whole number, so
  // that every compiler computes the same times.
  explicit link(double bytes_per_second)
      : kib_fs_(static_cast<std::int64_t>(1024e15 / bytes_per_second + 0.5)) {}

  // Passes `bytes` that come at `from`, or as soon as those before are through; returns when the
  // last is.
  virtual_time pass(virtual_time from, std::int64_t bytes) {
    free_ = after(from > free_ ? from : free_, time_of(bytes));
    return free_;
  }

  // The same for one piece. It waits for the pieces before it, and for one piece of a transfer
  // under way; no more, as the server gives turns.
  virtual_time pass_line(virtual_time from, std::int64_t bytes) {
    const virtual_time takes = time_of(bytes);
    virtual_time begin = from > lines_free_ ? from : lines_free_;
    if (free_ > begin) {
      begin = free_ < begin + takes ? free_ : begin + takes;
      free_ = after(free_, takes);
    } else {
      free_ = after(begin, takes);
    }
    lines_free_ = after(begin, takes);
    return lines_free_;
  }

  // Nothing passes, and time begins at 0 again.
  void rest() { free_ = lines_free_ = virtual_time(0); }

  virtual_time time_of(std::int64_t bytes) const {
    return virtual_time(bytes / 1024 * kib_fs_ + bytes % 1024 * kib_fs_ / 1024);
  }

 private:
  // The sum, which what waits in line could take beyond 63 bits.
  static virtual_time after(virtual_time begin, virtual_time takes) {
    return takes > behind_end - begin ? behind_end : begin + takes;
  }

  std::int64_t kib_fs_;
  virtual_time free_{0};        // of everything
  virtual_time lines_free_{0};  // of pieces; never later
};

}  // namespace lev::virt
