// Tasks that a pass could not dice; see enqueue.hpp.
#include "worker/enqueue.hpp"

#include "worker/complete.hpp"
#include "worker/contexts.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev {

// A callback may wait for the submitting task, which has found these; or for one in hand. Pieces
// are told here, too: the submitter's own program may go on for long, and never come back.
void fail_undivided(engine& e, participant& self, std::uint32_t chain) noexcept {
  const bool was_telling = std::exchange(self.is_telling, true);
  bool has_tails = self.aside.ended_pieces != 0 && has_callback(e, self.ended_pieces_join);
  while (chain != no_slot) {
    const slot_extra& extra = e.task_slots.extra(chain);
    const std::uint32_t next = extra.next_failing;
    has_tails |= has_callback(e, whole_of(e.task_slots.at(chain), chain));
    fail_unrun(e, self, chain, static_cast<status>(extra.first_failure.load(memory_order_relaxed)));
    chain = next;
  }
  self.is_telling = was_telling;
  if (was_telling) return;
  if (!has_tails) {
    fail_rest(e, self);
    return count_ended_pieces(e, self);
  }
  if (self.running != nullptr && contexts_of(self) != nullptr)
    return tell_ends_aside(*self.contexts);
  const bool is_staging =
      self.frames != nullptr && self.doing.load(memory_order_relaxed) == activity::serves;
  if (!is_staging) fail_rest(e, self);  // or run_ahead() does it
}

}  // namespace lev
