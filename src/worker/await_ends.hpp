// await_ends: how a participant waits where workers are remote: it looks at the lines, then sleeps.
#ifndef LEVERET_WORKER_AWAIT_ENDS_HPP
#define LEVERET_WORKER_AWAIT_ENDS_HPP

#include "worker/tend.hpp"
#include "worker/worker.hpp"

#include <utility>

namespace lev {

// Whoever looks at the lines all the time is counted, and looks once more when he has stopped;
// workers tell the service of their ends when nobody does.
inline bool spin_remote(engine& e, participant& self, awaited& what,
                        std::uint64_t until_ns) noexcept {
  constexpr std::uint32_t turns_per_clock = 32;
  if (is_service(e, self)) return has_remote_work(e);
  for (std::uint32_t turn = 1;; ++turn) {
    if (what.is_there() || has_remote_work(e)) return true;
    if (turn % turns_per_clock == 0 && e.place->now_ns() >= until_ns) return false;
    e.place->relax();
  }
}

// Looks on, and offers the core meanwhile. False: it is time to sleep.
inline bool linger_remote(engine& e, participant& self, awaited& what, std::uint64_t span_ns,
                          std::uint64_t deadline_ns) noexcept {
  if (is_service(e, self) || !self.linger.begin()) return false;
  const auto now_ns = [&]() noexcept { return e.place->now_ns(); };
  const std::uint64_t until_ns = smaller(now_ns() + span_ns, deadline_ns);
  for (bool is_free = true; is_free && now_ns() < until_ns;) {
    is_free = self.linger.offer(now_ns, [&]() noexcept { e.place->yield_core(); });
    if (!what.is_there() && !has_remote_work(e)) continue;
    if (is_free) self.linger.end();
    return true;
  }
  return false;
}

inline void sleep_remote(engine& e, participant& self, awaited& what,
                         std::uint64_t deadline_ns) noexcept {
  const bool is_host = !is_service(e, self);
  const bool is_patient = what.is_patient();
  if (is_host) e.remote->want_ends(true, is_patient);
  e.remote->unwatch();
  if (!is_host) deadline_ns = smaller(deadline_ns, service_deadline(e));
  if (what.arm() && !what.is_there() && !has_remote_work(e)) {
    self.counters.parks.add(1);
    self.park.park(*e.place, deadline_ns);
  }
  what.disarm();
  e.remote->watch();
  if (is_host) e.remote->want_ends(false, is_patient);
}

// A participant that serves remote workers is counted as one that watches them, once: a callback
// that waits does so on top of another wait, and must not sleep while that one is counted. Ends
// that came meanwhile were not told to the service: the participant looks once more when it has
// stopped.
class watching {
 public:
  watching(engine& e, participant& self) noexcept
      : engine_(e),
        self_(self),
        was_tending_(std::exchange(self.is_tending, false)),
        was_watching_(std::exchange(self.is_watching, true)) {
    if (e.remote != nullptr && !was_watching_) e.remote->watch();
  }
  ~watching() {
    self_.is_watching = was_watching_;  // the callback of such an end may wait, too
    if (engine_.remote != nullptr && !was_watching_) {
      engine_.remote->unwatch();
      if (has_remote_work(engine_)) tend_all(engine_, self_);
    }
    self_.is_tending = was_tending_;
  }
  watching(const watching&) = delete;
  watching& operator=(const watching&) = delete;

 private:
  engine& engine_;
  participant& self_;
  bool was_tending_;  // the wait is that of a callback
  bool was_watching_;
};

}  // namespace lev

#endif
