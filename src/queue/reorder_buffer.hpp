// reorder_buffer: the waiting tasks that filters may reorder and the dicer may split. A plain
// array, protected by the scheduler's pass lock; bounded by the number of tickets.
//
// Paper: Jack Rabbit section 4.2 (ROB; the third iteration of its queue: bounded, coarse lock, any
// element may be replaced).
#pragma once

#include <leveret/filter.hpp>

#include "base/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace lev {

class reorder_buffer {
 public:
  // `tasks` is an array of `capacity` entries that outlives the buffer.
  void open(waiting_task* tasks, std::size_t capacity) noexcept {
    tasks_ = tasks;
    capacity_ = capacity;
  }

  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  waiting_task* begin() noexcept { return tasks_ + begin_; }
  waiting_task* end() noexcept { return tasks_ + end_; }
  const waiting_task& front() const noexcept { return tasks_[begin_]; }

  void push_back(const waiting_task& task) noexcept {
    if (end_ == capacity_) pack();
    LEV_ASSERT(end_ < capacity_);
    tasks_[end_++] = task;
  }
  void pop_front() noexcept { ++begin_; }

  // remove_if() takes out the tasks for which `is_taken` is true, and keeps the others in order. It
  // is asked once for each, which lies where it was.
  template <class IsTaken>
  void remove_if(const IsTaken& is_taken) noexcept {
    end_ = static_cast<std::size_t>(std::remove_if(begin(), end(), is_taken) - tasks_);
  }

  // insert_after() makes room for `count` entries behind `place` and returns the first of them.
  waiting_task* insert_after(waiting_task* place, std::size_t count) noexcept {
    std::size_t index = static_cast<std::size_t>(place - tasks_);
    if (end_ + count > capacity_) {
      index -= begin_;
      pack();
    }
    LEV_ASSERT(end_ + count <= capacity_);
    waiting_task* first = tasks_ + index + 1;
    std::memmove(first + count, first, (end_ - index - 1) * sizeof(waiting_task));
    end_ += count;
    return first;
  }

 private:
  void pack() noexcept {
    std::memmove(tasks_, tasks_ + begin_, size() * sizeof(waiting_task));
    end_ -= begin_;
    begin_ = 0;
  }

  waiting_task* tasks_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace lev
