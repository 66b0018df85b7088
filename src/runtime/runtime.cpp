// The members of lev::runtime that are not inline: barrier, filters, mutexes, counters, trace; and
// ending a task early.
#include <leveret/runtime.hpp>

#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "share/shortage.hpp"
#include "sync/hook_call.hpp"
#include "sync/uncancelled.hpp"
#include "trace/chrome.hpp"
#include "worker/enqueue.hpp"
#include "worker/serve.hpp"

#include <cstdio>
#include <utility>

namespace lev {

void runtime::begin_submit() noexcept {
  state_->phase_open.store(1, memory_order_relaxed);
}

void runtime::end_submit() noexcept {
  // Pairs with await_shared::arm(): the phase ends, then waiters are looked for. Sequentially
  // consistent, as there.
  state_->phase_open.store(0, memory_order_seq_cst);
  if (state_->barrier_wanted.load(memory_order_seq_cst) != 0)
    wake_wanting(*state_, want_barrier);  // Pairs with arm() too
}

outcome runtime::wait_for_completion(std::int64_t timeout_ns) noexcept {
  detail::runtime_state& c = *state_;
  outcome o;
  participant* self = detail::here(c);
  if (self == nullptr || timeout_ns < no_timeout) {
    o.code = self == nullptr ? detail::status_of_absence(c) : status::bad_argument;
  } else if (detail::is_in_task_or_bulk(c, *self)) {
    o.code = status::would_deadlock;
  } else if (!detail::wait_quiescent(c, *self, detail::deadline_after(c, timeout_ns))) {
    o.code = timeout_ns < 0 ? status::would_deadlock : status::timed_out;
  } else {
    const spin_guard<> held(c.failure_lock);
    o = std::exchange(c.failure, outcome{});
    if (o.failures == 0) o.code = status::ok;
  }
  return o;
}

status runtime::set_filters(const filter* chain, std::size_t count) noexcept {
  if (count > filter_count_max) return status::too_big;
  if (chain == nullptr && count != 0) return status::bad_argument;
  for (std::size_t i = 0; i < count; ++i) {
    if (chain[i].apply == nullptr) return status::bad_argument;
  }
  // It has the scheduler's lock.
  if (hook_call::is_here_of(&state_->sched)) return status::would_deadlock;
  participant* self = detail::here(*state_);
  if (self == nullptr) return detail::status_of_absence(*state_);
  pass_report report(self->counters.submitted);
  state_->sched.set_filters(chain, count, self->free_slots, report);
  end_pass(*state_, *self, report);
  run_pass(*state_, *self);
  wake_worker(*state_, *self);
  tell_of_help(*state_, *self);  // a pass may have failed tasks
  return status::ok;
}

status runtime::make_mutex(mutex_id* id) noexcept {
  if (id == nullptr) return status::bad_argument;
  if (state_->why_absent != nullptr) return status::closed;
  return state_->mutexes.make(id) ? status::ok : status::too_big;
}

unsigned runtime::workers() const noexcept {
  return state_->workers;
}
const char* runtime::machine() const noexcept {
  return state_->machine_name;
}
std::uint64_t runtime::now_ns() const noexcept {
  return state_->machine->now_ns();
}

void runtime::pass_time(std::uint64_t cycles) noexcept {
  if (!state_->caps.virtual_time || hook_call::is_here_of(&state_->sched)) return;
  if (here(*state_) != nullptr) state_->machine->cost(cycles);
}

counters runtime::count() const noexcept {
  counters sum{};
  std::uint64_t refused = 0;
  for (const participant& p : state_->in_use()) {
    const own_counters& own = p.counters;
    const std::uint64_t own_refused = own.refused.read();  // before what it is taken off
    refused += own_refused;
    sum.completed += own.completed.read() - own_refused;
    sum.failed += own.failed.read();
    sum.direct += own.direct.read();
    sum.stolen += own.stolen.read();
    sum.diced += own.diced.read();
    sum.passes += own.passes.read();
    sum.staged_bytes += own.staged_bytes.read();
    sum.bad_filters += own.bad_filters.read();
    sum.deaths += own.deaths.read();
    sum.reruns += own.reruns.read();
    if (p.is_worker) {
      sum.parks += own.parks.read();
    } else {
      sum.helped += state_->crew->done_by(p);
    }
  }
  // Afterwards, so that no task is complete and not submitted: workers submit what they cut.
  for (const participant& p : state_->in_use()) sum.submitted += p.counters.submitted.read();
  sum.submitted -= refused;
  return sum;
}

worker_counters runtime::count_worker(unsigned index) const noexcept {
  worker_counters w{};
  if (state_->participants == nullptr) return w;
  if (index < state_->workers) {
    w.completed = state_->crew->done_by(state_->participants[index]);
    w.busy_ns = state_->participants[index].counters.busy_ns.read();
  } else if (index == state_->workers) {
    for (const participant& p : state_->in_use().subspan(state_->workers)) {
      w.completed += state_->crew->done_by(p);
      w.busy_ns += p.counters.busy_ns.read();
    }
  }
  return w;
}

std::uint64_t runtime::trace_hash() const noexcept {
  std::uint64_t h = state_->machine == nullptr ? 0 : state_->machine->schedule_hash();
  for (const participant& p : state_->in_use()) {
    if (p.events.is_open() && p.events.written() != 0) h = mix64(h ^ p.events.hash()) + p.index;
  }
  return h;
}

status runtime::write_trace(const char* path) const noexcept {
  if (state_->settings.trace_events == 0) return status::not_supported;
  if (state_->participants == nullptr) return status::closed;
  const uncancelled now;
  const no_write_signals guard;
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "we");
  if (file == nullptr) return status::unavailable;
  chrome_writer writer(file);
  LEV_ASSERT(state_->first_host < state_->participant_count);
  for (std::uint32_t i = 0; i <= state_->first_host; ++i) {
    char name[32];
    const char* kind = i < state_->workers      ? "worker %u"
                       : i < state_->first_host ? "service"
                                                : "host";
    std::snprintf(name, sizeof name, kind, i);
    writer.write_lanes(i, name, state_->participants[i].events);
  }
  const bool written = writer.finish();
  return std::fclose(file) == 0 && written ? status::ok : status::unavailable;
}

}  // namespace lev

namespace lev::detail {

// cancel() and end() are for a task that is not wanted any more. Both mark its state word, which
// the holder of the task checks: the participant that takes it from a queue, tends its line
// (remote/tend.cpp), or ends worker processes (remote/attend.cpp).
status cancel(runtime_state* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->task_slots.at(ticket_task(id)).state;
  if (state.announce(ticket_generation(id), state_bits::cancel_asked)) {
    participant* self = c->crew->holds_tasks() ? here(*c) : nullptr;
    if (self != nullptr) c->crew->recall(*self);
    return status::ok;
  }
  return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                   : status::ok;
}

status end(runtime_state* c, std::uint64_t id) noexcept {
  if (const status s = check_ticket(c, id); s != status::ok) return s;
  if (c->why_absent != nullptr) return status::closed;
  task_state<>& state = c->task_slots.at(ticket_task(id)).state;
  if (!state.announce(ticket_generation(id), state_bits::end_asked))
    return state.peek(ticket_generation(id)) == status::stale_ticket ? status::stale_ticket
                                                                     : status::too_late;
  if (!c->crew->end_running(false)) return status::not_supported;
  if (participant* self = here(*c); self != nullptr) c->crew->recall(*self);
  return status::ok;
}

}  // namespace lev::detail
