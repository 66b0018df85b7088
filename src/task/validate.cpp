// validate(): count, kinds, sizes, addresses, overlap, slices. One function per concern.
#include "task/validate.hpp"

#include "base/numbers.hpp"
#include "task/arguments.hpp"
#include "task/plain.hpp"
#include "task/slice.hpp"

#include <bit>
#include <cstdarg>
#include <cstdio>

namespace lev {

bool refuse(refusal* why, status code, int argument_index, const char* format, ...) noexcept {
  why->code = code;
  why->argument = argument_index;
  int begin = 0;
  if (argument_index >= 0)
    begin = std::snprintf(why->message, sizeof why->message, "argument %d: ", argument_index);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(why->message + begin, sizeof why->message - static_cast<std::size_t>(begin),
                 format, arguments);
  va_end(arguments);
  return false;
}

namespace {

const char* kind_name(kind k) noexcept {
  static const char* const names[] = {"?", "value", "result", "in", "out", "inout", "range"};
  return names[k <= kind::range ? static_cast<unsigned>(k) : 0];
}

bool check_small(const argument& a, int i, refusal* why) noexcept {
  if (a.what != kind::range && (a.flags & argument_sliced) != 0) {
    return refuse(why, status::bad_argument, i, "a %s cannot be sliced; slice memory or a range",
                  kind_name(a.what));
  }
  if (a.what == kind::range) {
    if (a.address <= a.row_bytes) return true;
    return refuse(why, status::bad_range, i, "the range ends before it begins; swap its bounds");
  }
  if (a.unit_bytes > value_bytes_max) {
    return refuse(why, status::too_big, i, "a %s has at most 16 bytes, not %u; pass it as memory",
                  kind_name(a.what), static_cast<unsigned>(a.unit_bytes));
  }
  if (a.what == kind::result && (a.address == 0 || a.row_bytes != a.unit_bytes || a.rows != 1)) {
    return refuse(why, status::bad_address, i, "a result needs the address of one variable");
  }
  return true;
}

// Far memory is one row, and pieces of a task share it.
bool check_far(const argument& a, int i, refusal* why) noexcept {
  if (!is_memory(a.what) || (a.flags & argument_sliced) != 0 || a.rows > 1) {
    return refuse(why, status::bad_argument, i,
                  "far memory is one row, and not sliced; slice a range beside it");
  }
  if (alignment_of(a) > far_alignment_max) {
    return refuse(
        why, status::bad_argument, i,
        "elements of far memory are aligned to at most 128 bytes, as the buffers of a get are");
  }
  return true;
}

bool check_memory(const argument& a, int i, refusal* why) noexcept {
  if (is_empty(a)) return true;
  if (a.address == 0) {
    return refuse(why, status::bad_address, i,
                  "null address with %llu bytes; pass memory, or length 0",
                  static_cast<unsigned long long>(payload_bytes(a)));
  }
  if (a.rows == 0xffffffffu)
    return refuse(why, status::too_big, i, "more than 2^32 - 2 rows; split the task");
  if (a.unit_bytes == 0) {
    return refuse(why, status::bad_argument, i,
                  "an element has 1 to 65535 bytes; pass larger ones as bytes");
  }
  if (a.row_bytes % a.unit_bytes != 0) {
    return refuse(
        why, status::bad_argument, i, "%llu bytes are not a multiple of the element size %u",
        static_cast<unsigned long long>(a.row_bytes), static_cast<unsigned>(a.unit_bytes));
  }
  std::uint64_t payload = 0;
  if (a.row_bytes > payload_max || !checked_multiply(a.row_bytes, a.rows, &payload) ||
      payload > payload_max) {
    return refuse(why, status::bad_range, i,
                  "more bytes than an address space holds; check its length");
  }
  std::uint64_t reach = a.row_bytes;
  if (a.rows > 1) {
    if (a.stride_bytes < 0) {
      return refuse(why, status::bad_range, i, "negative stride; start at the lowest row");
    }
    if (static_cast<std::uint64_t>(a.stride_bytes) < a.row_bytes && writes_memory(a.what)) {
      return refuse(why, status::overlap, i, "stride below the row length: output rows overlap");
    }
    std::uint64_t before_last = 0;
    if (!checked_multiply(static_cast<std::uint64_t>(a.stride_bytes), a.rows - 1u, &before_last) ||
        !checked_add(before_last, a.row_bytes, &reach) || reach > payload_max) {
      return refuse(why, status::bad_range, i,
                    "rows times stride is more than an address space holds; check both");
    }
  }
  std::uint64_t end = 0;
  if (!checked_add(a.address, reach, &end)) {
    return refuse(why, status::bad_range, i, "address plus length exceeds 2^64");
  }
  return true;
}

[[gnu::noinline]] bool check_one(const argument& a, kind declared, int i, refusal* why) noexcept {
  constexpr int known =
      argument_sliced | argument_rows | argument_far | argument_alignment | argument_packed;
  if (a.what < kind::value || a.what > kind::range || (a.flags & ~known) != 0 ||
      alignment_of(a) > alignment_max) {
    return refuse(why, status::bad_argument, i, "unknown kind or flag bits");
  }
  if (a.what != declared) {
    return refuse(why, status::bad_argument, i, "the procedure declares %s, the task passes %s",
                  kind_name(declared), kind_name(a.what));
  }
  if ((a.flags & argument_packed) != 0 && (is_far(a) || !is_memory(a.what))) {
    return refuse(why, status::bad_argument, i, "only memory that is not far can be packed");
  }
  if (is_far(a) && !check_far(a, i, why)) return false;
  return is_memory(a.what) ? check_memory(a, i, why) : check_small(a, i, why);
}

// Each output against everything else that names memory; of two outputs, the first is compared.
[[gnu::noinline]] bool check_overlap(const argument* arguments, std::uint32_t addresses,
                                     std::uint32_t all_outputs, refusal* why) noexcept {
  std::uint32_t others = addresses;
  for (std::uint32_t outputs = all_outputs; outputs != 0; outputs &= outputs - 1) {
    const int i = std::countr_zero(outputs);
    const argument& a = arguments[i];
    others &= ~(1u << i);
    for (std::uint32_t rest = others; rest != 0; rest &= rest - 1) {
      const int j = std::countr_zero(rest);
      const argument& b = arguments[j];
      if (are_apart(a, b) || is_empty(a) || is_empty(b) || !do_overlap(a, b)) continue;
      return refuse(why, status::overlap, i,
                    "this output overlaps argument %d; use inout, or separate memory", j);
    }
  }
  return true;
}

[[gnu::noinline]] bool check_slices(const detail::draft& d, refusal* why) noexcept {
  int first = -1;
  for (int i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if ((a.flags & argument_sliced) == 0) continue;
    if (first < 0) {
      first = i;
    } else if (slice_items(a) != slice_items(d.arguments[first])) {
      return refuse(
          why, status::bad_argument, i,
          "%llu slices, but argument %d has %llu; sliced arguments must have equally many",
          static_cast<unsigned long long>(slice_items(a)), first,
          static_cast<unsigned long long>(slice_items(d.arguments[first])));
    }
  }
  for (int i = 0; first >= 0 && i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if (is_output(a) && !is_empty(a) && (a.flags & (argument_sliced | argument_far)) == 0 &&
        slice_items(d.arguments[first]) > 1) {
      return refuse(why, status::bad_argument, i,
                    a.what == kind::result
                        ? "pieces of a task with sliced arguments or a range would share its "
                          "result; cut nothing, or submit a task for each part"
                        : "an output of a task with sliced arguments must be sliced too, or pieces "
                          "would share it");
    }
  }
  return true;
}

}  // namespace

bool validate(const detail::draft& d, draft_facts* facts, refusal* why) noexcept {
  const procedure_entry* p = find_procedure(d.procedure);
  if (p == nullptr) {
    return refuse(why, status::bad_procedure, -1,
                  d.procedure == 0
                      ? "no procedure has the id %u: write LEV_PROCEDURE(function) beside the "
                        "function, or call define(); lookup() gives 0 for a name that nothing has"
                      : "no procedure has the id %u; register it first",
                  d.procedure);
  }
  if (d.flags != 0) {
    return refuse(why, status::bad_argument, -1,
                  "flags of the task are 0x%x; they are reserved, set them to 0",
                  static_cast<unsigned>(d.flags));
  }
  if (d.argument_count > argument_count_max) {
    return refuse(why, status::too_big, -1, "%u arguments; at most 18 are possible",
                  d.argument_count);
  }
  if (d.argument_count != p->info.kind_count) {
    return refuse(why, status::bad_argument_count, -1,
                  "procedure '%s' takes %u arguments, the task passes %u", p->name,
                  p->info.kind_count, d.argument_count);
  }
  *facts = {};
  for (int i = 0; i < d.argument_count; ++i) {
    const argument& a = d.arguments[i];
    if (is_plain(a, *p, i)) continue;
    if (!check_one(a, p->kinds[i], i, why)) return false;
    facts->is_sliced |= (a.flags & argument_sliced) != 0;
    facts->is_far |= is_far(a);
    facts->is_strided |= is_memory(a.what) && !fits_in_place(a);
  }
  facts->has_address = p->addresses != 0;
  facts->may_dice = facts->is_sliced || p->diceable;
  if (p->outputs != 0 && !check_overlap(d.arguments, p->addresses, p->outputs, why)) return false;
  return !facts->is_sliced || p->diceable || check_slices(d, why);
}

bool validate_memory(std::span<const argument> arguments, refusal* why) noexcept {
  std::uint32_t addresses = 0;
  std::uint32_t outputs = 0;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const argument& a = arguments[i];
    if (!is_memory(a.what)) continue;
    if (!check_memory(a, static_cast<int>(i), why)) return false;
    addresses |= 1u << i;
    if (is_output(a)) outputs |= 1u << i;
  }
  return check_overlap(arguments.data(), addresses, outputs, why);
}

}  // namespace lev
