// Things that tests keep in shared memory, so that tasks in worker processes reach it, too: it
// holds no pointer to other memory, and so nothing that grows.
#pragma once

#include <leveret/leveret.hpp>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace lev::test {

// A T in shared memory; ref{&x} hands it to a task.
template <class T>
class shared {
 public:
  template <class... Args>
  explicit shared(Args&&... args)
      : place_(sizeof(T)), to_(new (place_.data()) T(std::forward<Args>(args)...)) {}
  ~shared() { to_->~T(); }
  shared(shared&&) = delete;

  T* get() const { return to_; }
  T* operator->() const { return to_; }
  T& operator*() const { return *to_; }

 private:
  shared_array<char> place_;
  T* to_;
};

// A list with room for so many elements; size() counts those that found none, too.
template <class T, std::size_t room>
class bounded_list {
 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const_iterator;

  void push_back(const T& value) {
    if (size_ < room) elements_[size_] = value;
    ++size_;
  }
  std::size_t size() const { return size_; }
  const_iterator begin() const { return elements_; }
  const_iterator end() const { return elements_ + std::min(size_, room); }
  bool operator==(const std::vector<T>& other) const {
    return size_ == other.size() && std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::size_t size_ = 0;
  T elements_[room];
};

}  // namespace lev::test
