// event_heap: coming events, earliest first; of equal times the one with the lowest order.
//
// A heap with four children to a node: half as deep as one with two, and the children of a node lie
// in two cache lines. An event mostly posts another: pop() leaves a hole at the top, which the next
// push() fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"

namespace lev::virt {

// The target of an event.
class target {
 public:
  // `note` is what the event was posted with.
  virtual void on_event(std::uint64_t note) = 0;

 protected:
  ~target() = default;
};

struct event {
  std::int64_t at_fs;
  std::uint64_t order;  // unique; the lowest bit is set if the event is not a poll's
  target* to;
  std::uint64_t note;

  // Without a branch, which could not be predicted. Times are not negative.
  bool before(const event& other) const {
    __extension__ using key = unsigned __int128;
    const key mine = key{static_cast<std::uint64_t>(at_fs)} << 64 | order;
    const key others = key{static_cast<std::uint64_t>(other.at_fs)} << 64 | other.order;
    return mine < others;
  }
};

class event_heap {
 public:
  bool is_empty() const { return size() == 0; }
  std::size_t size() const { return events_.size() - (has_hole_ ? 1 : 0); }
  // The time of the earliest. Precondition of this and of pop(): not empty.
  std::int64_t first_at_fs() const {
    if (!has_hole_) return events_.front().at_fs;
    std::int64_t first = events_[1].at_fs;
    const std::size_t end = events_.size() < 5 ? events_.size() : 5;
    for (std::size_t child = 2; child < end; ++child)
      first = events_[child].at_fs < first ? events_[child].at_fs : first;
    return first;
  }

  void push(const event& e) {
    if (has_hole_) {
      has_hole_ = false;
      return sink(e);
    }
    std::size_t hole = events_.size();
    events_.push_back(e);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!e.before(events_[parent])) break;
      events_[hole] = events_[parent];
      hole = parent;
    }
    events_[hole] = e;
  }

  event pop() {
    LEV_DCHECK(!is_empty());
    fill_hole();
    has_hole_ = true;
    return events_.front();
  }

 private:
  void fill_hole() {
    if (!has_hole_) return;
    has_hole_ = false;
    const event last = events_.back();
    events_.pop_back();
    if (!events_.empty()) sink(last);
  }

  void sink(const event& e) {
    const std::size_t size = events_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= size) break;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        least = events_[child].before(events_[least]) ? child : least;
      if (!events_[least].before(e)) break;
      events_[hole] = events_[least];
      hole = least;
    }
    events_[hole] = e;
  }

  std::vector<event> events_;
  bool has_hole_ = false;  // the first of events_ has been taken
};

}  // namespace lev::virt
