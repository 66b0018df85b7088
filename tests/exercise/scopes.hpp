// Scopes of ordered tasks, and the field of each: some rows of bytes that its tasks share. What is
// in it at the end must be what a serial run leaves, in the order of the submits, of those tasks
// that have ended with ok.
#pragma once

#include "exercise/interpret.hpp"

#include <cstdint>

namespace lev::exercise {

// The bytes of a block, row by row.
struct field_bytes {
  std::uint8_t at[field_rows * field_row_bytes] = {};
  unsigned count = 0;
};

// Every other one lies in shared memory, where there is a difference.
constexpr bool is_field_shared(std::uint32_t field) noexcept {
  return field % 2 == 0;
}
// Whether nothing lies between its bytes.
constexpr bool is_contiguous(const field_block& b) noexcept {
  return b.rows == 1 || b.bytes == field_row_bytes;
}
std::uint8_t first_field_byte(std::uint32_t field, std::uint32_t at) noexcept;
// One task: makes something of its input and its own block, and returns its result. Both depend on
// all that it reads, and on which task it is.
std::uint64_t field_step(std::uint32_t task, const task_spec& spec, const field_bytes& input,
                         field_bytes& own) noexcept;

// The bytes of a block, as bits.
std::uint64_t bits_of(const field_block& b) noexcept;
constexpr field_block row_block(std::uint8_t row) noexcept {
  return {row, 1, 0, field_row_bytes};
}
// The bytes of the field that a task reads, and those that it writes, as bits.
struct field_use {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
};
field_use use_of(const task_spec& spec) noexcept;
constexpr bool do_conflict(const field_use& a, const field_use& b) noexcept {
  return (a.writes & (b.reads | b.writes)) != 0 || (a.reads & b.writes) != 0;
}

void do_ordered(const frame& f, const step& s);
void do_wait_ordered(const frame& f, const step& s);
void do_cancel_ordered(const frame& f, const step& s);
// The end of the scopes that a block has opened.
void close_scopes(const frame& f, const block& steps);
void check_scopes(world& w);

}  // namespace lev::exercise
