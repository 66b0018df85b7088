// Conformance: data larger than a local store. A sliced task is cut until its pieces fit; one that
// cannot be cut is refused with the numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

constexpr std::size_t store_bytes = 16 << 10;

class strip_mining_test : public machine_test {
 protected:
  runtime& open_small(std::uint32_t tickets = 1024) {
    config c = settings();
    c.staging = staging::copy;
    c.local_store_bytes = store_bytes;
    c.tickets = tickets;
    return open(c);
  }
};
LEV_ON_EVERY_MACHINE(strip_mining_test);

using words = std::vector<std::uint64_t>;

const auto add_weighted =
    define("strip.blend", [](std::uint64_t weight, in<std::uint64_t> a, inout<std::uint64_t> b) {
      ASSERT_LE(a.size() * 16, store_bytes);
      for (std::size_t i = 0; i < a.size(); ++i) b[i] = weight * a[i] + b[i];
    });

LEV_TEST(strip_mining_test, an_argument_a_hundred_times_the_store) {
  runtime& r = open_small();
  constexpr std::size_t n = 100 * store_bytes / sizeof(std::uint64_t);
  words a(n);
  words b(n);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 7);
  for (int i = 0; i < 3; ++i)
    expect_ok(r.submit(add_weighted, std::uint64_t{5}, sliced(a), sliced(b)));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(b[i], i + 7 + 15 * i) << i;
  EXPECT_GT(r.count().diced, 100u);
}

LEV_TEST(strip_mining_test, rows_of_a_large_matrix) {
  runtime& r = open_small();
  constexpr std::size_t rows = 500;
  constexpr std::size_t width = 150;
  constexpr std::size_t pitch = 200;
  words m(rows * pitch, 1);
  expect_ok(r.submit(increment, sliced(strided(m.data(), rows, width, pitch))));
  for (std::size_t i = 0; i < m.size(); ++i) ASSERT_EQ(m[i], i % pitch < width ? 2u : 1u) << i;
}

// A grain above what fits must not keep the task from being cut.
LEV_TEST(strip_mining_test, a_large_grain_gives_way) {
  runtime& r = open_small();
  words x(10'000, 1);
  expect_ok(r.submit(options().grain(9000), increment, sliced(x)));
  EXPECT_EQ(x, words(10'000, 2));
}

LEV_TEST(strip_mining_test, with_hardly_any_tickets) {
  for (const std::uint32_t tickets : {2u, 4u, 8u}) {
    runtime& r = open_small(tickets);
    words x(20'000, 1);
    expect_ok(r.submit(increment, sliced(x)));
    ASSERT_EQ(x, words(20'000, 2)) << tickets << " tickets";
  }
}

LEV_TEST(strip_mining_test, several_big_tasks_fill_all_tickets) {
  runtime& r = open_small(4);
  std::vector<words> x(12, words(10'000, 1));
  for (words& one : x) r.submit(increment, sliced(one));
  expect_all_done();
  for (const words& one : x) ASSERT_EQ(one, words(10'000, 2));
}

LEV_TEST(strip_mining_test, what_cannot_be_cut_is_refused_with_the_numbers) {
  runtime& r = open_small();
  words x(store_bytes / sizeof(std::uint64_t) + 1, 1);
  refusal why;
  EXPECT_FALSE(r.try_submit(pack(increment, x), nullptr, &why));
  EXPECT_EQ(why.code, status::too_big);
  const std::string message = why.message;
  EXPECT_NE(message.find("16448"), std::string::npos) << message;
  EXPECT_NE(message.find("16384"), std::string::npos) << message;
  EXPECT_EQ(x, words(x.size(), 1));
}

// A piece has one item at least, and all that is not sliced.
LEV_TEST(strip_mining_test, what_no_cut_makes_small_enough_is_refused_with_the_numbers) {
  static const auto add =
      define("strip.add_first", [](in<std::uint64_t> a, inout<std::uint64_t> x) {
        for (std::uint64_t& one : x) one += a[0];
      });
  runtime& r = open_small();
  words m(4 * 5000, 1), all(2500, 1), x(10, 1);
  refusal why;
  EXPECT_FALSE(
      r.try_submit(pack(increment, sliced(strided(m.data(), 4, 2500, 5000))), nullptr, &why));
  EXPECT_EQ(why.code, status::too_big);
  EXPECT_NE(std::string(why.message).find("20032"), std::string::npos) << why.message;
  EXPECT_NE(std::string(why.message).find("16384"), std::string::npos) << why.message;
  EXPECT_FALSE(r.try_submit(pack(add, all, sliced(x)), nullptr, &why));
  EXPECT_EQ(why.code, status::too_big);
  EXPECT_NE(std::string(why.message).find("20096"), std::string::npos) << why.message;
  expect_ok(r.submit(increment, x));
  EXPECT_EQ(x, words(10, 2));
}

LEV_TEST(strip_mining_test, failing_pieces_leave_their_strip_as_it_was) {
  static const auto fails_on_odd = define("strip.fails_on_odd", [](inout<std::uint64_t> x) {
    const bool is_odd = x[0] % 2 == 1;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1'000'000;
    if (is_odd) throw 1;
  });
  runtime& r = open_small();
  words x(20'000, 0);
  x[15'000] = 1;  // alone in front of a piece or inside one: only the first word of a piece counts
  ticket t = r.submit(options().grain(1), fails_on_odd, sliced(x));
  wait(t);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(x[i] <= 1 || x[i] == 1'000'000) << i;
}

LEV_TEST(strip_mining_test, big_tasks_in_bulk_behind_others_and_with_mutexes) {
  runtime& r = open_small(64);
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  words x(8000, 0);
  ticket first = r.submit(locks(m), increment, sliced(x));
  ticket second = r.submit(after(first).locks(m), increment, sliced(x));
  expect_ok(second);
  std::vector<words> y(10, words(8000, 0));
  expect_ok(r.submit_bulk(
      y.size(), [&](std::size_t i, descriptor& d) { d = pack(increment, sliced(y[i])); }));
  EXPECT_EQ(x, words(8000, 2));
  for (const words& one : y) ASSERT_EQ(one, words(8000, 1));
}

// Data that is in place is as large as it likes.
LEV_TEST(strip_mining_test, in_place_memory_has_no_bound) {
  if (copies()) GTEST_SKIP() << "this machine copies";
  config c = settings();
  c.local_store_bytes = 4096;
  runtime& r = open(c);
  words x(100'000, 1);
  expect_ok(r.submit(increment, x));
  EXPECT_EQ(x, words(100'000, 2));
}

}  // namespace
}  // namespace lev::test
