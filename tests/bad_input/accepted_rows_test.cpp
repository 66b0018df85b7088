// Input that looks bad and is not: the rows of README.md that say "accepted", and the good
// neighbours of refused ones.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using accepted_rows = machine_test;
LEV_ON_EVERY_MACHINE(accepted_rows);

using words = std::vector<std::uint64_t>;

const auto total_size =
    define("bad_input.total_size", [](in<std::uint64_t> a, inout<std::uint64_t> b, result<int> n) {
      n = static_cast<int>(a.size() + b.size());
    });

// Rows 8 and 16: nothing at any address.
LEV_TEST(accepted_rows, empty_memory_at_any_address) {
  runtime& r = open();
  int n = -1;
  words x(8, 1);
  descriptor d = pack(total_size, x, x, n);
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    for (const bool no_rows : {false, true}) {
      for (argument* a : {&d.arguments[0], &d.arguments[1]}) {
        a->address = address;
        a->rows = no_rows ? 0 : 5;
        a->row_bytes = no_rows ? 64 : 0;
        a->stride_bytes = no_rows ? -7 : 3;
      }
      n = -1;
      expect_ok(r.submit(d));
      ASSERT_EQ(n, 0);
    }
  }
}

// Row 23: exactly the local store is accepted, one line more is not (22).
LEV_TEST(accepted_rows, a_task_that_fits_exactly) {
  config c = settings();
  c.staging = staging::copy;
  c.local_store_bytes = 8192;
  runtime& r = open(c);
  words a(512, 1);
  words b(512, 2);
  int n = 0;
  // Two arguments of 4096 bytes leave no line for the result.
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(total_size, a, b, n), nullptr, &why));
  EXPECT_EQ(why.code, status::too_big);
  EXPECT_EQ(why.argument, -1);
  const std::string message = why.message;
  EXPECT_NE(message.find("8256"), std::string::npos) << message;
  EXPECT_NE(message.find("8192"), std::string::npos) << message;
  expect_ok(r.submit(total_size, a, view(b.data(), 504), n));
  EXPECT_EQ(n, 1016);
}

// Neighbours of rows 14, 19 and 20.
LEV_TEST(accepted_rows, memory_that_touches_without_overlap) {
  runtime& r = open();
  words x(100, 1);
  int n = 0;
  expect_ok(r.submit(total_size, view(x.data(), 50), view(x.data() + 50, 50), n));
  EXPECT_EQ(n, 100);
  expect_ok(
      r.submit(total_size, strided(x.data(), 5, 10, 20), strided(x.data() + 10, 5, 10, 20), n));
  EXPECT_EQ(n, 100);
  expect_ok(r.submit(increment, strided(x.data(), 10, 10, 10)));
  EXPECT_EQ(x, words(100, 2));
}

LEV_TEST(accepted_rows, the_same_input_twice) {
  static const auto two = define("bad_input.two_inputs",
                                 [](in<char> a, in<char> b, result<int> n) { n = a[0] + b[0]; });
  std::string text = "a";
  int n = 0;
  open().submit(two, text, text, n).wait();
  EXPECT_EQ(n, 2 * 'a');
}

// Row 42, 43: odd sizes of the store and of the queues work.
LEV_TEST(accepted_rows, odd_sizes_are_rounded) {
  for (const std::uint32_t tickets : {1u, 2u, 3u, 5u, 1000u}) {
    for (const std::size_t store : {std::size_t{1}, std::size_t{4097}, std::size_t{100'000}}) {
      config c = settings();
      c.tickets = tickets;
      c.local_store_bytes = store;
      runtime& r = open(c);
      words x(16, 1);
      for (int i = 0; i < 20; ++i) expect_ok(r.submit(increment, x));
      ASSERT_EQ(x, words(16, 21));
    }
  }
}

}  // namespace
}  // namespace lev::test
