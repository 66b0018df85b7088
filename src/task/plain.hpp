// plain: most tasks have only values, results and rows of memory that share no byte. A few
// comparisons with what is noted at their procedure recognise them; validate() checks all others.
#pragma once

#include <leveret/task.hpp>

#include "base/assert.hpp"
#include "task/arguments.hpp"
#include "task/procedure_table.hpp"
#include "task/slot.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace lev {

using detail::payload_max;

// A head, of a task's number of arguments and flags, that no task has.
constexpr std::uint32_t plain_head_never = 0xffffffffu;
// A value that plain_kinds_of() never returns: that of an entry which nobody has filled, too.
constexpr std::uint64_t plain_kinds_never = 0;
// Set in the entry of a procedure whose tasks are wide (slot.hpp), and in no call's word: one
// comparison tells that a call's kinds are those of the procedure, and that its task is not wide.
constexpr std::uint64_t plain_kinds_wide = std::uint64_t{1} << 62;

// The last word of an argument: rows, element size, kind and flags, as they lie in memory.
inline std::uint64_t head_of(const argument& a) noexcept {
  static_assert(offsetof(argument, rows) == 24 && offsetof(argument, unit_bytes) == 28 &&
                offsetof(argument, what) == 30 && offsetof(argument, flags) == 31);
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t head = 0;
  std::memcpy(&head, reinterpret_cast<const char*>(&a) + offsetof(argument, rows), sizeof head);
  return head;
}

// plan_plain() notes the heads and the arguments' last words of a procedure's plain tasks. A range
// is not plain, nor is a task that may be diced.
inline void plan_plain(procedure_entry& e) noexcept {
  constexpr std::uint64_t all_but_unit = ~(std::uint64_t{0xffff} << 32);
  constexpr std::uint64_t kind_and_flags = std::uint64_t{0xffff} << 48;
  constexpr std::uint64_t one_row = 1;
  e.plain_head = e.diceable ? plain_head_never : e.info.kind_count;
  for (unsigned i = 0; i < e.info.kind_count; ++i) {
    const std::uint64_t what = std::uint64_t{static_cast<std::uint8_t>(e.kinds[i])} << 48;
    if (e.kinds[i] == kind::range) e.plain_head = plain_head_never;
    const bool has_rows = e.kinds[i] != kind::value;
    e.plain_words[i] = has_rows ? what | one_row : what;
    e.plain_masks[i] = e.kinds[i] == kind::range ? 0 : has_rows ? all_but_unit : kind_and_flags;
  }
  const std::uint64_t kinds = detail::plain_kinds_of(e.kinds, e.info.kind_count);
  const bool is_compared = detail::has_places_to_compare(e.kinds, e.info.kind_count);
  const bool has_plain = !e.diceable && kinds != detail::plain_kinds_unknown;
  const bool is_wide = e.info.kind_count > near_arguments;
  const std::uint64_t notes =
      (is_compared ? detail::plain_kinds_compared : 0) | (is_wide ? plain_kinds_wide : 0);
  // Pairs with is_of_plain_kinds(): publishes the entry.
  e.plain_kinds.store(has_plain ? kinds | notes : plain_kinds_never, memory_order_release);
}

// One row of memory, not empty, whose elements' size is a power of two.
inline bool is_plain_row(const argument& a) noexcept {
  const std::uint64_t below = std::uint64_t{a.unit_bytes} - 1;  // all ones where it is 0
  return ((a.unit_bytes | a.row_bytes) & below) == 0 && a.row_bytes - 1 < payload_max &&
         a.address - 1 < ~a.row_bytes;
}

// Whether it is of the declared kind, not sliced, and a value, a result or one row of memory.
inline bool is_plain(const argument& a, const procedure_entry& p, unsigned i) noexcept {
  if ((head_of(a) & p.plain_masks[i]) != p.plain_words[i]) return false;
  if ((p.memory >> i & 1) != 0) return is_plain_row(a);
  if (a.unit_bytes > value_bytes_max) return false;
  return (p.addresses >> i & 1) == 0 || (a.address != 0 && a.row_bytes == a.unit_bytes);
}

// Two rows that share no byte.
inline bool are_rows_apart(const argument& a, const argument& b) noexcept {
  return a.address + a.row_bytes <= b.address || b.address + b.row_bytes <= a.address;
}
inline bool are_apart(const argument& a, const argument& b) noexcept {
  return a.rows == 1 && b.rows == 1 && are_rows_apart(a, b);
}

// passes_plainly(): validate() would accept the draft, and find none of the draft_facts except
// addresses. False: ask it.
inline bool passes_plainly(const detail::draft& d, const procedure_entry& p) noexcept {
  const std::uint32_t head = d.argument_count | std::uint32_t{d.flags} << 8;
  if (head != p.plain_head) return false;
  if (d.argument_count == 0) return true;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    if (!is_plain(d.arguments[i], p, i)) return false;
  }
  std::uint32_t others = p.addresses;
  for (std::uint32_t outputs = p.outputs; outputs != 0; outputs &= outputs - 1) {
    const argument& a = d.arguments[std::countr_zero(outputs)];
    others &= ~(outputs & -outputs);
    for (std::uint32_t rest = others; rest != 0; rest &= rest - 1) {
      if (!are_rows_apart(a, d.arguments[std::countr_zero(rest)])) return false;
    }
  }
  return true;
}

// Whether nothing is to be looked at in a call with these plain_kinds, as its caller has, and all
// its arguments lie in the slot. A thread that has guessed the procedure's number sees its entry,
// too.
inline bool is_of_plain_kinds(const procedure_entry& p, std::uint64_t plain_kinds) noexcept {
  LEV_DCHECK(plain_kinds != plain_kinds_never);  // of which there are entries
  // Pairs with plan_plain().
  return plain_kinds == p.plain_kinds.load(memory_order_acquire);
}

// The same for a draft of any number of arguments, with what its caller knows of their types.
inline bool passes_plainly(const detail::draft& d, const procedure_entry& p,
                           std::uint64_t plain_kinds) noexcept {
  return is_of_plain_kinds(p, plain_kinds) ||
         is_of_plain_kinds(p, plain_kinds | plain_kinds_wide) || passes_plainly(d, p);
}

}  // namespace lev
