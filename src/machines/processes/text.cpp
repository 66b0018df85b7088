// Keeps the characters of a text that may go to a terminal.
#include "machines/processes/text.hpp"

#include "base/numbers.hpp"
#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace lev::processes {

namespace {

bool is_printable(std::uint32_t code, line_breaks breaks) noexcept {
  if (code == '\n' || code == '\t') return breaks == line_breaks::kept;
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_separator = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x61c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !is_control && !is_separator && !turns;
}

}  // namespace

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
