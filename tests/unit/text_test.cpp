// Texts from other processes: what is left of them is text, whatever they were.
#include "machines/processes/text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "base/text.hpp"
#include "support/environment.hpp"

namespace lev::test {

namespace {

using processes::line_breaks;
using processes::make_printable;

std::string printable(std::string text, line_breaks breaks = line_breaks::kept) {
  text.resize(make_printable(text.data(), text.size(), text.data(), breaks));
  return text;
}

TEST(text, what_is_printable_stays) {
  const std::string text = "plain, \u00e9\u0416\u20ac\U0001f600\ttab\nline";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable("a\tb\nc", line_breaks::replaced), "a?b?c");
  EXPECT_EQ(printable(""), "");
}

TEST(text, controls_are_replaced) {
  EXPECT_EQ(printable("\x1b[2J\r\x7f"), "?[2J??");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\u0080\u009b\u009f\u00a0"), "???\u00a0");
  EXPECT_EQ(printable("a\u2028b\u202ec\u2066d\u200ee\u061cf"), "a?b?c?d?e?f");
}

TEST(text, bytes_that_are_no_characters_are_replaced) {
  EXPECT_EQ(printable("\x9b\xff\xc0\xaf"
                      "a"),
            "????a");
  EXPECT_EQ(printable("\xe0\x80\x9b"
                      "a"),
            "???a")
      << "U+001B, longer than it need be";
  EXPECT_EQ(printable("\xc2\x1b[m"), "??[m") << "a control character in place of the second byte";
  EXPECT_EQ(printable("\xed\xa0\x80"
                      "a"),
            "???a")
      << "half of a pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"
                      "a"),
            "????a")
      << "beyond U+10FFFF";
}

TEST(text, a_character_that_the_end_cuts_is_left_out) {
  EXPECT_EQ(printable("ab\xe2\x82"), "ab");
  EXPECT_EQ(printable("ab\xf0"), "ab");
}

TEST(text, a_cut_is_between_characters) {
  const std::string text = "a\u00e9\u20ac\U0001f600z";  // 1, 2, 3, 4, 1 bytes
  const std::size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (std::size_t most = 0; most < std::size(cuts); ++most)
    EXPECT_EQ(whole_text_bytes(text.data(), most), cuts[most]) << most;
  EXPECT_EQ(whole_text_bytes("\x80\x80\x80\x80\x80\x80", 5), 5u) << "nothing to keep whole";
}

// Of anything: no longer than it was, the same when it is done once more, and no control character
// to a terminal that reads UTF-8 or one that reads bytes.
TEST(text, random_bytes) {
  random_source random(base_seed());
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.below(40), 0);
    for (char& c : bytes) c = static_cast<char>(random.below(256));
    const std::string once = printable(bytes);
    EXPECT_LE(once.size(), bytes.size());
    EXPECT_EQ(printable(once), once);
    for (std::size_t k = 0; k < once.size(); ++k) {
      const auto c = static_cast<unsigned char>(once[k]);
      ASSERT_TRUE(c >= 0x20 || c == '\n' || c == '\t');
      ASSERT_FALSE(c == 0xc2 && static_cast<unsigned char>(once[k + 1]) < 0xa0);
    }
  }
}

}  // namespace

}  // namespace lev::test
