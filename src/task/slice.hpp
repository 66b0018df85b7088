// Dicing arithmetic: how many items a sliced argument has, and cutting a task along them. Pure
// functions.
//
// Paper: Jack Rabbit section 7.2 (automatic dicing by loop iteration and array bounds); gcell's
// strip mining (future work there).
#pragma once

#include <leveret/task.hpp>
#include <span>

#include "task/arguments.hpp"

namespace lev {

constexpr bool is_sliced_by_rows(const argument& a) noexcept {
  return a.rows != 1 || (a.flags & argument_rows) != 0;
}

// slice_items() counts the items between which dicing may cut: indices of a range, rows, or
// elements when there is one row.
constexpr std::uint64_t slice_items(const argument& a) noexcept {
  if (a.what == kind::range) return a.row_bytes - a.address;
  if (is_sliced_by_rows(a)) return a.rows;
  return a.unit_bytes == 0 ? 0 : a.row_bytes / a.unit_bytes;
}

// cut() narrows a sliced argument to items [begin, end).
inline void cut(argument& a, std::uint64_t begin, std::uint64_t end) noexcept {
  if (a.what == kind::range) {
    a.row_bytes = a.address + end;
    a.address += begin;
  } else if (is_sliced_by_rows(a)) {
    a.flags |= argument_rows;  // also when one row is left
    a.address += static_cast<std::uint64_t>(a.stride_bytes) * begin;
    a.rows = static_cast<std::uint32_t>(end - begin);
  } else {
    a.address += begin * a.unit_bytes;
    a.row_bytes = (end - begin) * a.unit_bytes;
    a.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  }
}

// items_of() is the number of items of the sliced arguments of one task, of which all have equally
// many; 0 when none is sliced. at(i) is its i-th argument.
template <typename At>
constexpr std::uint64_t items_of(unsigned argument_count, const At& at) noexcept {
  for (unsigned i = 0; i < argument_count; ++i) {
    const argument& a = at(i);
    if ((a.flags & argument_sliced) != 0) return slice_items(a);
  }
  return 0;
}

inline std::uint64_t items_of(std::span<const argument> arguments) noexcept {
  return items_of(static_cast<unsigned>(arguments.size()),
                  [&](unsigned i) -> const argument& { return arguments[i]; });
}

inline std::uint64_t task_items(const descriptor& d) noexcept {
  return items_of(arguments_of(d));
}

// slice_begin() is where piece `which` of `pieces` nearly equal ones begins, and the one before it
// ends; `pieces` is at most the number of items.
constexpr std::uint64_t slice_begin(std::uint64_t items, std::uint32_t pieces,
                                    std::uint32_t which) noexcept {
  const std::uint64_t larger_pieces = items % pieces;
  return items / pieces * which + (which < larger_pieces ? which : larger_pieces);
}

// slice() cuts `whole` into `pieces` tasks of nearly equal size, in order.
inline void slice(const descriptor& whole, descriptor* out, std::uint32_t pieces) noexcept {
  const std::uint64_t items = task_items(whole);
  for (std::uint32_t p = 0; p < pieces; ++p) {
    out[p] = whole;
    for (unsigned i = 0; i < whole.argument_count; ++i) {
      if ((whole.arguments[i].flags & argument_sliced) != 0)
        cut(out[p].arguments[i], slice_begin(items, pieces, p), slice_begin(items, pieces, p + 1));
    }
  }
}

}  // namespace lev
