// Conformance: parallel_reduce(): what it gives is what the body gives for the whole range, and
// nothing is left of its pieces.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "support/machine_test.hpp"

namespace lev::test {
namespace {

using parallel_reduce_test = machine_test;
LEV_ON_LOCAL_MACHINES(parallel_reduce_test);

// A reduction in which the order counts: which indices, one behind the other.
std::string names_of(range piece, std::string text) {
  for (std::uint64_t i = piece.begin; i != piece.end; ++i) text += std::to_string(i) + ' ';
  return text;
}

LEV_TEST(parallel_reduce_test, puts_pieces_together_in_their_order) {
  runtime& r = open();
  for (const std::uint64_t n : {1u, 2u, 3u, 100u, 5'000u}) {
    for (const std::uint32_t grain : {0u, 1u, 13u, 100'000u}) {
      const std::string text =
          r.parallel_reduce({7, 7 + n}, std::string(), &names_of, std::plus<std::string>(), grain);
      ASSERT_EQ(text, names_of({7, 7 + n}, "")) << n << " indices, grain " << grain;
    }
  }
}

LEV_TEST(parallel_reduce_test, of_no_index_gives_the_identity) {
  runtime& r = open();
  EXPECT_EQ(r.parallel_reduce({3, 3}, std::string("none"), &names_of, std::plus<std::string>()),
            "none");
  EXPECT_THROW(r.parallel_reduce({4, 3}, std::string(), &names_of, std::plus<std::string>()),
               error);
}

LEV_TEST(parallel_reduce_test, in_a_piece_of_another) {
  runtime& r = open();
  const auto sum_to = [&](std::uint64_t n) {
    return r.parallel_reduce(
        {0, n}, std::uint64_t{0},
        [](range piece, std::uint64_t own) {
          for (std::uint64_t i = piece.begin; i != piece.end; ++i) own += i;
          return own;
        },
        std::plus<>(), 8);
  };
  const std::uint64_t all = r.parallel_reduce(
      {0, 100}, std::uint64_t{0},
      [&](range piece, std::uint64_t own) {
        for (std::uint64_t i = piece.begin; i != piece.end; ++i) own += sum_to(i);
        return own;
      },
      std::plus<>(), 1);
  EXPECT_EQ(all, 161'700u);  // of i (i - 1) / 2 for i below 100
}

// Counts those that are there, and can be moved and copied but not made from nothing.
class counted {
 public:
  explicit counted(int value) noexcept : value_(value) { ++there; }
  counted(const counted& other) : value_(other.value_) {
    if (throws_in_copies) throw std::length_error("copy");
    ++there;
  }
  counted(counted&& other) noexcept : value_(std::exchange(other.value_, -1)) { ++there; }
  counted& operator=(counted&& other) noexcept {
    value_ = std::exchange(other.value_, -1);
    return *this;
  }
  ~counted() { --there; }
  int value() const noexcept { return value_; }

  static inline std::atomic<int> there{0};
  static inline bool throws_in_copies = false;

 private:
  int value_;
};

counted count_indices(range piece, counted own) {
  return counted(own.value() + static_cast<int>(piece.size()));
}
counted sum(counted a, counted b) {
  return counted(a.value() + b.value());
}

LEV_TEST(parallel_reduce_test, leaves_no_value_behind) {
  runtime& r = open();
  EXPECT_EQ(r.parallel_reduce({0, 1'000}, counted(0), &count_indices, &sum, 1).value(), 1'000);
  EXPECT_EQ(counted::there, 0);
}

LEV_TEST(parallel_reduce_test, leaves_none_behind_when_something_throws) {
  runtime& r = open();
  const auto fails_at = [](range piece, counted own) {
    if (piece.begin <= 500 && 500 < piece.end) throw std::range_error("body");
    return own;
  };
  EXPECT_THROW(r.parallel_reduce({0, 1'000}, counted(0), fails_at, &sum, 1), std::range_error);
  EXPECT_EQ(counted::there, 0);
  const auto refuses = [](counted, counted) -> counted { throw std::domain_error("combine"); };
  const auto two_halves = [&] {
    return r.parallel_reduce({0, 1'000}, counted(0), &count_indices, refuses, 1);
  };
  try {
    EXPECT_EQ(two_halves().value(), 1'000) << "in one piece nothing is combined";
  } catch (const std::domain_error&) {
  }
  EXPECT_EQ(counted::there, 0);
  counted::throws_in_copies = true;
  EXPECT_THROW(r.parallel_reduce({0, 10}, counted(0), &count_indices, &sum), std::length_error);
  counted::throws_in_copies = false;
  EXPECT_EQ(counted::there, 0);
}

}  // namespace
}  // namespace lev::test
