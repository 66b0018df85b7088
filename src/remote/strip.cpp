// Cutting the part of a task that travels next, and what is left of it when that has come back.
#include "remote/strip.hpp"

#include "task/arguments.hpp"
#include "task/procedure_table.hpp"
#include "task/slice.hpp"

namespace lev {

bool cut_strip(remote_crew& r, job& j) noexcept {
  LEV_DCHECK(j.body.arguments == j.arguments);
  while (staged_bytes(arguments_of(j), r.e.copies) > r.e.settings.local_store_bytes) {
    const std::uint64_t items = items_of(arguments_of(j));
    // A hook's pieces follow each other in no order that is known here.
    if (items < 2 || procedure_at(j.procedure).info.dice != nullptr) return false;
    for (unsigned i = 0; i < j.argument_count; ++i) {
      if ((j.arguments[i].flags & argument_sliced) != 0) cut(j.arguments[i], 0, items / 2);
    }
  }
  return true;
}

argument strip_at(remote_crew& r, const job& j, unsigned i) noexcept {
  argument a = r.e.task_slots.argument_at(j.task, i);
  if ((a.flags & argument_sliced) != 0) cut(a, 0, items_of(arguments_of(j)));
  return a;
}

bool go_on_with_rest(remote_crew& r, const job& j) noexcept {
  const std::uint64_t done = items_of(arguments_of(j));
  const std::uint64_t all = r.e.task_slots.items_of(j.task);
  LEV_DCHECK(done <= all);
  if (done == all) return false;
  for (unsigned i = 0; i < j.argument_count; ++i) {
    argument& a = r.e.task_slots.argument_at(j.task, i);
    if ((a.flags & argument_sliced) != 0) cut(a, done, all);
  }
  slot_extra& history = history_of(r, j.task);
  history.items_gone += done;
  history.attempts = 0;  // they belonged to the part that is done
  return true;
}

}  // namespace lev
