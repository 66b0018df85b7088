// What parallel_reduce() keeps of its pieces until they are put together. For runtime.hpp.
#ifndef LEVERET_REDUCE_HPP
#define LEVERET_REDUCE_HPP

#include <cstdint>

namespace lev::detail {

struct reduced_piece {
  explicit reduced_piece(std::uint64_t first) noexcept : begin(first) {}
  std::uint64_t begin;
  reduced_piece* next = nullptr;
};

// A list of pieces. Throws std::bad_alloc.
struct reduction;
reduction* open_reduction();
// Any thread, until the loop has ended.
void add_piece(reduction* r, reduced_piece* made) noexcept;
// sort_pieces() returns the first by `begin`, close_reduction() the first of what is left to be
// deleted, as if there had been no such list.
reduced_piece* sort_pieces(reduction* r) noexcept;
reduced_piece* close_reduction(reduction* r) noexcept;

template <class T>
class reduced_pieces {
 public:
  reduced_pieces() : list_(open_reduction()) {}
  reduced_pieces(const reduced_pieces&) = delete;
  reduced_pieces& operator=(const reduced_pieces&) = delete;
  ~reduced_pieces() {
    for (reduced_piece* p = close_reduction(list_); p != nullptr;) {
      auto* done = static_cast<piece*>(p);
      p = p->next;
      delete done;
    }
  }

  // make() gives the value, which is made where it stays. Any thread.
  template <class Make>
  void add(std::uint64_t begin, Make&& make) {
    add_piece(list_, new piece(begin, make));
  }

  // put_together() folds the values from left to right; `otherwise` if there are none. When the
  // loop has ended.
  template <class Combine>
  T put_together(T&& otherwise, Combine& combine) {
    reduced_piece* p = sort_pieces(list_);
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

  reduction* list_;
};

}  // namespace lev::detail

#endif
