// Tests of the small helpers: random numbers, checked integers, status names.
#include <gtest/gtest.h>
#include <leveret/status.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "support/json.hpp"

namespace lev {
namespace {

TEST(random_source, repeats_for_a_seed_and_differs_between_seeds) {
  random_source first(7);
  random_source second(7);
  random_source other(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t n = first.next();
    ASSERT_EQ(n, second.next());
    differs |= n != other.next();
  }
  EXPECT_TRUE(differs);
}

TEST(random_source, stays_below_its_bound_and_reaches_every_number) {
  random_source random(1);
  for (const std::uint32_t bound : {1u, 2u, 7u, 100u}) {
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 5000; ++i) {
      const std::uint32_t n = random.below(bound);
      ASSERT_LT(n, bound);
      seen.insert(n);
    }
    EXPECT_EQ(seen.size(), bound);
  }
  for (int i = 0; i < 1000; ++i) ASSERT_LT(random.below(0xffffffffu), 0xffffffffu);
}

TEST(random_source, is_roughly_even) {
  random_source random(3);
  int counts[16] = {};
  for (int i = 0; i < 16'000; ++i) ++counts[random.below(16)];
  for (const int n : counts) {
    EXPECT_GT(n, 800);
    EXPECT_LT(n, 1200);
  }
}

TEST(numbers, checked_arithmetic_says_when_it_does_not_fit) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  std::uint64_t r = 0;
  EXPECT_TRUE(checked_add(most - 1, 1, &r));
  EXPECT_EQ(r, most);
  EXPECT_FALSE(checked_add(most, 1, &r));
  EXPECT_TRUE(checked_multiply(1ull << 32, (1ull << 32) - 1, &r));
  EXPECT_FALSE(checked_multiply(1ull << 32, 1ull << 32, &r));
  EXPECT_TRUE(checked_multiply(0, most, &r));
}

TEST(numbers, rounding_and_order) {
  EXPECT_EQ(round_up(0, 64), 0u);
  EXPECT_EQ(round_up(1, 64), 64u);
  EXPECT_EQ(round_up(64, 64), 64u);
  EXPECT_EQ(round_up(65, 64), 128u);
  EXPECT_EQ(smaller(2, 3), 2);
  EXPECT_EQ(larger(2, 3), 3);
}

TEST(status_name, every_code_has_its_own_name) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(status::too_many_contexts); ++code) {
    const char* name = status_name(static_cast<status>(code));
    ASSERT_NE(name, nullptr);
    EXPECT_NE(*name, 0);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(status_name(status::stale_ticket), "stale_ticket");
  EXPECT_STREQ(status_name(status::bad_filter), "bad_filter");
  EXPECT_NE(status_name(static_cast<status>(200)), nullptr);
}

TEST(error, keeps_its_code_and_cuts_a_long_message) {
  const std::string text(1000, 'x');
  const error e(status::too_big, 3, text.c_str());
  EXPECT_EQ(e.code(), status::too_big);
  EXPECT_EQ(e.argument(), 3);
  EXPECT_EQ(std::strlen(e.what()), 255u);
  EXPECT_STREQ(error(status::closed, -1, "short").what(), "short");
}

// As the messages of most people's languages are longer than their letters.
TEST(error, cuts_a_long_message_between_characters) {
  const std::string letters[] = {"x", "\u00e9", "\u20ac", "\U0001f600"};
  for (const std::string& letter : letters) {
    for (std::size_t before = 250; before <= 256; ++before) {
      const std::string kept(before, 'x');
      const std::string text = kept + letter + letter;
      const std::string cut = error(status::too_big, -1, text.c_str()).what();
      const std::size_t whole = before > 255 ? 0 : (255 - before) / letter.size();
      const std::size_t letters_kept = whole > 2 ? 2 : whole;
      EXPECT_EQ(cut,
                text.substr(0, std::min<std::size_t>(before, 255) + letters_kept * letter.size()))
          << before;
    }
  }
}

TEST(whole_text_bytes, keeps_what_is_no_text) {
  EXPECT_EQ(whole_text_bytes("", 0), 0u);
  EXPECT_EQ(whole_text_bytes("\xc3", 1), 0u);
  EXPECT_EQ(whole_text_bytes("\xc3\xa9", 2), 2u);
  EXPECT_EQ(whole_text_bytes("x\xe2\x82", 3), 1u);
  EXPECT_EQ(whole_text_bytes("\x80\x80\x80\x80\x80", 5), 5u);  // followers of nothing
  EXPECT_EQ(whole_text_bytes("\xf0\x80\x80\x80\x80", 5), 5u);
  char two[2];
  copy_text(two, sizeof two, "\xc3\xa9");
  EXPECT_STREQ(two, "");
  copy_text(two, sizeof two, "x");
  EXPECT_STREQ(two, "x");
}

using expects_death_test = testing::Test;

TEST(expects_death_test, says_the_sentence_and_does_not_ask_for_a_report) {
  LEV_EXPECTS(true, "not said");
  EXPECT_DEATH(LEV_EXPECTS(1 > 2, "mend your program"), "^leveret: mend your program\n$");
  EXPECT_DEATH(LEV_ASSERT(1 > 2), "internal error: 1 > 2 .*; please report this");
}

TEST(is_json, tells_json_from_what_looks_like_it) {
  for (const char* good : {"{}", "[]", " [1, -2.5e+3, true, null, \"a\\n\\u00e4\"] ",
                           "{\"a\": {\"b\": [[]]}, \"c\": \"\"}"}) {
    EXPECT_TRUE(test::is_json(good)) << good;
  }
  for (const char* bad : {"", "{", "[1,]", "{\"a\"}", "{a:1}", "[1] 2", "\"\\x\"", "\"\n\"", "01x",
                          "[1 2]", "-", "1.", "tru"}) {
    EXPECT_FALSE(test::is_json(bad)) << bad;
  }
}

}  // namespace
}  // namespace lev
