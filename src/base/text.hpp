// Texts in places of a fixed size.
#pragma once

#include "base/utf8.hpp"

#include <cstddef>
#include <exception>

namespace lev {

// text_of() is an exception's text, which may be empty.
inline const char* text_of(const std::exception& e) noexcept {
  const char* text = e.what();
  return text != nullptr && *text != 0 ? text : "an exception whose what() is empty";
}

// text_of_thrown() is the text of the exception in hand, in its handler: as long as that is there.
inline const char* text_of_thrown() noexcept {
  try {
    throw;
  } catch (const std::exception& e) {
    return text_of(e);
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// A byte of a character of UTF-8 that is not its first.
inline bool is_inside_character(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// whole_text_bytes() is how many of the first `bytes` of a text make whole characters of UTF-8: a
// character that is cut off at the end is left out. Other encodings lose three bytes at most.
inline std::size_t whole_text_bytes(const char* text, std::size_t bytes) noexcept {
  for (std::size_t back = 1; back <= 3 && back <= bytes; ++back) {
    const char c = text[bytes - back];
    if (is_inside_character(c)) continue;
    return length_of(static_cast<unsigned char>(c)) > back ? bytes - back : bytes;
  }
  return bytes;
}

// copy_text() copies as much of a terminated text as `size` bytes hold, in whole characters, and
// terminates the copy.
inline void copy_text(char* to, std::size_t size, const char* text) noexcept {
  std::size_t bytes = 0;
  for (; bytes + 1 < size && text[bytes] != 0; ++bytes) to[bytes] = text[bytes];
  if (text[bytes] != 0) bytes = whole_text_bytes(to, bytes);
  to[bytes] = 0;
}

}  // namespace lev
