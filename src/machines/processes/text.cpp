// Characters of UTF-8 (RFC 3629), one after the other.
#include "machines/processes/text.hpp"

#include "base/assert.hpp"
#include "base/numbers.hpp"

#include <cstdint>
#include <cstring>

namespace lev::processes {

namespace {

constexpr std::size_t character_bytes_max = 4;

// How many bytes a character has that begins with this one; 0: none begins so.
std::size_t length_of(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;  // continues a character, or would be longer than it need be
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

struct character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: none is here
  bool is_cut = false;    // the text ends within it
};

character character_at(const char* text, std::size_t bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  LEV_DCHECK(bytes != 0);
  character c;
  const std::size_t length = length_of(byte(0));
  if (length == 0) return c;
  c.code = length == 1 ? byte(0) : byte(0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    c.is_cut = i == bytes;
    if (c.is_cut || (byte(i) & 0xc0) != 0x80) return c;
    c.code = c.code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  static_assert(sizeof smallest / sizeof *smallest == character_bytes_max + 1);
  const bool is_surrogate = c.code >= 0xd800 && c.code < 0xe000;
  if (c.code >= smallest[length] && c.code <= 0x10ffff && !is_surrogate) c.bytes = length;
  return c;
}

bool is_printable(std::uint32_t code, line_breaks breaks) noexcept {
  if (code == '\n' || code == '\t') return breaks == line_breaks::kept;
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_separator = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !is_control && !is_separator && !turns;
}

}  // namespace

std::size_t whole_characters(const char* text, std::size_t bytes, std::size_t most) noexcept {
  if (bytes <= most) return bytes;
  // The last byte that could begin a character decides; a text without one is cut where it is.
  for (std::size_t back = 1; back <= smaller(character_bytes_max, most); ++back) {
    const std::size_t length = length_of(static_cast<unsigned char>(text[most - back]));
    if (length != 0) return length > back ? most - back : most;
  }
  return most;
}

std::size_t make_printable(const char* from, std::size_t bytes, char* to,
                           line_breaks breaks) noexcept {
  std::size_t written = 0;
  for (std::size_t i = 0; i < bytes;) {
    const character c = character_at(from + i, bytes - i);
    if (c.is_cut) break;
    if (c.bytes != 0 && is_printable(c.code, breaks)) {
      std::memmove(to + written, from + i, c.bytes);
      written += c.bytes;
    } else {
      to[written++] = '?';
    }
    i += larger<std::size_t>(c.bytes, 1);
    LEV_DCHECK(written <= i && i <= bytes);  // `to` may be `from`
  }
  return written;
}

}  // namespace lev::processes
