// stage: arguments that must be copied get room in the local store, and their transfers are
// started. Outputs that are not read start with the bytes that the caller may see if the body does
// not write them. Arguments used in place stay as they are; a task with nothing to copy never comes
// here.
#pragma once

#include "worker/engine.hpp"

#include "task/arguments.hpp"

#include <cstring>

namespace lev {

// open_local_store() reserves a participant's store on first use; false when memory is short.
inline bool open_local_store(engine& e, participant& self) noexcept {
  if (self.store == nullptr) {
    self.store = static_cast<char*>(e.machine->open_store(e.settings.local_store_bytes));
    self.store_map.open(e.settings.local_store_bytes);
  }
  return self.store != nullptr;
}

// Finds room for `bytes`. A task that runs while another waits below it, or while others are staged
// ahead, may find the store full of their data: if it `must` have room now, it gets memory of its
// own, or they would wait for each other (bounded by config::nest_max stores).
inline char* find_room(engine& e, participant& self, job& j, std::size_t bytes,
                       bool must) noexcept {
  LEV_DCHECK(bytes != 0 && j.store_offset == arena::none && j.spill == nullptr);
  j.store_offset = arena::none;
  j.spill = nullptr;
  if (!open_local_store(e, self)) return nullptr;
  const std::size_t aligned = staged_alignment(arguments_of(j));
  j.store_offset = self.store_map.allocate(bytes, aligned);
  LEV_DCHECK(j.store_offset == arena::none ||
             j.store_offset + bytes <= e.settings.local_store_bytes);
  if (j.store_offset != arena::none) return self.store + j.store_offset;
  if (!must) return nullptr;
  if (aligned > arena::alignment) bytes += aligned;
  j.spill = e.machine->open_spill(round_up(bytes, arena::alignment));
  return reinterpret_cast<char*>(round_up(reinterpret_cast<std::uintptr_t>(j.spill), aligned));
}

// Sets the bytes of an argument before the body runs. No body sees data that another task left in
// the store: a result has the caller's value, so that an unassigned one keeps it, as in place (a
// few bytes that come along with the task, and no transfer); unwritten bytes of an `out` are 0.
inline void start_argument(engine& e, const job& j, const argument& a, char* room) noexcept {
  if (reads_memory(a.what)) {
    e.machine->get(j.tag, room, a);
  } else if (a.what == kind::result) {
    std::memcpy(room, reinterpret_cast<const void*>(a.address), a.row_bytes);
  } else {
    std::memset(room, 0, payload_bytes(a));
  }
}

// stage() starts the transfers of `j` under its tag. False: no room now, or, if it `must` have
// room, no memory at all.
inline bool stage(engine& e, participant& self, job& j, bool must) noexcept {
  LEV_DCHECK(j.body.arguments == j.arguments);
  const std::size_t bytes = staged_bytes(arguments_of(j), e.copies);
  if (bytes == 0) return true;
  char* const room = find_room(e, self, j, bytes, must);
  if (room == nullptr) return false;
  std::size_t end = 0;
  for (unsigned i = 0; i < j.argument_count; ++i) {
    argument& a = j.arguments[i];
    if (!needs_copy(a, e.copies)) continue;
    char* const place = room + staged_begin(a, end);
    start_argument(e, j, a, place);
    end = staged_end(a, end);
    LEV_DCHECK(end <= bytes);  // or it would be in another task's room
    a.address = reinterpret_cast<std::uintptr_t>(place);
    a.stride_bytes = static_cast<std::int64_t>(a.row_bytes);
  }
  self.counters.staged_bytes.add(bytes);
  return true;
}

}  // namespace lev
