// The crew of workers in other processes, except for their pipeline (tend.cpp) and waiting
// (idle.cpp).
#include "remote/remote_crew.hpp"

#include "base/numbers.hpp"
#include "share/shortage.hpp"
#include "share/zone.hpp"
#include "task/arguments.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace lev {

namespace {

// A worker process reaches shared memory only.
void reach_shared_memory(const config& settings, copy_rule& rule) {
  if (settings.staging == staging::copy) return;
  const zone* z = open_zone();
  if (z == nullptr) {
    const int code = errno;
    char message[240];
    std::snprintf(message, sizeof message, "there is no shared memory: %s%s", std::strerror(code),
                  next_step_of_memory(code));
    throw error(is_shortage(code) ? status::out_of_memory : status::unavailable, -1, message);
  }
  rule.shared_begin = z->heap_begin;
  rule.shared_end = z->heap_end;
  rule.shared_inout = settings.staging == staging::in_place;
  rule.shared_is_read_only = settings.processes.isolation == isolation::confined;
}

}  // namespace

std::unique_ptr<crew> hire(engine& e) {
  remote_workers* remote = e.machine->remote();
  if (remote == nullptr) return std::make_unique<crew>(e);
  return std::make_unique<remote_crew>(e, *remote);
}

void remote_crew::plan() {
  constexpr std::uint32_t own_depth = 8;
  // A piece costs 1 us here, and a worker that is woken for it 10. (Bulks over 1,000 columns of
  // empty tasks: 10 to 23 us, with a scale of 1 43 to 71; 8 is as good, and balances worse. AMD
  // EPYC, 2 workers, 2026-11-27.)
  constexpr std::uint64_t piece_scale = 4;
  e.takers = e.workers;
  e.first_actor = e.workers;  // the service
  e.first_host = e.workers + 1;
  e.asks_crew = true;
  e.copies.all = true;
  e.costs.set_scale(piece_scale);
  reach_shared_memory(e.settings, e.copies);
  e.depth = e.settings.depth != 0 ? e.settings.depth : own_depth;
}

bool remote_crew::open() {
  if (!remote->open(e.workers)) return false;
  lines.reset(new remote_line[e.workers]);
  tenders.reset(new tender[e.participant_count]);
  e.depth = smaller(e.depth, line_jobs_max);
  for (std::uint32_t i = 0; i < e.workers; ++i) {
    participant& p = e.participants[i];
    p.store = static_cast<char*>(remote->store_of(i));
    p.store_map.open(e.settings.local_store_bytes);
    LEV_ASSERT(p.store != nullptr && p.is_worker);
  }
  shares_workers = settings().pool != nullptr;
  is_traced = e.settings.trace_events != 0;
  const std::uint64_t limit_ns = settings().task_ns_max;
  const bool has_limit = limit_ns != 0 && limit_ns != no_time_limit;
  if (!is_traced && !has_limit && e.has_heavy_fence)
    e.sends_straight.store(1, memory_order_relaxed);
  straight_max = e.workers == 1 ? e.depth : 1;  // as room_for() says
  known = remote->known();
  // No participant polls, and the service always counts as a sleeper: so every ring reaches it.
  e.doorbell.start_polling();
  e.doorbell.start_sleeping(e.workers);
  return true;
}

// The service tends the processes, too.
bool remote_crew::run_one(participant& self) noexcept {
  if (is_service(self)) attend(*this, self);
  return tend(*this, self);
}

std::uint64_t remote_crew::done_by(const participant& p) const noexcept {
  return p.counters.executed.read();
}

bool remote_crew::can_do(const detail::draft& d, const draft_facts& facts, refusal* why) noexcept {
  if (facts.is_far) {
    return refuse(
        why, status::not_supported, -1,
        "tasks of worker processes cannot get far memory themselves; declare what the task "
        "reads as lev::in, or take the machine threads");
  }
  if (is_down.load(memory_order_acquire) != 0)  // Pairs with go_down()
    return refuse(why, status::pool_down, -1, "%s; open a new runtime", why_down);
  const char* reason = remote->can_run(d.procedure);
  return reason == nullptr || refuse(why, status::not_supported, -1,
                                     "procedure '%.60s' cannot run in a worker process: %s",
                                     procedure_name(d.procedure), reason);
}

bool remote_crew::can_do_plainly(procedure_id id) noexcept {
  return is_down.load(memory_order_relaxed) == 0 && remote->can_run(id) == nullptr;
}

// The limits are kept in slot_extra, which is read only once some task has limits of its own.
void remote_crew::limit(std::uint32_t task, std::uint64_t task_ns_max,
                        std::uint32_t max_attempts) noexcept {
  slot_extra& extra = e.task_slots.extra(task);
  extra.limits_of = e.task_slots.at(task).state.generation();
  extra.task_ns_max = task_ns_max;
  extra.max_attempts = max_attempts;
  // Less than `no_deadline`, which says that no task has limits of its own.
  const std::uint64_t limit =
      smaller(task_ns_max == 0 ? no_deadline : task_ns_max, no_deadline - 1);
  std::uint64_t least = least_limit_ns.load(memory_order_relaxed);
  while (limit < least && !least_limit_ns.compare_exchange_strong(
                              least, limit, memory_order_relaxed, memory_order_relaxed)) {
  }
}

void remote_crew::want_ends() noexcept {
  if (are_ends_wanted.load(memory_order_relaxed) == 0 &&
      are_ends_wanted.exchange(1, memory_order_relaxed) == 0)
    remote->want_ends(true);
}

}  // namespace lev
