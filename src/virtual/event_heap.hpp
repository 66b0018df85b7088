// event_heap: what is to happen, earliest first; of equal times the one with the lowest order.
//
// A heap with four children to a node: half as deep as one with two, and the children of a node
// lie in two cache lines.
#ifndef LEVERET_VIRTUAL_EVENT_HEAP_HPP
#define LEVERET_VIRTUAL_EVENT_HEAP_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"

namespace lev::virt {

// What an event happens to.
class target {
 public:
  // `note` is what the event was posted with.
  virtual void on_event(std::uint64_t note) = 0;

 protected:
  ~target() = default;
};

struct event {
  std::int64_t at_fs;
  std::uint64_t order;  // unique; the lowest bit is set where the event is none of a poll
  target* to;
  std::uint64_t note;

  bool before(const event& other) const {
    return at_fs != other.at_fs ? at_fs < other.at_fs : order < other.order;
  }
};

class event_heap {
 public:
  bool is_empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const event& top() const { return events_.front(); }

  void push(const event& e) {
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
    LEV_DCHECK(!events_.empty());
    const event first = events_.front();
    const event last = events_.back();
    events_.pop_back();
    if (!events_.empty()) sink(last);
    return first;
  }

 private:
  void sink(const event& e) {
    const std::size_t size = events_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= size) break;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (events_[child].before(events_[least])) least = child;
      if (!events_[least].before(e)) break;
      events_[hole] = events_[least];
      hole = least;
    }
    events_[hole] = e;
  }

  std::vector<event> events_;
};

}  // namespace lev::virt

#endif
