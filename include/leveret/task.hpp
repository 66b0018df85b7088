// A task as plain data: which procedure, and where its arguments are.
//
// Both structs are trivially copyable and hold no pointer to code, so the same bytes can go to a
// thread, another process, a GPU or another node. Most programs never touch them:
// `lev::runtime::submit` fills them in from a typed call. Dice hooks, filters and language bindings
// use them.
//
// Paper: TPC section 3.1 (function id, and per argument address, size, direction and stride);
// gcell's job description.
#ifndef LEVERET_TASK_HPP
#define LEVERET_TASK_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lev {

// The procedure's place in the process-wide table; 0 is no procedure.
using procedure_id = std::uint16_t;

constexpr unsigned argument_count_max = 18;
constexpr unsigned value_bytes_max = 16;

// What an argument is to the task.
enum class kind : std::uint8_t {
  value = 1,   // a few bytes that travel in the descriptor
  result = 2,  // a few bytes that the task hands back
  in = 3,      // memory the task reads
  out = 4,     // memory the task writes, all of it (what it leaves: docs/how-to/choose-staging.md)
  inout = 5,   // memory the task reads and writes
  range = 6,   // half-open interval of indices [begin, end); dicing cuts it
};

// Flags of an argument. Dicing cuts a sliced one between its elements if it has one row, between
// its rows if it has more, or if `argument_rows` says that its one row counts as a row.
constexpr std::uint8_t argument_sliced = 1;
constexpr std::uint8_t argument_rows = 2;
// Far memory stays where it is: it is declared, not staged, and the task gets what it needs of it
// (leveret/this_task.hpp). One row; never sliced.
constexpr std::uint8_t argument_far = 4;
// The flags also hold the alignment of the elements if it is above that of all copied memory.
// align_flags() makes these bits from a power of two up to alignment_max.
constexpr std::uint8_t argument_alignment = 7 << 3;
// Memory that always goes through the local store, even where other arguments are used in place,
// for example because its elements are not aligned.
constexpr std::uint8_t argument_packed = 64;
// In the description of a bulk: a column, of which each task gets its own row. `address` is that of
// task 0, also of a value, and `stride_bytes` is from task to task (runtime::submit_bulk).
constexpr std::uint8_t argument_each = 128;
constexpr std::size_t copied_alignment = 64;
constexpr std::size_t alignment_max = 4096;
constexpr std::size_t far_alignment_max = 128;  // that of a get()'s buffer
constexpr std::uint8_t align_flags(std::size_t alignment) noexcept {
  std::uint8_t flags = 0;
  for (std::size_t a = copied_alignment; a < alignment && a < alignment_max; a *= 2)
    flags += 1 << 3;
  return flags;
}

// One argument. Memory is `rows` rows of `row_bytes` bytes, each `stride_bytes` after the one
// before.
struct argument {
  std::uint64_t address = 0;      // memory: of the first row. value: bytes 0..7. range: begin
  std::uint64_t row_bytes = 0;    // memory: bytes in a row.    value: bytes 8..15. range: end
  std::int64_t stride_bytes = 0;  // memory: from row to row; equal to row_bytes when contiguous
  std::uint32_t rows = 1;         // memory: number of rows
  std::uint16_t unit_bytes = 1;   // memory: bytes of an element; value and result: bytes used
  kind what = kind::value;
  std::uint8_t flags = 0;
};

// One task. `arguments[0 .. argument_count)` are in use.
struct descriptor {
  procedure_id procedure = 0;
  std::uint8_t argument_count = 0;
  std::uint8_t flags = 0;  // reserved, must be 0
  // smallest piece dicing may cut, in rows/elements/indices; 0: Leveret chooses
  std::uint32_t grain = 0;
  std::int32_t priority = 0;  // used by the priority filter; larger runs earlier
  // used by the locality filter; 0: taken from the first memory argument's address
  std::uint32_t key = 0;
  argument arguments[argument_count_max];
};

static_assert(sizeof(argument) == 32 && std::is_trivially_copyable_v<argument>);
static_assert(sizeof(descriptor) == 16 + 18 * 32 && std::is_trivially_copyable_v<descriptor>);

constexpr bool is_memory(kind k) noexcept {
  return k >= kind::in && k <= kind::inout;
}
constexpr bool reads_memory(kind k) noexcept {
  return k == kind::in || k == kind::inout;
}
constexpr bool writes_memory(kind k) noexcept {
  return k == kind::out || k == kind::inout;
}

// A half-open interval of indices, as a task argument: a task that takes one can be diced.
struct range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  constexpr std::uint64_t size() const noexcept { return end - begin; }
};

namespace detail {

// A descriptor without its arguments. A descriptor has it in its first 16 bytes, but not as its
// base, since it would then have no standard layout.
struct task_head {
  procedure_id procedure = 0;
  std::uint8_t argument_count = 0;
  std::uint8_t flags = 0;
  std::uint32_t grain = 0;
  std::int32_t priority = 0;
  std::uint32_t key = 0;
};
inline task_head head_of(const descriptor& d) noexcept {
  return {d.procedure, d.argument_count, d.flags, d.grain, d.priority, d.key};
}
inline void set_head(descriptor& d, const task_head& head) noexcept {
  d.procedure = head.procedure;
  d.argument_count = head.argument_count;
  d.flags = head.flags;
  d.grain = head.grain;
  d.priority = head.priority;
  d.key = head.key;
}

// A task as the typed front leaves it on the caller's stack.
struct draft : task_head {
  const argument* arguments = nullptr;
};
inline draft draft_of(const descriptor& d) noexcept {
  return {head_of(d), d.arguments};
}

}  // namespace detail
}  // namespace lev

#endif
