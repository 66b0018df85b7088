// is_json(): whether a text is one JSON value (RFC 8259). A recognizer of a page, so that tests of
// what Leveret writes need no library.
#pragma once

#include <cctype>
#include <cstddef>
#include <string_view>

namespace lev::test {

class json_reader {
 public:
  explicit json_reader(std::string_view text) : text_(text) {}

  bool read_document() {
    if (!read_value()) return false;
    skip_space();
    return at_ == text_.size();
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    skip_space();
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (next() == ' ' || next() == '\n' || next() == '\t' || next() == '\r') ++at_;
  }

  bool read_value() {
    skip_space();
    switch (next()) {
      case '{':
        return read_list('{', '}', true);
      case '[':
        return read_list('[', ']', false);
      case '"':
        return read_string();
      case 't':
        return take_word("true");
      case 'f':
        return take_word("false");
      case 'n':
        return take_word("null");
      default:
        return read_number();
    }
  }
  bool read_list(char open, char close, bool has_keys) {
    take(open);
    if (take(close)) return true;
    do {
      skip_space();
      if (has_keys && !(read_string() && take(':'))) return false;
      if (!read_value()) return false;
    } while (take(','));
    return take(close);
  }
  bool read_string() {
    if (!take('"')) return false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !skip_escape()) return false;
    }
    return false;
  }
  bool skip_escape() {
    ++at_;
    if (next() != 'u') return std::string_view("\"\\/bfnrt").find(next()) != std::string_view::npos;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (std::isxdigit(static_cast<unsigned char>(next())) == 0) return false;
    }
    return true;
  }
  bool read_digits() {
    const std::size_t first = at_;
    while (std::isdigit(static_cast<unsigned char>(next())) != 0) ++at_;
    return at_ != first;
  }
  bool read_number() {
    if (next() == '-') ++at_;
    if (!read_digits()) return false;
    if (next() == '.' && (++at_, !read_digits())) return false;
    if (next() != 'e' && next() != 'E') return true;
    ++at_;
    if (next() == '-' || next() == '+') ++at_;
    return read_digits();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline bool is_json(std::string_view text) {
  return json_reader(text).read_document();
}

}  // namespace lev::test
