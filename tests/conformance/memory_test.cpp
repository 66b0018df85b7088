// Conformance: memory arguments. Contiguous and strided, read, written and both, empty, unaligned,
// and that no byte outside of an argument changes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using memory_test = machine_test;
LEV_ON_EVERY_MACHINE(memory_test);

using words = std::vector<std::uint64_t>;

const auto add =
    define("memory.add", [](in<std::uint64_t> a, in<std::uint64_t> b, out<std::uint64_t> sum) {
      for (std::size_t r = 0; r < sum.rows(); ++r) {
        for (std::size_t i = 0; i < sum.row_size(); ++i) sum.row(r)[i] = a.row(r)[i] + b.row(r)[i];
      }
    });

LEV_TEST(memory_test, contiguous_in_and_out) {
  words a(1000);
  words b(1000);
  std::iota(a.begin(), a.end(), 1);
  std::iota(b.begin(), b.end(), 5000);
  words sum(1000);
  open().submit(add, a, b, sum).wait();
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(sum[i], a[i] + b[i]);
}

LEV_TEST(memory_test, inout_is_read_and_written) {
  runtime& r = open();
  words x(100, 7);
  for (int i = 0; i < 5; ++i) expect_ok(r.submit(increment, x));
  EXPECT_EQ(x, words(100, 12));
}

// A matrix in which a block is named by stride; the rest must stay as it is.
struct matrix {
  static constexpr std::size_t rows = 20;
  static constexpr std::size_t columns = 30;
  words at = words(rows * columns);

  matrix() { std::iota(at.begin(), at.end(), 0); }
  std::uint64_t* place(std::size_t r, std::size_t c) { return at.data() + r * columns + c; }
  auto block(std::size_t r, std::size_t c, std::size_t height, std::size_t width) {
    return strided(place(r, c), height, width, columns);
  }
};

LEV_TEST(memory_test, strided_inout_changes_its_block_only) {
  matrix m;
  matrix expected;
  for (std::size_t r = 3; r < 10; ++r) {
    for (std::size_t c = 5; c < 9; ++c) ++*expected.place(r, c);
  }
  open().submit(increment, m.block(3, 5, 7, 4)).wait();
  EXPECT_EQ(m.at, expected.at);
}

LEV_TEST(memory_test, strided_out_changes_its_block_only) {
  matrix m;
  matrix expected;
  for (std::size_t r = 0; r < 20; ++r) *expected.place(r, 29) = 4711;
  open().submit(store, std::uint64_t{4711}, m.block(0, 29, 20, 1)).wait();
  EXPECT_EQ(m.at, expected.at);
}

LEV_TEST(memory_test, strided_in_and_out_of_different_strides) {
  matrix a;
  words b(4 * 6, 100);
  words sum(4 * 50, 0);
  open()
      .submit(add, a.block(2, 3, 4, 6), strided(b.data(), 4, 6, 6), strided(sum.data(), 4, 6, 50))
      .wait();
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 50; ++c) {
      ASSERT_EQ(sum[r * 50 + c], c < 6 ? *a.place(2 + r, 3 + c) + 100 : 0);
    }
  }
}

// Strided memory is packed: the worker sees its rows one behind the other.
const auto check_packed =
    define("memory.check_packed", [](inout<std::uint64_t> x, result<int> is_packed) {
      is_packed = x.row(1) == x.data() + x.row_size() ? 1 : 0;
    });

LEV_TEST(memory_test, strided_memory_is_packed_for_the_worker) {
  matrix m;
  int is_packed = 0;
  open().submit(check_packed, m.block(1, 1, 3, 3), is_packed).wait();
  EXPECT_EQ(is_packed, 1);
}

// Two blocks of one matrix whose extents interleave, written at the same time.
LEV_TEST(memory_test, interleaved_blocks_are_written_side_by_side) {
  runtime& r = open();
  for (int i = 0; i < 20; ++i) {
    matrix m;
    ticket left = r.submit(store, std::uint64_t{1}, m.block(0, 0, 20, 15));
    ticket right = r.submit(store, std::uint64_t{2}, m.block(0, 15, 20, 15));
    expect_ok(left);
    expect_ok(right);
    for (std::size_t c = 0; c < 30; ++c) ASSERT_EQ(*m.place(19, c), c < 15 ? 1u : 2u);
  }
}

// The rows of an input may overlap each other: a sliding window, or one row read again and again.
const auto sum_rows = define("memory.sum_rows", [](in<std::uint64_t> x, result<std::uint64_t> sum) {
  std::uint64_t s = 0;
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t i = 0; i < x.row_size(); ++i) s += x.row(r)[i];
  }
  sum = s;
});

LEV_TEST(memory_test, rows_of_an_input_may_overlap) {
  words x(10);
  std::iota(x.begin(), x.end(), 0);
  std::uint64_t sum = 0;
  runtime& r = open();
  r.submit(sum_rows, strided(x.data(), 8, 3, 1), sum).wait();
  EXPECT_EQ(sum, 108u);
  r.submit(sum_rows, strided(x.data(), 5, 10, 0), sum).wait();
  EXPECT_EQ(sum, 225u);
}

const auto sizes =
    define("memory.sizes", [](in<char> a, out<char> b, inout<char> c, result<std::uint64_t> seen) {
      seen = a.size() + b.size() + c.size();
    });

LEV_TEST(memory_test, empty_arguments_are_accepted) {
  runtime& r = open();
  std::uint64_t seen = 1;
  char x[4] = {1, 2, 3, 4};
  char* null = nullptr;
  r.submit(sizes, view(null, 0), view(null, 0), view(null, 0), seen).wait();
  EXPECT_EQ(seen, 0u);
  r.submit(sizes, strided(null, 0, 5, 9), strided(x, 0, 4, 4), strided(x, 3, 0, 4), seen).wait();
  EXPECT_EQ(seen, 0u);
  EXPECT_EQ(x[0], 1);
}

const auto add_one_to_each = define("memory.add_one_to_each", [](inout<std::uint64_t> x) {
  for (std::uint64_t& one : x) ++one;
});

// Such as the last block of a matrix, where its width is a multiple of the block's.
LEV_TEST(memory_test, rows_of_nothing_are_an_empty_range) {
  matrix m;
  const matrix before;
  runtime& r = open();
  expect_ok(r.submit(add_one_to_each, m.block(3, 5, 4, 0)));
  expect_ok(r.submit(add_one_to_each, sliced(m.block(3, 5, 4, 0))));
  EXPECT_EQ(m.at, before.at);
  const inout<std::uint64_t> apart(m.place(0, 0), 2, 3, 240);
  EXPECT_THROW((void)apart.end(), error);
}

// What a body gets may be handed on: it names the same rows.
LEV_TEST(memory_test, a_view_that_is_handed_on_keeps_its_rows) {
  runtime& r = open();
  matrix m;
  matrix expected;
  constexpr std::ptrdiff_t stride = matrix::columns * sizeof(std::uint64_t);
  const inout<std::uint64_t> whole(m.place(3, 5), 4, 7, stride);
  for (std::size_t i = 0; i < 7; ++i) {
    for (std::size_t k = 0; k < 4; ++k) *expected.place(3 + i, 5 + k) += 2;
  }
  expect_ok(r.submit(increment, whole));
  expect_ok(r.submit(options().grain(1), increment, sliced(whole)));
  EXPECT_EQ(m.at, expected.at);
  std::uint64_t sum = 0;
  r.submit(sum_rows, in<std::uint64_t>(m.place(0, 0), 1, 3, 2 * stride), sum).wait();
  EXPECT_EQ(sum, 0u + 60u + 120u);
  EXPECT_THROW((void)each(whole), error);
}

const auto shape_of =
    define("memory.shape_of", [](in<std::uint64_t> x, result<int> rows, result<int> row_size) {
      rows = static_cast<int>(x.rows());
      row_size = static_cast<int>(x.row_size());
    });
struct shape {
  int rows;
  int row_size;
};
const auto shape_of_child =
    define("memory.shape_of_child", [](ref<runtime> home, in<std::uint64_t> x, result<shape> seen) {
      shape s{};
      home.to->submit(shape_of, x, s.rows, s.row_size).wait();
      seen = s;
    });

LEV_TEST(memory_test, a_block_that_a_body_hands_on_keeps_its_rows) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  matrix m;
  shape seen{};
  r.submit(shape_of_child, ref{&r}, m.block(3, 5, 7, 4), seen).wait();
  EXPECT_EQ(seen.rows, 7);
  EXPECT_EQ(seen.row_size, 4);
}

// Every alignment of address and length, with bytes around that must stay.
const auto flip = define("memory.flip", [](in<unsigned char> a, out<unsigned char> b) {
  for (std::size_t i = 0; i < a.size(); ++i) b[i] = static_cast<unsigned char>(~a[i]);
});

LEV_TEST(memory_test, any_address_and_length_will_do) {
  runtime& r = open();
  unsigned char from[256];
  std::iota(from, from + 256, 0);
  for (std::size_t offset = 0; offset < 20; ++offset) {
    for (const std::size_t size : {1u, 2u, 3u, 7u, 16u, 31u, 64u, 129u}) {
      unsigned char to[256];
      std::memset(to, 0x55, sizeof to);
      r.submit(flip, view(from + offset, size), view(to + 2 * offset + 1, size)).wait();
      for (std::size_t i = 0; i < sizeof to; ++i) {
        const std::size_t at = i - (2 * offset + 1);
        const bool inside = i >= 2 * offset + 1 && at < size;
        const auto flipped = static_cast<unsigned char>(~(offset + at));
        ASSERT_EQ(to[i], inside ? flipped : 0x55) << offset << " " << size << " " << i;
      }
    }
  }
}

struct odd {
  char at[13];
};

LEV_TEST(memory_test, elements_of_an_odd_size) {
  static const auto copy = define("memory.copy_odd", [](in<odd> a, out<odd> b) {
    for (std::size_t r = 0; r < a.rows(); ++r) {
      for (std::size_t i = 0; i < a.row_size(); ++i) b.row(r)[i] = a.row(r)[i];
    }
  });
  std::vector<odd> a(50);
  std::vector<odd> b(50);
  for (std::size_t i = 0; i < 50; ++i) std::memset(a[i].at, static_cast<int>(i), 13);
  open().submit(copy, strided(a.data() + 1, 7, 5, 7), strided(b.data() + 1, 7, 5, 7)).wait();
  for (std::size_t i = 0; i < 50; ++i) {
    const bool inside = i >= 1 && (i - 1) % 7 < 5 && (i - 1) / 7 < 7;
    ASSERT_EQ(b[i].at[12], inside ? static_cast<char>(i) : 0) << i;
  }
}

// The largest task that fits the local store exactly.
LEV_TEST(memory_test, a_task_may_fill_the_local_store_to_the_last_byte) {
  config c = settings();
  c.local_store_bytes = 64 << 10;
  runtime& r = open(c);
  words x((64 << 10) / sizeof(std::uint64_t), 1);
  for (int i = 0; i < 4; ++i) expect_ok(r.submit(increment, x));
  EXPECT_EQ(x, words(x.size(), 5));
}

// More data at a time than a local store holds: later tasks wait for room.
LEV_TEST(memory_test, many_large_tasks_share_a_small_store) {
  config c = settings();
  c.local_store_bytes = 16 << 10;
  runtime& r = open(c);
  std::vector<words> x(40, words(1500, 0));
  std::vector<ticket> tickets;
  for (words& one : x) tickets.push_back(r.submit(increment, one));
  EXPECT_EQ(wait_all(tickets.data(), tickets.size(), wait_limit_ns()).code, status::ok);
  for (const words& one : x) ASSERT_EQ(one, words(1500, 1));
}

}  // namespace
}  // namespace lev::test
