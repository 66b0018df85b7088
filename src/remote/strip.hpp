// strip: a task that is larger than the local store, on a confined worker, when no task slots were
// free for its pieces. Another worker gets shared memory for it; a confined one cannot write there.
// So the task travels in parts that fit the store, one after the other; its slot holds what is left
// (gcell's strip mining, as in worker/strips.hpp).
#pragma once

#include "remote/remote_crew.hpp"

namespace lev {

// What is known of the task's attempts. It is kept with the slot's generation, so that the slot's
// next task starts at 0.
inline slot_extra& history_of(remote_crew& r, std::uint32_t task) noexcept {
  slot_extra& extra = r.e.task_slots.extra(task);
  const std::uint32_t generation = r.e.task_slots.at(task).state.generation();
  if (extra.attempts_of != generation) {
    extra.attempts = extra.suspected = 0;
    extra.items_gone = 0;
  }
  extra.attempts_of = generation;
  return extra;
}

// How many items of a task are done and no longer in its slot.
inline std::uint64_t items_gone(remote_crew& r, std::uint32_t task) noexcept {
  const slot_extra& extra = r.e.task_slots.extra(task);
  const bool is_told = extra.attempts_of == r.e.task_slots.at(task).state.generation();
  return is_told ? extra.items_gone : 0;
}

// cut_strip() narrows a loaded job to a first part that fits the store. False: it cannot be cut in
// order.
bool cut_strip(remote_crew& r, job& j) noexcept;

// strip_at() is the part of the caller's i-th argument that a job is about.
argument strip_at(remote_crew& r, const job& j, unsigned i) noexcept;

// go_on_with_rest() leaves the rest of a task in its slot when the first part has succeeded and was
// written back. False: there is no rest.
bool go_on_with_rest(remote_crew& r, const job& j) noexcept;

}  // namespace lev
