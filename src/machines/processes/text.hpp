// Texts from other processes: a body's exception, the name of a program. They may end on a terminal
// or in a log, so they must contain nothing but text.
#pragma once

#include <cstddef>

namespace lev::processes {

enum class line_breaks { kept, replaced };

// make_printable() copies a text to `to`, which may be the same place, and returns its new length,
// which is not greater. The copy is UTF-8 without control characters, except '\n' and '\t' if they
// are kept, and without characters that turn the direction of writing. A '?' stands for each of
// these, and for each byte that is not part of a character. A character that is cut by the text's
// end is left out.
std::size_t make_printable(const char* from, std::size_t bytes, char* to,
                           line_breaks breaks = line_breaks::kept) noexcept;

}  // namespace lev::processes
