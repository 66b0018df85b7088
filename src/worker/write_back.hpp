// write_back: copied outputs start their way to the caller's memory; release_room() follows when
// they are there. Only a task that ended with ok writes back, so a failed one leaves the caller's
// memory as it was (docs/reference/promises.md, I2) where arguments are copied.
#ifndef LEVERET_WORKER_WRITE_BACK_HPP
#define LEVERET_WORKER_WRITE_BACK_HPP

#include "worker/engine.hpp"

#include "task/arguments.hpp"

namespace lev {

// `caller_view(i)` is the i-th argument as the caller passed it.
template <class CallerView>
void write_back(engine& e, job& j, CallerView&& caller_view) noexcept {
  if (j.result != status::ok) return;
  for (unsigned i = 0; i < j.argument_count; ++i) {
    const argument& theirs = caller_view(i);
    if (is_output(theirs) && needs_copy(theirs, e.copies)) {
      LEV_DCHECK(j.arguments[i].address != theirs.address && j.arguments[i].what == theirs.what);
      e.place->put(j.tag, reinterpret_cast<const void*>(j.arguments[i].address), theirs);
    }
  }
}

inline void release_room(engine& e, participant& self, job& j) noexcept {
  if (j.store_offset != arena::none) self.store_map.release(j.store_offset);
  if (j.spill != nullptr) e.place->close_spill(j.spill);
  j.store_offset = arena::none;
  j.spill = nullptr;
}

}  // namespace lev

#endif
