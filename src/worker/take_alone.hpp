// take_alone: ready tasks one by one, straight from their ring, for a host that helps, as long as
// nobody else takes any.
//
// A batch goes through the inbox, so that takers seldom meet at the ring; a task on that way takes
// some 45 instructions more (bench instructions). A host has queued most of these tasks itself, and
// the ring's lines are with it. A worker takes batches: one by one it takes the submitter's lines
// away more often, and a stream of empty tasks took 27 to 38 ns each in place of 21 (bench
// throughput, two near cores). A host is alone while the ring's head is where it left it.
#pragma once

#include "worker/engine.hpp"

namespace lev {

// Tasks moved from the ready queue at once, or taken alone between two looks at it: two lines of
// cells.
constexpr std::uint32_t checkout_max = 16;

// Takes the next ready task where no other participant has taken any since this one did: it need
// not go through the inbox. The others stay where all can take them, so that a task that takes long
// keeps none from running. False: there is none.
[[gnu::always_inline]] inline bool take_alone(engine& e, participant& self,
                                              std::uint32_t* task) noexcept {
  constexpr std::uint32_t slots_ahead = 4;
  const std::uint32_t position = self.ready.next;
  if (position == self.ready.alone_to) return false;
  std::uint32_t later = no_slot;
  if (!self.ready.last->try_pop_at(position, task, slots_ahead, &later)) [[unlikely]] {
    self.ready.alone_to = position;
    return false;
  }
  self.ready.next = position + 1;
  e.task_slots.prefetch(later);
  return true;
}

// Notes the last task that a host has taken from a ring. Tasks whose memory is asked for before
// they run wait for that in the inbox.
inline void note_taken(engine& e, participant& self, index_ring<>& ready,
                       std::uint32_t task) noexcept {
  const bool is_asked_for =
      e.depth > 1 && procedure_at(e.task_slots.at(task).procedure).memory != 0;
  self.ready.last = is_asked_for ? nullptr : &ready;
  self.ready.next = self.ready.alone_to = ready.position();
}

// Begins to take tasks alone, with the first of those that wait. no_slot: another participant takes
// them, too, they have memory, or others wait in the inbox and would be before all but the first.
[[gnu::always_inline]] inline std::uint32_t begin_alone(engine& e, participant& self,
                                                        index_ring<>& ready,
                                                        std::uint32_t waiting) noexcept {
  if (self.is_worker || self.ready.last != &ready || ready.position() != self.ready.next ||
      self.inbox.size() != 0)
    return no_slot;
  self.ready.alone_to = self.ready.next + 1;
  std::uint32_t task = no_slot;
  if (!take_alone(e, self, &task)) return no_slot;
  note_taken(e, self, ready, task);
  if (self.ready.last != nullptr)
    self.ready.alone_to = self.ready.next + smaller(waiting, checkout_max) - 1;
  return task;
}

}  // namespace lev
