// plain: most tasks have only values, results and rows of memory that share no byte. A few
// comparisons with what is noted at their procedure recognise them; validate() checks all others.
#ifndef LEVERET_TASK_PLAIN_HPP
#define LEVERET_TASK_PLAIN_HPP

#include <leveret/task.hpp>

#include "task/arguments.hpp"
#include "task/procedure_table.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace lev {

// The largest virtual address space there is.
constexpr std::uint64_t payload_max = std::uint64_t{1} << 57;

// A head, of a task's number of arguments and flags, that no task has.
constexpr std::uint32_t plain_head_never = 0xffffffffu;
// A value that plain_kinds_of() never returns.
constexpr std::uint64_t plain_kinds_never = ~std::uint64_t{0};

// The last word of an argument: rows, element size, kind and flags, as they lie in memory.
inline std::uint64_t head_of(const argument& a) noexcept {
  static_assert(offsetof(argument, rows) == 24 && offsetof(argument, unit_bytes) == 28 &&
                offsetof(argument, what) == 30 && offsetof(argument, flags) == 31);
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t head = 0;
  std::memcpy(&head, reinterpret_cast<const char*>(&a) + offsetof(argument, rows), sizeof head);
  return head;
}

inline place_plan plan_places(std::uint32_t addresses, std::uint32_t outputs) noexcept {
  place_plan p;
  for (unsigned i = 0; i < detail::plain_places_max && addresses != 0; ++i) {
    p.at[i] = static_cast<std::uint8_t>(std::countr_zero(addresses));
    if ((addresses & (addresses - 1)) != 0) addresses &= addresses - 1;
  }
  const auto must_be_apart = [&](unsigned a, unsigned b) {
    return p.at[a] != p.at[b] && ((outputs >> p.at[a] | outputs >> p.at[b]) & 1) != 0;
  };
  p.apart = static_cast<std::uint8_t>(must_be_apart(0, 1) | must_be_apart(0, 2) << 1 |
                                      must_be_apart(1, 2) << 2);
  return p;
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
  e.places = plan_places(e.addresses, e.outputs);
  const std::uint64_t plain_kinds = detail::plain_kinds_of(e.kinds, e.info.kind_count);
  const bool has_plain = !e.diceable && plain_kinds != 0;
  // A result by itself is the variable that the caller has named.
  const bool is_placed = e.memory != 0 || std::popcount(e.addresses) > 1;
  e.plain_kinds = has_plain && !is_placed ? plain_kinds : plain_kinds_never;
  e.placed_kinds = has_plain && is_placed ? plain_kinds : plain_kinds_never;
}

// One row of memory, not empty, whose elements' size is a power of two.
inline bool is_plain_row(const argument& a) noexcept {
  const std::uint64_t below = std::uint64_t{a.unit_bytes} - 1;  // all ones where it is 0
  return ((a.unit_bytes | a.row_bytes) & below) == 0 && a.row_bytes - 1 < payload_max &&
         a.address - 1 < ~a.row_bytes;
}

// Of the declared kind, not sliced, a value, a result or one row of memory.
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

// The same for two places in the address space, neither of which is empty: the distance from each
// to the other, modulo 2^64, is at least its size.
inline bool are_places_apart(const argument& a, const argument& b) noexcept {
  return b.address - a.address >= a.row_bytes && a.address - b.address >= b.row_bytes;
}

// are_places_plain() is for a task whose plain_kinds_of_call() are its procedure's: the places that
// it names have the right kinds, are one row each, and no part of an element is left over. It says
// whether they are not empty, in the address space, and share no byte that the task writes.
inline bool are_places_plain(const argument* arguments, const place_plan& p) noexcept {
  const argument& a = arguments[p.at[0]];
  const argument& b = arguments[p.at[1]];
  const argument& c = arguments[p.at[2]];
  const std::uint64_t all = (a.address - 1) | (a.row_bytes - 1) | (b.address - 1) |
                            (b.row_bytes - 1) | (c.address - 1) | (c.row_bytes - 1);
  return all < payload_max && ((p.apart & 1) == 0 || are_places_apart(a, b)) &&
         ((p.apart & 2) == 0 || are_places_apart(a, c)) &&
         ((p.apart & 4) == 0 || are_places_apart(b, c));
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

// The same for a draft with what its caller knows of the arguments' types; 0: nothing.
inline bool passes_plainly(const detail::draft& d, const procedure_entry& p,
                           std::uint64_t plain_kinds) noexcept {
  return plain_kinds == p.plain_kinds ||
         (plain_kinds == p.placed_kinds && are_places_plain(d.arguments, p.places)) ||
         passes_plainly(d, p);
}

}  // namespace lev

#endif
