// Trace events: what each participant did when. A ring per participant, written by its owner only;
// recording changes nothing that runs. Names of events are the names of the pipeline's steps.
#pragma once

#include <leveret/task.hpp>

#include "base/random.hpp"
#include "sync/env.hpp"

namespace lev {

enum class step : std::uint8_t { pass, stage, execute, write_back, park };

struct event {
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint32_t task;
  procedure_id procedure;
  step what;
  std::uint8_t context = 0;  // of the participant
};

// An event as others may read it while its owner writes the next one over it.
class kept_event {
 public:
  void write(const event& e) noexcept {
    begin_ns_.store(e.begin_ns, memory_order_relaxed);
    end_ns_.store(e.end_ns, memory_order_relaxed);
    whose_.store(std::uint64_t{e.task} << 32 | e.procedure, memory_order_relaxed);
    what_.store(std::uint32_t{e.context} << 8 | static_cast<std::uint8_t>(e.what),
                memory_order_relaxed);
  }
  // May be half of an older event and half of a newer one, if the owner writes meanwhile: each half
  // is from a real event, and no event ends before it begins.
  event read() const noexcept {
    const std::uint64_t begin = begin_ns_.load(memory_order_relaxed);
    const std::uint64_t end = end_ns_.load(memory_order_relaxed);
    const std::uint64_t whose = whose_.load(memory_order_relaxed);
    const std::uint32_t what = what_.load(memory_order_relaxed);
    return {begin,
            end < begin ? begin : end,
            static_cast<std::uint32_t>(whose >> 32),
            static_cast<procedure_id>(whose),
            static_cast<step>(what & 0xff),
            static_cast<std::uint8_t>(what >> 8)};
  }

 private:
  // Written by the ring's owner, read by readers of the trace; publishes nothing.
  atomic<std::uint64_t> begin_ns_{0};
  // Written by the owner, read by readers of the trace; publishes nothing.
  atomic<std::uint64_t> end_ns_{0};
  // The task in the upper half, its procedure in the lower one. Written by the owner, read by
  // readers of the trace; publishes nothing.
  atomic<std::uint64_t> whose_{0};
  // The context above the step's eight bits. Written by the owner, read by readers of the trace;
  // publishes nothing.
  atomic<std::uint32_t> what_{0};
};

class event_ring {
 public:
  // `events` is an array of `count` (a power of two) that outlives the ring.
  void open(kept_event* events, std::uint32_t count) noexcept {
    events_ = events;
    mask_ = count - 1;
  }
  bool is_open() const noexcept { return events_ != nullptr; }

  void record(const event& e) noexcept {
    events_[written_.read() & mask_].write(e);
    written_.add(1);
    std::uint64_t h = hash_.load(memory_order_relaxed);
    h = mix64(h ^ e.begin_ns) + e.end_ns;
    h = mix64(h ^ (std::uint64_t{e.task} << 32 | std::uint64_t{e.procedure} << 8 |
                   static_cast<std::uint8_t>(e.what)));
    hash_.store(h, memory_order_relaxed);
  }

  // Reading is exact when the owner is idle; otherwise the oldest events may be overwritten while
  // they are read.
  std::uint64_t written() const noexcept { return written_.read(); }
  std::uint64_t hash() const noexcept { return hash_.load(memory_order_relaxed); }
  std::uint32_t kept() const noexcept {
    const std::uint64_t n = written_.read();
    return n > mask_ ? mask_ + 1 : static_cast<std::uint32_t>(n);
  }
  // The i-th kept event, oldest first.
  event at(std::uint32_t i) const noexcept {
    return events_[(written_.read() - kept() + i) & mask_].read();
  }

 private:
  kept_event* events_ = nullptr;
  std::uint32_t mask_ = 0;
  owned_counter written_;
  // Written by the owner, read by trace_hash(): a hash over all events ever recorded. Publishes
  // nothing.
  atomic<std::uint64_t> hash_{0};
};

}  // namespace lev
