// share_core: how a host that shares its core with other hosts waits: it offers the core to any
// thread (yield), or hands it to the host whose task is complete (directed). Neither runs tasks.
//
// Paper: SLED section 2 (yield if not ready), section 3.1 and Figure 6 (directed yield). The paper
// adds one call to the kernel, to yield to a process; here it is two: wake that thread, and sleep.
#pragma once

#include "worker/awaited.hpp"
#include "worker/wake.hpp"

namespace lev {

inline bool is_over(engine& e, std::uint64_t deadline_ns) noexcept {
  return deadline_ns != no_deadline && e.machine->now_ns() >= deadline_ns;
}

// One turn of waiting by `yield`.
inline void idle_yielding(engine& e, participant& self, awaited& what,
                          std::uint64_t deadline_ns) noexcept {
  while (!what.is_there() && !is_over(e, deadline_ns)) {
    self.park.drop_token();
    e.machine->yield_core();
  }
}

// A poller's find: news, a host to hand the core to, or another host that may poll.
struct core_find {
  enum : std::uint8_t { news, named, other_poller } what = news;
  std::uint32_t host = no_one;
};

// SLED section 4.1: 50 to 100 passes do well, 100 were used.
constexpr std::uint32_t passes_max = 100;

// A poller looks at its own task first, then at the list. After passes_max passes without a find it
// offers the core to other programs. A single host sleeps, because no other host would hand it the
// core.
inline core_find look_around(engine& e, participant& self, core_list<>& list, awaited& what,
                             std::uint64_t deadline_ns) noexcept {
  for (;;) {
    self.park.drop_token();
    for (std::uint32_t pass = 0; pass < passes_max; ++pass) {
      if (what.is_there()) return {};
      const std::uint32_t host = list.take(self.index);
      if (host != core_list<>::nobody && host != self.index) return {core_find::named, host};
      e.machine->relax();
    }
    if (is_over(e, deadline_ns)) return {};
    if (list.has_other_pollers() || !e.caps.many_hosts) return {core_find::other_poller, no_one};
    e.machine->yield_core();
  }
}

// One turn of waiting by `directed`. A poller that finds a name in the list wakes that host,
// whatever it does next itself.
inline void idle_directed(engine& e, participant& self, awaited& what,
                          std::uint64_t deadline_ns) noexcept {
  const std::uint32_t core = e.machine->core_number();
  core_list<>& list = e.hosts_by_core.of(core);
  list.start_polling();
  const core_find found = look_around(e, self, list, what, deadline_ns);
  list.stop_polling([&](std::uint32_t host) { unpark(e, host); });
  LEV_DCHECK(found.what != core_find::named ||
             (found.host < e.participant_count && found.host != self.index));
  if (found.what == core_find::news) return;
  self.directed_core.store(core + 1, memory_order_relaxed);
  const bool sleeps = what.arm() && !what.is_there();
  if (found.what == core_find::named) unpark(e, found.host);
  if (sleeps) {
    self.counters.parks.add(1);
    self.park.park(*e.machine, deadline_ns);
  }
  what.disarm();
  self.directed_core.store(0, memory_order_relaxed);
}

}  // namespace lev
