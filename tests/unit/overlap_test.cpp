// Tests of do_overlap() and the sizes of arguments, against sets of bytes: every pair of small
// strided arguments at every distance.
#include <leveret/args.hpp>
#include <leveret/status.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/refused.hpp"
#include "task/arguments.hpp"

namespace lev {
namespace {

constexpr std::uint64_t base = 0x10000;

argument strided_argument(kind what, std::uint64_t address, std::uint64_t row_bytes,
                          std::uint32_t rows, std::int64_t stride) {
  argument a;
  a.what = what;
  a.address = address;
  a.row_bytes = row_bytes;
  a.rows = rows;
  a.stride_bytes = stride;
  return a;
}

// The bytes an argument covers, as bits from `base` on.
std::uint64_t bytes_of(const argument& a) {
  std::uint64_t bits = 0;
  for (std::uint32_t r = 0; r < a.rows; ++r) {
    const std::uint64_t row = a.address - base + r * static_cast<std::uint64_t>(a.stride_bytes);
    for (std::uint64_t b = 0; b < a.row_bytes; ++b) bits |= std::uint64_t{1} << (row + b);
  }
  return bits;
}

// All shapes of up to four rows; an input's rows may overlap each other, an output's may not.
std::vector<argument> shapes(kind what) {
  std::vector<argument> all;
  for (std::uint32_t rows = 1; rows <= 4; ++rows) {
    for (std::uint64_t row_bytes = 1; row_bytes <= 4; ++row_bytes) {
      for (std::int64_t stride = 0; stride <= 7; ++stride) {
        const bool rows_meet = rows > 1 && stride < static_cast<std::int64_t>(row_bytes);
        if (what == kind::out && rows_meet) continue;
        all.push_back(strided_argument(what, base, row_bytes, rows, stride));
      }
    }
  }
  return all;
}

std::string describe(const argument& a) {
  return "at " + std::to_string(a.address - base) + ": " + std::to_string(a.rows) + " rows of " +
         std::to_string(a.row_bytes) + " every " + std::to_string(a.stride_bytes);
}

void compare_at_all_distances(argument output, argument other) {
  for (std::uint64_t distance = 0; distance <= 34; ++distance) {
    other.address = base + distance;
    const bool expected = (bytes_of(output) & bytes_of(other)) != 0;
    ASSERT_EQ(do_overlap(output, other), expected) << describe(output) << "; " << describe(other);
    ASSERT_EQ(do_overlap(other, output), expected) << describe(other) << "; " << describe(output);
  }
}

TEST(overlap, every_small_pair_agrees_with_sets_of_bytes) {
  for (const argument& output : shapes(kind::out)) {
    for (const argument& other : shapes(kind::in)) compare_at_all_distances(output, other);
    if (HasFatalFailure()) return;
  }
}

// The output may also start behind the other argument.
TEST(overlap, is_symmetric_in_position) {
  for (argument output : shapes(kind::out)) {
    for (const argument& other : shapes(kind::in)) {
      output.address = base + 11;
      const bool expected = (bytes_of(output) & bytes_of(other)) != 0;
      ASSERT_EQ(do_overlap(output, other), expected) << describe(output) << "; " << describe(other);
    }
  }
}

TEST(overlap, blocks_of_one_matrix_side_by_side_are_apart) {
  constexpr std::int64_t pitch = 4096;
  const argument left = strided_argument(kind::inout, base, 512, 64, pitch);
  const argument right = strided_argument(kind::in, base + 512, 512, 64, pitch);
  const argument wide = strided_argument(kind::in, base + 511, 512, 64, pitch);
  EXPECT_FALSE(do_overlap(left, right));
  EXPECT_TRUE(do_overlap(left, wide));
}

TEST(overlap, works_at_the_end_of_the_address_space) {
  const std::uint64_t top = ~std::uint64_t{0};
  const argument last = strided_argument(kind::out, top - 8, 8, 1, 8);
  const argument before = strided_argument(kind::in, top - 16, 8, 1, 8);
  const argument across = strided_argument(kind::in, top - 12, 8, 1, 8);
  EXPECT_FALSE(do_overlap(last, before));
  EXPECT_TRUE(do_overlap(last, across));
}

TEST(arguments, sizes_of_a_strided_block) {
  const argument a = strided_argument(kind::in, base, 24, 10, 100);
  EXPECT_EQ(payload_bytes(a), 240u);
  EXPECT_EQ(extent_bytes(a), 924u);
  EXPECT_FALSE(is_contiguous(a));
  EXPECT_FALSE(is_empty(a));
  EXPECT_TRUE(is_contiguous(strided_argument(kind::in, base, 24, 10, 24)));
  EXPECT_TRUE(is_contiguous(strided_argument(kind::in, base, 24, 1, 100)));
}

TEST(arguments, an_empty_one_covers_nothing) {
  EXPECT_TRUE(is_empty(strided_argument(kind::out, base, 0, 5, 8)));
  EXPECT_TRUE(is_empty(strided_argument(kind::out, base, 8, 0, 8)));
  EXPECT_EQ(extent_bytes(strided_argument(kind::out, base, 8, 0, 8)), 0u);
}

TEST(arguments, kinds_are_sorted_into_inputs_and_outputs) {
  argument a;
  const kind all[] = {kind::value, kind::result, kind::in, kind::out, kind::inout, kind::range};
  const bool addressed[] = {false, true, true, true, true, false};
  const bool output[] = {false, true, false, true, true, false};
  for (int i = 0; i < 6; ++i) {
    a.what = all[i];
    EXPECT_EQ(has_address(a), addressed[i]) << i;
    EXPECT_EQ(is_output(a), output[i]) << i;
  }
}

std::vector<int> elements_of(const memory_view<const int>& view) {
  return {view.begin(), view.end()};
}

TEST(memory_view, a_loop_sees_all_elements_or_is_refused) {
  const int all[] = {1, 2, 3, 4, 5, 6};
  const std::ptrdiff_t row = 2 * sizeof(int);
  EXPECT_EQ(elements_of({all, 2, 3, row}), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(elements_of({all, 2, 1, 0}), (std::vector<int>{1, 2}));
  EXPECT_EQ(elements_of({all, 2, 0, 0}), (std::vector<int>{}));
  test::expect_refused(status::bad_argument, "row(r)", [&] { elements_of({all, 2, 2, 2 * row}); });
}

TEST(memory_view, of_a_place_and_a_size_is_one_row) {
  int all[] = {1, 2, 3, 4};
  EXPECT_EQ(elements_of({all, 3}), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(elements_of({nullptr, 0}), (std::vector<int>{}));
  const auto add = [](in<int> x, inout<int> y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x.row(0)[i];
  };
  add({all, 2}, {all + 2, 2});
  EXPECT_EQ(elements_of({all, 4}), (std::vector<int>{1, 2, 4, 6}));
  const inout<int> same(all, 4);
  EXPECT_EQ(same.rows(), 1u);
  EXPECT_EQ(same.row_size(), 4u);
}

}  // namespace
}  // namespace lev
