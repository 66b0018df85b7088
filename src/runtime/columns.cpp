// submit_bulk() over columns: checked as task 0 and as a whole, then one task over a range of
// indices (worker/columns.hpp). If that is not possible, each is a task of its own, with the same
// refusals.
#include "worker/columns.hpp"
#include "runtime/admit.hpp"
#include "task/arguments.hpp"

#include <cstdio>

namespace lev::detail {

namespace {

constexpr bool is_column(const argument& a) noexcept {
  return (a.flags & argument_each) != 0;
}

// Argument `a` of task `i`.
argument argument_of(const argument& a, std::size_t i) noexcept {
  if (!is_column(a)) return a;
  argument one = a;
  one.flags &= static_cast<std::uint8_t>(~argument_each);
  const std::uint64_t place =
      a.address + static_cast<std::uint64_t>(a.stride_bytes) * static_cast<std::uint64_t>(i);
  if (a.what == kind::value) {
    one = argument{};
    one.unit_bytes = a.unit_bytes;
    load_value(one, place, a.unit_bytes);
    return one;
  }
  one.address = place;
  one.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  return one;
}

void make_task(const draft& all, std::size_t i, descriptor& d) noexcept {
  set_head(d, all);
  for (unsigned k = 0; k < all.argument_count; ++k)
    d.arguments[k] = argument_of(all.arguments[k], i);
}

// Refuses input from which task 0 cannot be made, and outputs that tasks would share.
bool check_columns(const draft& all, std::size_t count, refusal* why) noexcept {
  if (all.argument_count > argument_count_max)
    return refuse(why, status::too_big, -1, "%u arguments; at most 18 are possible",
                  all.argument_count);
  for (int i = 0; i < all.argument_count; ++i) {
    const argument& a = all.arguments[i];
    if (!is_column(a)) {
      if (!is_output(a) || count <= 1 || (a.flags & argument_far) != 0) continue;
      return refuse(
          why, status::bad_argument, i,
          "an output of a bulk must be a column, or its tasks would share it; pass each(...)");
    }
    if (a.what == kind::range || (a.flags & (argument_sliced | argument_far)) != 0 || a.rows != 1)
      return refuse(why, status::bad_argument, i,
                    "a column has one value, one result or one row of memory a task");
    if (a.what != kind::value) continue;
    if (a.unit_bytes > value_bytes_max)
      return refuse(why, status::too_big, i,
                    "a value has at most 16 bytes, not %u; pass it as memory",
                    static_cast<unsigned>(a.unit_bytes));
    if (a.address == 0 && count != 0)
      return refuse(why, status::bad_address, i,
                    "a column of values at a null address; pass memory");
  }
  return true;
}

// All rows of a column, as the memory of one task. From the lowest, as they may go backwards.
argument rows_of(const argument& a, std::uint64_t count) noexcept {
  constexpr std::uint64_t rows_max = 0xfffffffe;
  argument all = a;
  all.rows = static_cast<std::uint32_t>(smaller(count, rows_max));
  if (a.stride_bytes < 0) {
    const std::uint64_t back = 0 - static_cast<std::uint64_t>(a.stride_bytes);
    all.stride_bytes = static_cast<std::int64_t>(back);
    all.address -= back * (all.rows - 1u);
  }
  if (a.what == kind::value) {
    all.what = kind::in;
    all.row_bytes = a.unit_bytes;
  } else if (a.what == kind::result) {
    all.what = kind::inout;  // one that is not assigned keeps its value
  }
  return all;
}

// Whether a column ends within the addresses there are, also where it has more rows than an
// argument can have.
bool fits_addresses(const argument& a, std::uint64_t count) noexcept {
  const auto stride = static_cast<std::uint64_t>(a.stride_bytes);
  std::uint64_t before = 0;  // bytes, of all rows but the last
  if (!checked_multiply(a.stride_bytes < 0 ? 0 - stride : stride, count - 1, &before)) return false;
  if (a.stride_bytes < 0) return before <= a.address;
  std::uint64_t end = 0;
  return checked_add(a.address, before, &end) && checked_add(end, a.row_bytes, &end);
}

// Checks how its tasks affect each other: here, as no single one of them shows it. Overlaps of rows
// beyond those that an argument can have are not looked for.
bool check_rows(const draft& all, std::size_t count, refusal* why) noexcept {
  argument rows[argument_count_max];
  for (unsigned i = 0; i < all.argument_count; ++i) {
    const argument& a = all.arguments[i];
    rows[i] = is_column(a) ? rows_of(a, count) : a;
    if (is_column(a) && count != 0 && !fits_addresses(a, count))
      return refuse(
          why, status::bad_range, static_cast<int>(i),
          "the column's rows reach beyond the address space; check their number and distance");
  }
  return validate_memory(std::span(rows).first(all.argument_count), why);
}

// The bulk as one task.
struct whole_bulk {
  descriptor task;
  char name[procedure_name_bytes_max + 1];
};

void append_column(const argument& a, std::uint32_t count, argument& to) noexcept {
  to = rows_of(a, count);
  to.flags =
      static_cast<std::uint8_t>((a.flags & ~argument_each) | argument_sliced | argument_rows);
}

// Written and read by submits. For each procedure, the bulk procedure of its last bulk, so that it
// need not be looked up by name; 0: there was none. Published after its entry in the table.
constinit atomic<procedure_id> last_bulks[procedure_count_max + 1] = {};

bool has_kinds_of(procedure_id id, const descriptor& d) noexcept {
  const procedure_info& info = procedure_at(id).info;
  if (info.kind_count != d.argument_count) return false;
  for (unsigned i = 0; i < d.argument_count; ++i) {
    if (info.kinds[i] != d.arguments[i].what) return false;
  }
  return true;
}

// The procedure of such tasks, one for each sequence of kinds. False: the table is full, and they
// cannot be one task.
bool find_bulk_procedure(whole_bulk& w, procedure_id of) noexcept try {
  // Pairs with the store below.
  const procedure_id last = last_bulks[of].load(memory_order_acquire);
  if (last != 0 && has_kinds_of(last, w.task)) {
    w.task.procedure = last;
    return true;
  }
  kind kinds[argument_count_max];
  char* end = w.name + std::snprintf(w.name, sizeof w.name, "leveret.columns.");
  for (unsigned i = 0; i < w.task.argument_count; ++i) {
    kinds[i] = w.task.arguments[i].what;
    *end++ = "?vrioxn"[static_cast<unsigned>(kinds[i])];
  }
  *end = 0;
  procedure_info info;
  info.name = w.name;
  info.run = &run_columns;
  info.kinds = kinds;
  info.kind_count = w.task.argument_count;
  info.cost = +[](const descriptor&) -> std::uint64_t { return 0; };  // its tasks have their own
  w.task.procedure = register_own(info);
  last_bulks[of].store(w.task.procedure, memory_order_release);  // Pairs with the load
  return true;
} catch (const error&) {
  return false;
}

bool make_whole(const draft& all, std::size_t count, whole_bulk& w) noexcept {
  LEV_DCHECK(all.argument_count <= column_arguments_max && count < no_index);
  each_task of;
  of.procedure = all.procedure;
  for (unsigned i = 0; i < all.argument_count; ++i) {
    const argument& a = all.arguments[i];
    w.task.arguments[i] = a;
    if (!is_column(a)) continue;
    append_column(a, static_cast<std::uint32_t>(count), w.task.arguments[i]);
    if (a.what == kind::value) of.values |= 1u << i;
    if (a.what == kind::result) of.results |= 1u << i;
  }
  w.task.arguments[all.argument_count] = parameter<each_task>::pack(of);
  w.task.arguments[all.argument_count + 1u] = parameter<range>::pack({0, count});
  set_head(w.task, all);
  w.task.argument_count += 2;
  return find_bulk_procedure(w, all.procedure);
}

// Whether the tasks can be one: their columns are not sliced and go forwards, a single task fits a
// local store, and there is no time limit for each.
bool can_be_one(const runtime_state& c, const draft& all, std::size_t count) noexcept {
  if (all.argument_count > column_arguments_max || count >= no_index ||
      c.settings.processes.task_ns_max != 0 || procedure_at(all.procedure).diceable)
    return false;
  for (unsigned i = 0; i < all.argument_count; ++i) {
    const argument& a = all.arguments[i];
    if (is_column(a) ? a.stride_bytes < 0 : (a.flags & (argument_sliced | argument_far)) != 0)
      return false;
  }
  return true;
}

bool check_all(runtime_state& c, const draft& all, std::size_t count, whole_bulk& w, bool* is_one,
               refusal* why) noexcept {
  if (!check_columns(all, count, why)) return false;
  *is_one = false;
  if (count == 0) return true;
  descriptor first;
  draft_facts facts;
  make_task(all, 0, first);
  if (!validate(draft_of(first), &facts, why) || !check_crew(c, draft_of(first), facts, why))
    return false;
  if (!check_rows(all, count, why)) return false;
  if (!can_be_one(c, all, count) || !make_whole(all, count, w)) return true;
  if (!validate(draft_of(w.task), &facts, why)) return false;
  *is_one = least_bytes(c, draft_of(w.task)) <= c.settings.local_store_bytes;
  return true;
}

}  // namespace

std::uint64_t submit_columns(runtime_state* c, std::size_t count, const draft& all) {
  refusal why;
  whole_bulk whole;
  bool is_one = false;
  if (!check_all(*c, all, count, whole, &is_one, &why))
    throw error(why.code, why.argument, why.message);
  if (is_one) {
    return submit_bulk(
        c, 1, [](void* w, std::size_t, descriptor& d) { d = static_cast<whole_bulk*>(w)->task; },
        &whole);
  }
  const auto make = [](void* of, std::size_t i, descriptor& d) {
    make_task(*static_cast<const draft*>(of), i, d);
  };
  return submit_bulk(c, count, make, const_cast<draft*>(&all));
}

}  // namespace lev::detail
