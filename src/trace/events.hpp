// Trace events: what each participant did when. A ring per participant, written by its owner only;
// recording changes nothing that runs. Names of events are the names of the pipeline's steps.
#ifndef LEVERET_TRACE_EVENTS_HPP
#define LEVERET_TRACE_EVENTS_HPP

#include <leveret/task.hpp>

#include "base/random.hpp"
#include "sync/env.hpp"

namespace lev {

enum class step : std::uint8_t { pass, stage, execute, write_back, park };
const char* step_name(step s) noexcept;

struct event {
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t task;
  procedure_id procedure;
  step what;
  std::uint8_t context = 0;  // of the participant
};

class event_ring {
 public:
  // `events` is an array of `count` (a power of two) that outlives the ring.
  void open(event* events, std::uint32_t count) noexcept {
    events_ = events;
    mask_ = count - 1;
  }
  bool is_open() const noexcept { return events_ != nullptr; }

  void record(const event& e) noexcept {
    events_[written_.read() & mask_] = e;
    written_.add(1);
    std::uint64_t h = hash_.load(memory_order_relaxed);
    h = mix64(h ^ e.begin_ns) + e.end_ns;
    h = mix64(h ^ (std::uint64_t{e.task} << 32 | std::uint64_t{e.procedure} << 8 |
                   static_cast<std::uint8_t>(e.what)));
    hash_.store(h, memory_order_relaxed);
  }

  // Reading is exact when the owner is idle; else the oldest events may be overwritten while they
  // are read.
  std::uint64_t written() const noexcept { return written_.read(); }
  std::uint64_t hash() const noexcept { return hash_.load(memory_order_relaxed); }
  std::uint32_t kept() const noexcept {
    const std::uint64_t n = written_.read();
    return n > mask_ ? mask_ + 1 : static_cast<std::uint32_t>(n);
  }
  // The i-th kept event, oldest first.
  const event& at(std::uint32_t i) const noexcept {
    return events_[(written_.read() - kept() + i) & mask_];
  }

 private:
  event* events_ = nullptr;
  std::uint32_t mask_ = 0;
  owned_counter written_;
  // Written by the owner, read by trace_hash(): a hash over all events ever recorded. Publishes
  // nothing.
  atomic<std::uint64_t> hash_{0};
};

}  // namespace lev

#endif
