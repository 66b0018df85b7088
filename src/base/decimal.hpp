// Numbers as files and messages have them: digits, a point, an exponent, whatever locale the
// program has chosen by setlocale(). There printf() and strtod() may write and expect a comma, and
// letters differ as well, so nothing else in the library reads or writes a fraction (tools/tidy).
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace lev {

// read_decimal() reads all of a text as one number; false when it is not one, or does not fit a
// double. A sign, a point, an exponent, "inf" and "nan" are taken; hexadecimal numbers are not.
inline bool read_decimal(std::string_view text, double* number) noexcept {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [behind, fault] = std::from_chars(text.data(), end, *number);
  return fault == std::errc{} && behind == end;
}

// decimal_text is a number with the given count of significant digits, as "%.9g" has it.
class decimal_text {
 public:
  explicit decimal_text(double number, int digits = digits_max) noexcept {
    constexpr auto form = std::chars_format::general;
    const int kept = digits < digits_max ? digits : digits_max;
    *std::to_chars(text_, text_ + sizeof text_ - 1, number, form, kept).ptr = 0;
  }
  const char* c_str() const noexcept { return text_; }

 private:
  static constexpr int digits_max = 17;
  char text_[32];  // a sign, digits, a point, "0.000" before them, an exponent
};

inline bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace lev
