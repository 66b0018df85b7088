// Characters of UTF-8 (RFC 3629), one after the other.
#pragma once

#include "base/assert.hpp"

#include <cstddef>
#include <cstdint>

namespace lev {

inline constexpr std::size_t character_bytes_max = 4;

// The length in bytes of a character that begins with this byte; 0: none does.
inline std::size_t length_of(unsigned char first) noexcept {
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

// The character at the beginning of these bytes, of which there is at least one.
inline character character_at(const char* text, std::size_t bytes) noexcept {
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

}  // namespace lev
