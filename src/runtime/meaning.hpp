// What a status means to the caller of a wait, or of another call about a ticket.
#pragma once

#include <leveret/ticket.hpp>

#include <cstddef>

namespace lev {

// meaning_of() is a sentence for a status that such a call answers; null for one that a task ended
// with and that says itself what was wrong.
const char* meaning_of(status code) noexcept;

// write_meaning() writes what an outcome without an exception says.
void write_meaning(const outcome& o, char* text, std::size_t bytes) noexcept;

}  // namespace lev
