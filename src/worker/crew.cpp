// The crew whose participants run the tasks themselves.
#include "worker/crew.hpp"

#include "worker/enqueue.hpp"
#include "worker/idle.hpp"
#include "worker/serve.hpp"
#include "worker/wait_in_task.hpp"
#include "worker/wake.hpp"
#include "worker/worker.hpp"

namespace lev {

namespace {

constexpr std::uint32_t direct_workers_max = 64;  // looked at for the direct path
static_assert(direct_workers_max < 0xff);         // slot::mailbox is a byte

}  // namespace

void crew::plan() {
  e.takers = e.workers + (e.settings.wait == wait_policy::help ? 1 : 0);
  e.first_actor = 0;
  e.first_host = e.workers;
  e.mailboxes = smaller(e.workers, direct_workers_max);
  e.has_contexts = true;
  e.copies.all = e.settings.staging == staging::copy || !e.caps.in_place;
  const std::uint32_t own_depth = e.caps.async_copies ? 2 : 4;
  e.depth = e.settings.depth != 0 ? e.settings.depth : own_depth;
  LEV_ASSERT(e.takers != 0 && e.depth <= ahead_max);
}

bool crew::run_one(participant& self) noexcept {
  return lev::run_one(e, self);
}

void crew::queued(participant& self) noexcept {
  const std::uint32_t near = self.index + 1;
  const std::uint32_t who = e.doorbell.wake_one(near < e.participant_count ? near : 0);
  if (who != no_one) unpark_for_work(e, who);
}

void crew::send(participant& self, std::uint32_t task) noexcept {
  enqueue(e, self, task);
}

void crew::idle(participant& self, awaited& what, std::uint64_t deadline_ns,
                wait_policy how) noexcept {
  lev::idle(e, self, what, deadline_ns, how);
}

bool crew::await(participant& self, awaited& what, std::uint64_t deadline_ns, wait_policy how,
                 giving_up when) noexcept {
  if (self.running != nullptr) return wait_in_task(e, self, what, deadline_ns, when);
  const turn_of_work work = how == wait_policy::help ? &lev::run_some : nullptr;
  return serve_until(e, self, what, deadline_ns, how, work);
}

std::uint64_t crew::done_by(const participant& p) const noexcept {
  const std::uint64_t refused = p.counters.refused.read();  // before what it is taken off
  return p.counters.completed.read() - refused;
}

}  // namespace lev
