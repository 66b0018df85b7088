// strips: a task that is larger than the local store, on one worker. Usually the dicer splits such
// a task into pieces for all workers; this is for when no task slots are free to hold them, so that
// it always gets done.
//
// Halves the task until a part fits, runs that part from stage to write back, and goes on with the
// next one: strip mining (gcell, section 6). The parts are on the stack, at most dice_depth_max of
// them.
#pragma once

#include "worker/execute.hpp"
#include "worker/stage.hpp"
#include "worker/write_back.hpp"

namespace lev {

inline void run_strip(engine& e, participant& self, job& j, const descriptor& strip) noexcept {
  for (unsigned i = 0; i < strip.argument_count; ++i) j.arguments[i] = strip.arguments[i];
  LEV_DCHECK(j.body.arguments == j.arguments);
  if (!stage(e, self, j, true)) {
    j.result = status::out_of_memory;
    return;
  }
  e.machine->wait_tag(j.tag);
  const procedure_info& p = procedure_at(j.procedure).info;
  if (e.caps.virtual_time) e.machine->cost(cost_of(e, p, strip));
  execute_body(e, self, j, p);
  write_back(e, j, [&strip](unsigned i) -> const argument& { return strip.arguments[i]; });
  e.machine->wait_tag(j.tag);
  release_room(e, self, j);
}

inline bool halve(const engine& e, const descriptor& whole, descriptor* halves) noexcept {
  const hook_call here(&e.sched);
  return cut_pieces(whole, halves, 2) == 2;
}

// run_strips() leaves the first failure in j.result and stops there.
inline void run_strips(engine& e, participant& self, job& j, const descriptor& whole,
                       std::uint32_t depth) noexcept {
  LEV_DCHECK(depth <= dice_depth_max && j.store_offset == arena::none);
  if (j.result != status::ok) return;
  if (staged_bytes(arguments_of(whole), e.copies) <= e.settings.local_store_bytes) {
    run_strip(e, self, j, whole);
    return;
  }
  descriptor halves[2];
  if (depth >= dice_depth_max || !halve(e, whole, halves)) {
    j.result = status::dice_loop;  // a slice that does not fit was refused
    return;
  }
  run_strips(e, self, j, halves[0], depth + 1);
  run_strips(e, self, j, halves[1], depth + 1);
}

}  // namespace lev
