// Whether a wait for a slot is in vain, because no task will give one back.
#include "runtime/wait.hpp"
#include "worker/complete.hpp"

namespace lev::detail {

// A worker that has nothing to do will give back the slots that it keeps, and so will a host that
// helps; one in its own program may never call in again. A bulk that was opened or closed meanwhile
// would hide a task that runs.
bool is_stranded(runtime_state& c) noexcept {
  LEV_DCHECK(c.closing.load(memory_order_relaxed) != 0);  // or hosts may submit more
  const bulk_census::look before = c.bulks.see();
  if (before.going_on() != 0 || !is_quiescent(c, before.open())) return false;
  for (std::uint32_t i = 0; i < c.participant_count; ++i) {
    const participant& p = c.participants[i];
    const bool calls_in = p.is_worker || p.doing.load(memory_order_relaxed) != activity::elsewhere;
    if (calls_in && p.free_slots.count() != 0) return false;
  }
  return c.task_slots.looks_exhausted() && c.bulks.see() == before;
}

namespace {

bool has_other_hosts(const runtime_state& c, const participant& self) noexcept {
  for (std::uint32_t i = c.first_host; i < c.participant_count; ++i) {
    // Pairs with the end of a bound thread. Sequentially consistent: the last look of a sleeper
    // comes after it has said that it sleeps.
    if (i != self.index && c.participants[i].is_bound.load(memory_order_seq_cst) != 0) return true;
  }
  return false;
}

}  // namespace

// Completions are looked at first, then the participants' own free slots, then the pool's ring: a
// slot on its way to be free is seen at one of these places. No host comes meanwhile, which could
// take it first.
bool is_held_by_caller(runtime_state& c, const participant& self) noexcept {
  const spin_guard guard(c.hosts_lock);
  if (has_other_hosts(c, self)) return false;
  // A bulk that it is submitting is complete when it says so.
  if (!is_quiescent(c, self.open_joins)) return false;
  for (std::uint32_t i = 0; i < c.participant_count; ++i) {
    if (c.participants[i].free_slots.count() != 0) return false;
  }
  return c.task_slots.looks_exhausted();
}

}  // namespace lev::detail
