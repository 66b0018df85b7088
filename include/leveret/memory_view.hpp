// memory_view: memory as a procedure sees it, and lev::in, lev::out and lev::inout, by which it
// says what it does there.
#ifndef LEVERET_MEMORY_VIEW_HPP
#define LEVERET_MEMORY_VIEW_HPP

#include <leveret/version.hpp>

#include <cstddef>
#include <type_traits>

namespace lev {

namespace detail {
[[noreturn]] void throw_rows_apart();
}  // namespace detail

// Memory as a procedure sees it: `rows()` rows of `row_size()` elements. One row is the usual case;
// then index it with []. Rows may be apart (in place) or packed (copied to the local store): use
// row(r) when there is more than one. begin() to end() are all elements; where rows are apart there
// is no such range, and end() throws lev::error (bad_argument). A body that passes it to a task
// passes its rows; lev::sliced() then cuts between them. A program that calls a body itself, say in
// a test, makes one of a place and a size: saxpy(2, {x, n}, {y, n}).
template <class T>
class memory_view {
 public:
  memory_view(T* data, std::size_t size) noexcept
      : memory_view(data, size, 1, static_cast<std::ptrdiff_t>(size * sizeof(T))) {}
  memory_view(T* data, std::size_t row_size, std::size_t rows, std::ptrdiff_t stride_bytes) noexcept
      : data_(data), row_size_(row_size), rows_(rows), stride_bytes_(stride_bytes) {}

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return row_size_ * rows_; }
  std::size_t rows() const noexcept { return rows_; }
  std::size_t row_size() const noexcept { return row_size_; }
  std::ptrdiff_t stride_bytes() const noexcept { return stride_bytes_; }  // from row to row
  T* row(std::size_t r) const noexcept {
    using byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(reinterpret_cast<byte*>(data_) +
                                static_cast<std::ptrdiff_t>(r) * stride_bytes_);
  }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* begin() const noexcept { return data_; }
  T* end() const {
    if (rows_ > 1 && stride_bytes_ != static_cast<std::ptrdiff_t>(row_size_ * sizeof(T)) &&
        row_size_ != 0)
      detail::throw_rows_apart();
    return data_ + size();
  }

 private:
  T* data_;
  std::size_t row_size_;
  std::size_t rows_;
  std::ptrdiff_t stride_bytes_;
};

template <class T>
struct in : memory_view<const T> {
  using element_type = T;
  using memory_view<const T>::memory_view;
};
template <class T>
struct out : memory_view<T> {
  using element_type = T;
  using memory_view<T>::memory_view;
};
template <class T>
struct inout : memory_view<T> {
  using element_type = T;
  using memory_view<T>::memory_view;
};

}  // namespace lev

#endif
