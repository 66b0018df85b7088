// Sizes of arguments and the places they cover. Pure functions on checked arguments.
#pragma once

#include <leveret/task.hpp>

#include <span>
#include <type_traits>

namespace lev {

// arguments_of() is those of a draft, a descriptor, a job, a record or a call.
template <class Task>
constexpr std::span<const argument> arguments_of(const Task& t) noexcept {
  if constexpr (std::is_pointer_v<decltype(t.arguments)>) {
    return {t.arguments, t.argument_count};
  } else {
    return {std::data(t.arguments), t.argument_count};
  }
}

// Arguments that name the caller's memory.
constexpr bool has_address(const argument& a) noexcept {
  return is_memory(a.what) || a.what == kind::result;
}
constexpr bool is_output(const argument& a) noexcept {
  return writes_memory(a.what) || a.what == kind::result;
}

constexpr bool is_far(const argument& a) noexcept {
  return (a.flags & argument_far) != 0;
}

constexpr std::uint64_t payload_bytes(const argument& a) noexcept {
  return a.row_bytes * a.rows;
}
constexpr bool is_empty(const argument& a) noexcept {
  return a.row_bytes == 0 || a.rows == 0;
}
constexpr bool is_contiguous(const argument& a) noexcept {
  return a.rows <= 1 || a.stride_bytes == static_cast<std::int64_t>(a.row_bytes);
}
// May be used where it is, as far as its layout goes.
constexpr bool fits_in_place(const argument& a) noexcept {
  return is_contiguous(a) && (a.flags & argument_packed) == 0;
}
// From the first byte to one past the last.
constexpr std::uint64_t extent_bytes(const argument& a) noexcept {
  return is_empty(a) ? 0 : static_cast<std::uint64_t>(a.stride_bytes) * (a.rows - 1) + a.row_bytes;
}

// alignment_of() is that of a copied argument.
constexpr std::size_t alignment_of(const argument& a) noexcept {
  return copied_alignment << ((a.flags & argument_alignment) >> 3);
}

// do_overlap() tells exactly whether two non-empty memory arguments share a byte.
bool do_overlap(const argument& a, const argument& b) noexcept;

}  // namespace lev
