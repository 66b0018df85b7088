// idle_among: how one of several contexts of a participant waits, and how they sleep.
#ifndef LEVERET_WORKER_IDLE_AMONG_HPP
#define LEVERET_WORKER_IDLE_AMONG_HPP

#include "worker/contexts.hpp"
#include "worker/take.hpp"
#include "worker/worker.hpp"

namespace lev {

// The last of the contexts to find nothing to do lets the participant sleep, for all of them.
inline void sleep_together(engine& e, participant& self) noexcept {
  contexts& c = *self.held;
  std::uint64_t deadline_ns = no_deadline;
  const held_context* h = c.current;
  do {
    deadline_ns = smaller(deadline_ns, h->deadline_ns);
    h = h->next;
  } while (h != c.current);
  e.bell.start_spinning();
  e.bell.start_sleeping(self.index);
  if (looks_idle(e, self)) {
    self.counters.parks.add(1);
    self.park.park(*e.place, deadline_ns);
  }
  e.bell.stop_sleeping(self.index);
  self.hands_over = e.bell.stop_spinning();
  ++c.wakes;
}

// One of several contexts waits. It takes its turns without doing anything, until all of them do:
// then they sleep together, and all look again when the participant is woken.
inline void idle_among(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
                       std::uint64_t* since_ns) noexcept {
  contexts& c = *self.held;
  settle(e, self);
  const std::uint64_t now_ns = e.place->now_ns();
  if (*since_ns == 0) *since_ns = now_ns;
  if (now_ns - *since_ns < e.settings.spin_ns) {
    e.place->relax();
    return pass_turn(c);
  }
  c.current->deadline_ns = deadline_ns;
  const std::uint32_t wakes = c.wakes;
  ++c.asleep;
  if (what.arm()) {
    while (c.wakes == wakes && !what.is_there()) {
      if (c.asleep == c.live) {
        sleep_together(e, self);
      } else {
        pass_turn(c);
      }
    }
  }
  what.disarm();
  --c.asleep;
}

}  // namespace lev

#endif
