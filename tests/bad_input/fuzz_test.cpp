// Bad input by the hundred thousand: random descriptors, made of numbers that tend to break checks,
// against an oracle that reckons with 128 bits and compares rows one by one.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "support/environment.hpp"
#include "support/procedures.hpp"
#include "task/arguments.hpp"
#include "task/validate.hpp"

namespace lev::test {
namespace {

using wide = unsigned __int128;

const auto target =
    define("fuzz.target", [](int, result<int>, in<char>, out<char>, inout<char>, in<char>) {});
constexpr kind target_kinds[] = {kind::value, kind::result, kind::in,
                                 kind::out,   kind::inout,  kind::in};
constexpr std::uint8_t target_count = 6;

std::uint64_t nasty(random_source& random) {
  static const std::uint64_t edges[] = {
      0,        1,          2,          3,          4,
      7,        8,          16,         17,         64,
      1u << 16, 0x7fffffff, 0x80000000, 0xffffffff, std::uint64_t{1} << 32};
  switch (random.below(4)) {
    case 0:
      return random.below(64);
    case 1:
      return ~std::uint64_t{0} - random.below(64);
    case 2:
      return (std::uint64_t{1} << (32 + random.below(32))) - 1 + random.below(3);
    default:
      return edges[random.below(sizeof edges / sizeof edges[0])];
  }
}

// Near 2^20, so that arguments meet, or anywhere.
std::uint64_t address(random_source& random) {
  return random.below(8) != 0 ? (std::uint64_t{1} << 20) + random.below(64) : nasty(random);
}

argument random_argument(random_source& random, kind what) {
  const bool is_wild = random.below(3) == 0;
  argument a;
  a.what = random.below(40) == 0 ? static_cast<kind>(random.below(256)) : what;
  a.flags = random.below(30) == 0 ? static_cast<std::uint8_t>(random.next()) : 0;
  a.address = address(random);
  a.rows = is_wild ? static_cast<std::uint32_t>(nasty(random)) : random.below(4);
  a.row_bytes = is_wild ? nasty(random) : random.below(12);
  a.stride_bytes = static_cast<std::int64_t>(is_wild ? nasty(random) : random.below(20));
  a.unit_bytes = random.below(10) == 0 ? static_cast<std::uint16_t>(nasty(random)) : 1;
  if (what == kind::result && !is_wild) {
    a.rows = 1;
    a.row_bytes = a.unit_bytes = 4;
    a.stride_bytes = 4;
  }
  return a;
}

bool is_good_memory(const argument& a) {
  if (a.row_bytes == 0 || a.rows == 0) return true;
  if (a.address == 0 || a.rows == 0xffffffff) return false;
  if (a.unit_bytes == 0 || a.row_bytes % a.unit_bytes != 0) return false;
  if (a.rows > 1 && a.stride_bytes < 0) return false;
  const auto stride = static_cast<std::uint64_t>(a.stride_bytes);
  if (a.rows > 1 && stride < a.row_bytes && a.what != kind::in) return false;
  const wide last = a.rows > 1 ? wide{stride} * (a.rows - 1) : 0;
  return wide{a.address} + last + a.row_bytes <= ~std::uint64_t{0};
}

bool is_good_alone(const argument& a) {
  if (a.what == kind::value) return a.unit_bytes <= value_bytes_max;
  if (a.what == kind::result) {
    return a.unit_bytes <= value_bytes_max && a.address != 0 && a.row_bytes == a.unit_bytes &&
           a.rows == 1;
  }
  return is_good_memory(a);
}

// Whether two arguments share a byte, row by row. For few rows only.
bool rows_meet(const argument& a, const argument& b) {
  for (std::uint32_t i = 0; i < a.rows; ++i) {
    for (std::uint32_t k = 0; k < b.rows; ++k) {
      const wide x = wide{a.address} + wide{static_cast<std::uint64_t>(a.stride_bytes)} * i;
      const wide y = wide{b.address} + wide{static_cast<std::uint64_t>(b.stride_bytes)} * k;
      if (x < y + b.row_bytes && y < x + a.row_bytes) return true;
    }
  }
  return false;
}

enum class verdict { good, bad, unknown };

verdict judge(const std::vector<argument>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].what != target_kinds[i]) return verdict::bad;
    // Four flags, and the alignment as the number of a power of two.
    const unsigned flags = all[i].flags;
    if (flags > 0x7f || (flags & argument_alignment) >> 3 > 6) return verdict::bad;
    const bool may_be_packed = is_memory(all[i].what) && (flags & argument_far) == 0;
    if ((flags & argument_packed) != 0 && !may_be_packed) return verdict::bad;
    if (!is_good_alone(all[i])) return verdict::bad;
  }
  verdict v = verdict::good;
  for (const argument& a : all) {
    if (a.flags != 0) v = verdict::unknown;  // slices have rules of their own
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      const argument& a = all[i];
      const argument& b = all[k];
      const bool a_is_output =
          a.what == kind::out || a.what == kind::inout || a.what == kind::result;
      if (i == k || !a_is_output || b.what == kind::value || is_empty(a) || is_empty(b)) continue;
      if (a.rows > 1000 || b.rows > 1000) {
        v = verdict::unknown;
      } else if (rows_meet(a, b)) {
        return verdict::bad;
      }
    }
  }
  return v;
}

std::string describe(const std::vector<argument>& all) {
  std::string text;
  for (const argument& a : all) {
    text += "\n  kind " + std::to_string(static_cast<int>(a.what)) + " at " +
            std::to_string(a.address) + ": " + std::to_string(a.rows) + " rows of " +
            std::to_string(a.row_bytes) + " every " + std::to_string(a.stride_bytes) + ", unit " +
            std::to_string(a.unit_bytes) + ", flags " + std::to_string(a.flags);
  }
  return text;
}

void compare_once(random_source& random, int counts[3]) {
  std::vector<argument> all;
  for (const kind k : target_kinds) {
    all.push_back(random_argument(random, k));
    // Many empty ones, or hardly any task would be accepted.
    if (is_memory(k) && random.below(2) == 0) all.back().row_bytes = 0;
  }
  const verdict expected = judge(all);
  ++counts[static_cast<int>(expected)];
  const detail::draft d{{target.id, target_count}, all.data()};
  draft_facts facts;
  refusal why;
  const bool accepted = validate(d, &facts, &why);
  if (expected == verdict::unknown) return;
  // A payload larger than any address space may be refused besides.
  const bool is_huge = why.code == status::bad_range && expected == verdict::good;
  ASSERT_EQ(accepted || is_huge, expected == verdict::good) << why.message << describe(all);
  if (!accepted) {
    ASSERT_NE(why.code, status::ok);
    ASSERT_NE(why.message[0], 0);
    ASSERT_LT(why.argument, int{target_count});
  }
}

TEST(fuzz, random_descriptors_are_judged_as_by_the_oracle) {
  random_source random(base_seed());
  int counts[3] = {};
  for (int i = 0; i < rounds(100'000); ++i) {
    compare_once(random, counts);
    if (HasFatalFailure()) FAIL() << "LEVERET_SEED=" << base_seed() << ", round " << i;
  }
  // The generator must reach both sides.
  EXPECT_GT(counts[0], rounds(100'000) / 200);
  EXPECT_GT(counts[1], rounds(100'000) / 10);
}

}  // namespace
}  // namespace lev::test
