// idle: how a participant waits when it has nothing to run: it polls for a while, then it sleeps.
#pragma once

#include "worker/awaited.hpp"
#include "worker/contexts.hpp"

namespace lev {

// has_work() tells whether this participant would find a task somewhere, as far as it can see.
bool has_work(engine& e, participant& self) noexcept;

// As long as it lives, the participant counts as doing nothing.
class idling {
 public:
  idling(participant& self, std::uint64_t deadline_ns) noexcept
      : self_(self), before_(self.doing.load(memory_order_relaxed)) {
    const std::uint32_t now = deadline_ns == no_deadline ? activity::waits : activity::waits_until;
    self_.doing.store(now, memory_order_relaxed);
  }
  ~idling() { self_.doing.store(before_, memory_order_relaxed); }
  idling(idling&&) = delete;

 private:
  participant& self_;
  std::uint32_t before_;
};

// settle_to_idle() gives up everything of a participant that others may wait for, free slots
// included.
void settle_to_idle(engine& e, participant& self) noexcept;

// The wait of a participant: that of its current context, or of any waiting one. It is armed for
// all of them, so that the participant may sleep.
class whichever final : public awaited {
 public:
  whichever(participant& self, awaited& own) noexcept : contexts_(self.contexts), own_(own) {}
  bool is_there() noexcept override;
  bool arm() noexcept override;
  void disarm() noexcept override;
  bool is_patient() const noexcept override { return own_.is_patient(); }
  bool looks_again() const noexcept override {
    return own_.looks_again() && (contexts_ == nullptr || contexts_->timed_count == 0);
  }
  // The earliest of the deadlines, `own_ns` included.
  std::uint64_t deadline_ns(std::uint64_t own_ns) const noexcept;

 private:
  contexts* contexts_;
  awaited& own_;
  std::uint32_t armed_ = 0;  // of the waiting contexts, from the first on
};

// idle() looks for work, then sleeps; returns when it is worth looking again. Precondition: no
// other context is in the ring.
void idle(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
          wait_policy how) noexcept;

// idle_on_stack() is for a task whose stack is not left: it sleeps until `what` is there, for a
// moment at most.
void idle_on_stack(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns) noexcept;

// ends_soon() polls without a sleep, for `looks` times as long as between two looks at the queues.
// True: `what` is there, or the caller is to look again for another reason.
bool ends_soon(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns,
               std::uint32_t looks) noexcept;

// idle_blocked() is for a participant that may take no task: each of its contexts looks for itself,
// then the participant sleeps for a moment.
void idle_blocked(engine& e, participant& self, awaited& what, std::uint64_t deadline_ns) noexcept;

// idle_for_other_contexts() does that for a host that would leave, if it had no tasks on other
// contexts. One of these is in the ring when it returns.
void idle_for_other_contexts(engine& e, participant& self) noexcept;

}  // namespace lev
