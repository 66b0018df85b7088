// Idling, step by step: poll the mailbox and the awaited thing, look into the queues now and then,
// sleep. See idle.hpp; sync/README.md shows why no wake-up is lost.
#include "worker/idle.hpp"

#include "worker/close_mailbox.hpp"
#include "worker/complete.hpp"
#include "worker/serve.hpp"
#include "worker/share_core.hpp"
#include "worker/take.hpp"
#include "worker/traced.hpp"
#include "worker/wait_in_task.hpp"
#include "worker/worker.hpp"

namespace lev {

bool has_work(engine& e, participant& self) noexcept {
  return self.mailbox.has_letter(self.letters_seen) || !e.sched.ready().looks_empty() ||
         e.sched.has_waiting() || has_backlog(e) ||
         (self.free_slots.count() != 0 && !e.backlog.looks_empty()) || !inboxes_look_empty(e);
}

namespace {

constexpr std::uint32_t looks_per_clock = 4;

// Serves a letter in the middle of polling. The worker stays where it is, so that the next letter
// finds it at the mailbox; anything else it owes the others (settle) waits until no letter comes
// for a moment.
void serve_letter(engine& e, participant& self) noexcept {
  LEV_DCHECK(self.is_worker && self.running == nullptr);
  const std::uint32_t outside = self.doing.load(memory_order_relaxed);
  self.doing.store(activity::serves, memory_order_relaxed);
  self.aside.was_last_poller = e.doorbell.stop_polling();
  run_one(e, self);
  e.doorbell.start_polling();
  self.doing.store(outside, memory_order_relaxed);
}

// Polls the mailbox and `what` until there is something, for about the time of `turns` turns of
// relax(). The first polls come without relax(): a turn of it lasts as long as the fastest tasks.
enum class polled { nothing, letter, awaited };
polled poll(engine& e, participant& self, awaited& what, bool helps, std::uint32_t turns) noexcept {
  constexpr std::uint32_t looks_per_turn = 8;
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (std::uint32_t look = 0; helps && look < looks_per_turn; ++look) {
      if (self.mailbox.has_letter(self.letters_seen)) return polled::letter;
    }
    if (what.is_there()) return polled::awaited;
    e.machine->relax();
  }
  return polled::nothing;
}

// Polls until there is work, `what` is there, or the time is up. False: time is up.
//
// The mailbox and `what` are polled all the time: their lines change only when there is something.
// The shared queues are checked less often, at random intervals: every look takes their lines away
// from a busy submitter, which then waits for them at each task (gcell section 3.3: randomized
// back-off of the pullers).
bool poll_until(engine& e, participant& self, awaited& what, bool helps,
                std::uint64_t until_ns) noexcept {
  std::uint32_t looked = 0;
  bool has_served = false;
  for (;;) {
    if (helps && has_work(e, self)) return true;
    const std::uint32_t turns = e.turns_per_look + self.random.below(e.turns_per_look);
    polled found;
    while ((found = poll(e, self, what, helps, turns)) == polled::letter) {
      if (self.running != nullptr || self.frames != nullptr) return true;
      serve_letter(e, self);
      has_served = true;
    }
    if (found == polled::awaited || has_served) return true;
    if (++looked % looks_per_clock != 0) continue;
    if (e.machine->now_ns() >= until_ns) return false;
    if (!helps) self.park.drop_token();  // whether it sleeps afterwards or not
  }
}

void park(engine& e, participant& self, std::uint64_t deadline_ns) noexcept {
  LEV_DCHECK(runs_here(self) && self.aside.ended_pieces == 0 && self.draining == nullptr);
  self.counters.parks.add(1);
  job none;
  none.task = no_slot;
  const traced t(e, self, step::park, none);
  self.park.park(*e.machine, deadline_ns);
}

// A waker counts the sleeper as awake at once, but the sleeper takes tens of microseconds to wake.
// A letter would wait that long; a task in the queue the host finds itself.
void park_without_letters(engine& e, participant& self, std::uint64_t deadline_ns) noexcept {
  const std::uint32_t was_open = self.is_mailbox_open.load(memory_order_relaxed);
  if (was_open != 0) self.is_mailbox_open.store(0, memory_order_relaxed);
  if (self.is_worker) e.machine->begin_sleep(self.sleeper);
  park(e, self, deadline_ns);
  if (self.is_worker) e.machine->end_sleep(self.sleeper);
  if (was_open != 0) self.is_mailbox_open.store(1, memory_order_relaxed);
}

void sleep(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
           bool helps) noexcept {
  if (helps) e.doorbell.start_sleeping(self.index);
  if (what.arm() && !what.is_there() && (!helps || looks_idle(e, self)))
    park_without_letters(e, self, deadline_ns);
  what.disarm();
  if (helps) e.doorbell.stop_sleeping(self.index);
}

// Whether more threads could run than there are cores: a poller takes the core from a thread that
// could work. A host counts while it waits; at least one host is taken to be at work.
bool is_crowded(engine& e) noexcept {
  if (e.caps.virtual_time) return false;
  std::uint32_t waiting = 0;
  const std::uint32_t used = e.participants_used.load(memory_order_relaxed);
  for (std::uint32_t i = e.first_host; i < used && e.workers + waiting <= e.cores; ++i)
    waiting += e.participants[i].doing.load(memory_order_relaxed) != activity::elsewhere;
  return e.workers + larger(waiting, 1u) > e.cores;
}

// Gives its free slots and edges back.
void give_up_own(engine& e, participant& self) noexcept {
  const bool has_edges = e.edges.flush(self.free_edges);
  if (e.task_slots.flush(self.free_slots) || has_edges) tell_space(e);
}

// Gives up everything. True: a callback was called, and may have left contexts that go on or wait.
// Their waits must be armed, too, so the caller begins anew.
bool settles_with_others(engine& e, participant& self) noexcept {
  const bool owed = owes_ends(self);
  if (owed && self.running != nullptr && tell_tails_aside(e, self)) return true;
  settle_again(e, self);
  give_up_own(e, self);
  return owed && has_other_contexts(self);
}

void park_for_slice(engine& e, participant& self, awaited& what,
                    std::uint64_t deadline_ns) noexcept {
  constexpr std::uint64_t slice_ns = 1'000'000;
  constexpr std::uint32_t looks = 8;
  if (poll(e, self, what, false, looks * e.turns_per_look) == polled::awaited) return;
  if (what.arm() && !what.is_there())
    park(e, self, smaller(deadline_ns, e.machine->now_ns() + slice_ns));
  what.disarm();
}

// Something that never comes.
struct nothing_awaited final : awaited {
  bool is_there() noexcept override { return false; }
  bool arm() noexcept override { return true; }
};

}  // namespace

void settle_to_idle(engine& e, participant& self) noexcept {
  settle(e, self);
  give_up_own(e, self);
}

bool whichever::is_there() noexcept {
  if (own_.is_there()) return true;
  if (contexts_ == nullptr) return false;
  for (held_context* h = contexts_->waiting; h != nullptr; h = h->next) {
    if (h->what->is_there()) return true;
  }
  return false;
}

bool whichever::arm() noexcept {
  armed_ = 0;
  if (!own_.arm()) return false;
  for (held_context* h = contexts_ == nullptr ? nullptr : contexts_->waiting; h != nullptr;
       h = h->next) {
    ++armed_;
    if (!h->what->arm()) return false;
  }
  return true;
}

void whichever::disarm() noexcept {
  own_.disarm();
  for (held_context* h = contexts_ == nullptr ? nullptr : contexts_->waiting; armed_ != 0;
       h = h->next) {
    LEV_DCHECK(h != nullptr);  // none has left the list since
    h->what->disarm();
    --armed_;
  }
}

std::uint64_t whichever::deadline_ns(std::uint64_t own_ns) const noexcept {
  if (contexts_ == nullptr || contexts_->timed_count == 0) return own_ns;
  for (const held_context* h = contexts_->waiting; h != nullptr; h = h->next)
    own_ns = smaller(own_ns, h->deadline_ns);
  return own_ns;
}

void idle(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
          wait_policy how) noexcept {
  LEV_DCHECK(!has_turns(self) && how != wait_policy::of_runtime);
  if (settles_with_others(e, self)) return;
  const idling i(self, what.looks_again() ? no_deadline : deadline_ns);
  if (how == wait_policy::yield) return idle_yielding(e, self, what, deadline_ns);
  if (how == wait_policy::directed) return idle_directed(e, self, what, deadline_ns);
  const bool sleeps = how != wait_policy::spin;
  const bool helps = how == wait_policy::help;
  self.aside.was_last_poller = false;
  if (helps) {
    e.doorbell.start_polling();
    const bool takes_letters = self.is_worker && self.running == nullptr;
    if (takes_letters && self.is_mailbox_open.load(memory_order_relaxed) == 0) open_mailbox(self);
  }
  const std::uint64_t spin_ns = is_crowded(e) ? 0 : e.settings.spin_ns;
  const std::uint64_t spin_end_ns =
      sleeps ? smaller(e.machine->now_ns() + spin_ns, deadline_ns) : deadline_ns;
  if (!poll_until(e, self, what, helps, spin_end_ns) && sleeps)
    sleep(e, self, what, deadline_ns, helps);
  if (helps) self.aside.was_last_poller = e.doorbell.stop_polling();
}

void idle_on_stack(engine& e, participant& self, awaited& what,
                   std::uint64_t deadline_ns) noexcept {
  settle_to_idle(e, self);
  const idling i(self, deadline_ns);
  park_for_slice(e, self, what, deadline_ns);
}

bool ends_soon(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
               std::uint32_t looks) noexcept {
  LEV_DCHECK(!has_turns(self));
  if (settles_with_others(e, self)) return true;
  const idling i(self, deadline_ns);
  return poll(e, self, what, false, looks * e.turns_per_look) == polled::awaited;
}

// Without the doorbell: a new task does not matter to this participant, unless one of its contexts
// waits for that very task. So it looks again when a slice of time is over, whatever happens.
void idle_blocked(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns) noexcept {
  LEV_DCHECK(!has_turns(self));
  if (settles_with_others(e, self)) return;
  contexts* c = self.contexts;
  if (c != nullptr && c->looks_due != 0 && c->waiting != nullptr) {
    --c->looks_due;
    return revive(*c);
  }
  const idling i(self, deadline_ns);
  park_for_slice(e, self, what, deadline_ns);
  if (c != nullptr) c->looks_due = c->waiting_count;
}

void idle_for_other_contexts(engine& e, participant& self) noexcept {
  nothing_awaited none;
  whichever any(self, none);
  // The last of them may end while a callback that is called here before the sleep waits.
  while (self.contexts->live == 1 && has_other_contexts(self)) {
    idle_blocked(e, self, any, any.deadline_ns(no_deadline));
    if (self.contexts->waiting != nullptr) wake_waiters(*self.contexts);
  }
}

}  // namespace lev
