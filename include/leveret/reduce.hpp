// What parallel_reduce() keeps of its pieces until they are put together. For runtime.hpp.
#ifndef LEVERET_REDUCE_HPP
#define LEVERET_REDUCE_HPP

#include <atomic>
#include <cstdint>

namespace lev::detail {

struct reduced_piece {
  explicit reduced_piece(std::uint64_t first) noexcept : begin(first) {}
  std::uint64_t begin;
  reduced_piece* next = nullptr;
};

// sort_by_begin() returns the first of the list.
reduced_piece* sort_by_begin(reduced_piece* list) noexcept;

template <class T>
class reduced_pieces {
 public:
  reduced_pieces() = default;
  reduced_pieces(const reduced_pieces&) = delete;
  reduced_pieces& operator=(const reduced_pieces&) = delete;
  ~reduced_pieces() {
    for (reduced_piece* p = first_.load(std::memory_order_relaxed); p != nullptr;) {
      auto* done = static_cast<piece*>(p);
      p = p->next;
      delete done;
    }
  }

  // make() gives the value, which is made where it stays. Any thread.
  template <class Make>
  void add(std::uint64_t begin, Make&& make) {
    reduced_piece* made = new piece(begin, make);
    made->next = first_.load(std::memory_order_relaxed);
    // The loop's end publishes the piece to put_together(), as it does the body's other stores.
    while (!first_.compare_exchange_weak(made->next, made, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }

  // put_together() folds the values from left to right; `otherwise` if there are none. When the
  // loop has ended.
  template <class Combine>
  T put_together(T&& otherwise, Combine& combine) {
    reduced_piece* p = sort_by_begin(first_.load(std::memory_order_relaxed));
    first_.store(p, std::memory_order_relaxed);
    if (p == nullptr) return static_cast<T&&>(otherwise);
    T all = static_cast<T&&>(static_cast<piece*>(p)->value);
    while ((p = p->next) != nullptr)
      all = combine(static_cast<T&&>(all), static_cast<T&&>(static_cast<piece*>(p)->value));
    return all;
  }

 private:
  struct piece : reduced_piece {
    template <class Make>
    piece(std::uint64_t first, Make& make) : reduced_piece(first), value(make()) {}
    T value;
  };

  // Written by the threads that run pieces; read when they are done.
  std::atomic<reduced_piece*> first_{nullptr};
};

}  // namespace lev::detail

#endif
