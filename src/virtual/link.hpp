// link: a server of bytes, one after the other, at a fixed rate. What comes while it is busy waits.
#ifndef LEVERET_VIRTUAL_LINK_HPP
#define LEVERET_VIRTUAL_LINK_HPP

#include <leveret/virtual_time.hpp>

#include <cstdint>

namespace lev::virt {

class link {
 public:
  // Precondition: the rate is above 0. It is kept as femtoseconds for 1 KiB, a whole number, so
  // that every compiler computes the same times.
  explicit link(double bytes_per_second)
      : kib_fs_(static_cast<std::int64_t>(1024e15 / bytes_per_second + 0.5)) {}

  // `bytes` that come at `from`, or as soon as those before are through; when the last is.
  virtual_time pass(virtual_time from, std::int64_t bytes) {
    const virtual_time begin = from > free_ ? from : free_;
    const virtual_time takes = time_of(bytes);
    busy_ += takes;
    free_ = begin + takes;
    return free_;
  }

  // Nothing passes, and time begins at 0 again.
  void rest() { free_ = virtual_time(0); }

  virtual_time time_of(std::int64_t bytes) const {
    return virtual_time(bytes / 1024 * kib_fs_ + bytes % 1024 * kib_fs_ / 1024);
  }
  virtual_time free_at() const { return free_; }
  virtual_time busy() const { return busy_; }

 private:
  std::int64_t kib_fs_;
  virtual_time free_{0};
  virtual_time busy_{0};
};

}  // namespace lev::virt

#endif
