// Tests of the dicing arithmetic: for every small number of items and pieces, the pieces are in
// order, nearly equal, and together exactly the whole.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "task/slice.hpp"

namespace lev {
namespace {

constexpr std::uint16_t unit = 4;
constexpr std::int64_t stride = 56;
constexpr std::uint64_t begin_index = 1000;

argument sliced_range(std::uint64_t items) {
  argument a;
  a.what = kind::range;
  a.address = begin_index;
  a.row_bytes = begin_index + items;
  a.flags = argument_sliced;
  return a;
}

argument sliced_elements(std::uint64_t items) {
  argument a;
  a.what = kind::inout;
  a.address = 0x1000;
  a.unit_bytes = unit;
  a.row_bytes = items * unit;
  a.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  a.flags = argument_sliced;
  return a;
}

argument sliced_rows(std::uint64_t items) {
  argument a;
  a.what = kind::out;
  a.address = 0x9000;
  a.unit_bytes = unit;
  a.row_bytes = 24;
  a.stride_bytes = stride;
  a.rows = static_cast<std::uint32_t>(items);
  a.flags = argument_sliced;
  return a;
}

// A task with one sliced argument of each sort, and one that every piece gets whole.
descriptor whole_task(std::uint64_t items) {
  descriptor d;
  d.procedure = 7;
  d.argument_count = 4;
  d.priority = -3;
  d.key = 99;
  d.arguments[0] = sliced_range(items);
  d.arguments[1] = sliced_elements(items);
  d.arguments[2] = sliced_rows(items);
  d.arguments[3] = sliced_elements(5);
  d.arguments[3].what = kind::in;
  d.arguments[3].flags = 0;
  return d;
}

// Checks one piece that should hold items [begin, end) of `whole`.
void check_piece(const descriptor& whole, const descriptor& p, std::uint64_t begin,
                 std::uint64_t end) {
  ASSERT_EQ(p.arguments[0].address, begin_index + begin);
  ASSERT_EQ(p.arguments[0].row_bytes, begin_index + end);
  ASSERT_EQ(p.arguments[1].address, whole.arguments[1].address + begin * unit);
  ASSERT_EQ(p.arguments[1].row_bytes, (end - begin) * unit);
  const auto row_offset = static_cast<std::uint64_t>(stride) * begin;
  ASSERT_EQ(p.arguments[2].address, whole.arguments[2].address + row_offset);
  ASSERT_EQ(p.arguments[2].row_bytes, 24u);
  ASSERT_EQ(p.arguments[3].address, whole.arguments[3].address);
  ASSERT_EQ(p.arguments[3].row_bytes, whole.arguments[3].row_bytes);
  ASSERT_EQ(p.priority, whole.priority);
  ASSERT_EQ(p.key, whole.key);
  ASSERT_EQ(p.procedure, whole.procedure);
}

void check_slicing(std::uint64_t items, std::uint32_t pieces) {
  const descriptor whole = whole_task(items);
  std::vector<descriptor> cuts(pieces);
  slice(whole, cuts.data(), pieces);
  std::uint64_t begin = 0;
  for (const descriptor& cut : cuts) {
    const std::uint64_t share = slice_items(cut.arguments[0]);
    ASSERT_GE(share, items / pieces);
    ASSERT_LE(share, items / pieces + 1);
    ASSERT_NO_FATAL_FAILURE(check_piece(whole, cut, begin, begin + share));
    begin += share;
  }
  ASSERT_EQ(begin, items);
}

TEST(slice, every_small_task_is_cut_exactly) {
  for (std::uint64_t items = 2; items <= 70; ++items) {
    for (std::uint32_t pieces = 1; pieces <= items && pieces <= 32; ++pieces) {
      ASSERT_NO_FATAL_FAILURE(check_slicing(items, pieces)) << items << " into " << pieces;
    }
  }
}

TEST(slice, cutting_again_reaches_every_item_once) {
  for (std::uint64_t items = 2; items <= 40; ++items) {
    std::vector<int> seen(items);
    descriptor halves[2];
    slice(whole_task(items), halves, 2);
    for (const descriptor& half : halves) {
      const auto n = static_cast<std::uint32_t>(task_items(half));
      std::vector<descriptor> singles(n);
      slice(half, singles.data(), n);
      for (const descriptor& one : singles) ++seen[one.arguments[0].address - begin_index];
    }
    ASSERT_EQ(seen, std::vector<int>(items, 1));
  }
}

TEST(slice, counts_nothing_where_nothing_is_sliced) {
  descriptor d = whole_task(5);
  for (argument& a : d.arguments) a.flags = 0;
  EXPECT_EQ(task_items(d), 0u);
  EXPECT_EQ(task_items(descriptor{}), 0u);
}

TEST(slice, counts_items_of_extremes) {
  EXPECT_EQ(slice_items(sliced_range(0)), 0u);
  EXPECT_EQ(slice_items(sliced_rows(0)), 0u);
  argument huge = sliced_range(0);
  huge.address = 0;
  huge.row_bytes = ~std::uint64_t{0};
  EXPECT_EQ(slice_items(huge), ~std::uint64_t{0});
  argument no_unit = sliced_elements(3);
  no_unit.unit_bytes = 0;
  EXPECT_EQ(slice_items(no_unit), 0u);
}

TEST(slice, a_range_over_all_indices_is_cut_without_overflow) {
  descriptor d;
  d.argument_count = 1;
  d.arguments[0] = sliced_range(0);
  d.arguments[0].address = 0;
  d.arguments[0].row_bytes = ~std::uint64_t{0};
  descriptor cuts[32];
  slice(d, cuts, 32);
  EXPECT_EQ(cuts[0].arguments[0].address, 0u);
  EXPECT_EQ(cuts[31].arguments[0].row_bytes, ~std::uint64_t{0});
  for (int i = 1; i < 32; ++i) {
    EXPECT_EQ(cuts[i].arguments[0].address, cuts[i - 1].arguments[0].row_bytes);
  }
}

}  // namespace
}  // namespace lev
