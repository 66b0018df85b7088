// Exact overlap of strided memory; views of it.
#include "task/arguments.hpp"

#include <leveret/args.hpp>
#include <leveret/status.hpp>

namespace lev {

namespace {

// Equal strides: compare columns modulo the stride. `a` starts at or before `b` and their extents
// meet.
bool columns_overlap(const argument& a, const argument& b, std::uint64_t stride) noexcept {
  const std::uint64_t column = (b.address - a.address) % stride;
  return column < a.row_bytes || column + b.row_bytes > stride;
}

// Different strides: walk both lists of rows, which ascend, side by side.
bool rows_overlap(const argument& a, const argument& b) noexcept {
  std::uint64_t i = 0;
  std::uint64_t j = 0;
  while (i < a.rows && j < b.rows) {
    const std::uint64_t start_a = a.address + i * static_cast<std::uint64_t>(a.stride_bytes);
    const std::uint64_t start_b = b.address + j * static_cast<std::uint64_t>(b.stride_bytes);
    if (start_a + a.row_bytes <= start_b) {
      ++i;
    } else if (start_b + b.row_bytes <= start_a) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace

bool do_overlap(const argument& a, const argument& b) noexcept {
  if (b.address < a.address) return do_overlap(b, a);
  if (b.address >= a.address + extent_bytes(a)) return false;
  if (is_contiguous(a)) return true;
  const bool b_has_stride = b.rows > 1;
  if (b_has_stride && b.stride_bytes != a.stride_bytes) return rows_overlap(a, b);
  const auto stride = static_cast<std::uint64_t>(a.stride_bytes);
  if (!b_has_stride && b.row_bytes > stride) return true;
  return columns_overlap(a, b, stride);
}

void detail::throw_rows_apart() {
  throw error(status::bad_argument, -1,
              "end() of memory whose rows are apart: go through it row by row, with rows(), "
              "row(r) and row_size()");
}

}  // namespace lev
