// write_back: starts the transfers of copied outputs to the caller's memory; release_room() follows
// when they are there. Only a task that ended with ok writes back, so a failed one leaves the
// caller's memory as it was (docs/reference/promises.md, I2) if arguments are copied. In a piece of
// a bulk over columns, the tasks before the one at which it has stopped have ended with ok.
#pragma once

#include "worker/columns.hpp"
#include "worker/engine.hpp"

#include "task/arguments.hpp"

namespace lev {

// write_back_items() is for the first tasks of a piece of columns.
template <class CallerView>
[[gnu::noinline]] void write_back_items(engine& e, job& j, CallerView&& caller_view,
                                        std::uint64_t items) noexcept {
  if (items == 0) return;
  for (unsigned i = 0; i < j.argument_count; ++i) {
    argument theirs = caller_view(i);
    const bool is_copied = is_output(theirs) && needs_copy(theirs, e.copies);
    if (!is_copied || (theirs.flags & argument_sliced) == 0) continue;
    cut(theirs, 0, items);
    e.machine->put(j.tag, reinterpret_cast<const void*>(j.arguments[i].address), theirs);
  }
}

// `caller_view(i)` is the i-th argument as the caller passed it.
template <class CallerView>
void write_back(engine& e, job& j, CallerView&& caller_view) noexcept {
  if (j.result != status::ok) {
    if (!is_of_columns(j.procedure)) return;
    const argument& indices = caller_view(j.argument_count - 1u);
    const std::uint32_t at = e.task_slots.extra(j.task).stopped_at;
    return write_back_items(e, j, caller_view, items_before(at, indices));
  }
  for (unsigned i = 0; i < j.argument_count; ++i) {
    const argument& theirs = caller_view(i);
    if (is_output(theirs) && needs_copy(theirs, e.copies)) {
      LEV_DCHECK(j.arguments[i].address != theirs.address && j.arguments[i].what == theirs.what);
      e.machine->put(j.tag, reinterpret_cast<const void*>(j.arguments[i].address), theirs);
    }
  }
}

inline void release_room(engine& e, participant& self, job& j) noexcept {
  if (j.store_offset != arena::none) self.store_map.release(j.store_offset);
  if (j.spill != nullptr) e.machine->close_spill(j.spill);
  j.store_offset = arena::none;
  j.spill = nullptr;
}

}  // namespace lev
