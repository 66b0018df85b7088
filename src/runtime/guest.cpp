// How a wait begins, wherever its thread is: in a program of its own, in a task of this runtime, or
// in a task of another one. See worker/guest.hpp.
#include "worker/guest.hpp"
#include "runtime/wait.hpp"
#include "sync/hook_call.hpp"
#include "worker/batch.hpp"
#include "worker/complete.hpp"
#include "worker/contexts.hpp"
#include "worker/wait_in_task.hpp"

namespace lev::detail {

namespace {

// Waits as a guest, for `what` of another runtime than the task's.
class await_as_guest final : public awaited {
 public:
  await_as_guest(participant& self, participant& outer, awaited& what, giving_up when) noexcept
      : self_(self), outer_(outer), what_(what), when_(when) {
    enter_as_guest(self, outer);
    set_current_actor(&outer);
  }
  ~await_as_guest() {
    set_current_actor(actor_);
    leave_as_guest(self_);
  }
  await_as_guest(await_as_guest&&) = delete;

  // Also when waiting on is in vain.
  bool is_there() noexcept override { return what_.is_there() || is_vain(); }
  bool arm() noexcept override {
    is_armed_ = true;
    return what_.arm();
  }
  void disarm() noexcept override {
    is_armed_ = false;
    what_.disarm();
  }
  bool is_elsewhere() const noexcept override { return true; }
  bool is_patient() const noexcept override { return what_.is_patient(); }

 private:
  static constexpr std::uint32_t looks_per_clock = 64;

  // A participant with a context left would go on with a new task; one of whose waits one ends by
  // its time has a context left then. A service has none, and waits like a host.
  bool may_give_up() const noexcept {
    return when_ == giving_up::when_still ||
           (outer_.contexts != nullptr && outer_.contexts->free == nullptr &&
            outer_.doing.load(memory_order_relaxed) == activity::waits);
  }
  // Whether no participant of any runtime has run anything for long.
  bool is_vain() noexcept {
    if (is_vain_ || !may_give_up()) return is_vain_;
    if (++looks_ % looks_per_clock != 0 && !is_armed_) return false;
    const std::uint64_t now_ns = outer_.engine->machine->now_ns();
    if (now_ns - looked_ns_ < stillness::look_ns) return false;
    looked_ns_ = now_ns;
    return is_vain_ = quiet_.lasts(*outer_.engine, outer_, when_);
  }

  participant& self_;
  participant& outer_;
  awaited& what_;
  giving_up when_;
  void* actor_ = current_actor();  // another one in a callback that is called in the task
  bool is_armed_ = false;
  bool is_vain_ = false;
  std::uint32_t looks_ = 0;
  std::uint64_t looked_ns_ = 0;
  stillness quiet_;
};

participant* actor_here() noexcept {
  return static_cast<participant*>(current_actor());
}

// The participant of another runtime that runs the task in which this thread is, with contexts to
// go on in; null: the wait is like any other. It is null, too, where virtual time passes only
// during waits, and where tasks run in other processes: then no task of this runtime comes on top.
// Callbacks do: a callback is in the task in whose wait it is called. Calls below such a callback
// leave further callbacks to other threads, because these would pile up on this thread's stacks.
//
// This holds for the service of other worker processes in a callback, too: no other thread hears of
// their deaths.
participant* outer_of(const runtime_state& c, const participant& self,
                      participant* actor) noexcept {
  if (c.caps.virtual_time) return nullptr;
  for (; actor != nullptr && actor->engine != self.engine; actor = actor->serves_in) {
    const engine& other = *actor->engine;
    if (other.caps.virtual_time) return nullptr;
    if (other.crew->is_service(*actor)) return actor;
    if (!other.has_contexts) continue;
    const bool may_wait = c.has_contexts || self.calls.comes_back;
    return actor->running != nullptr && may_wait ? actor : nullptr;
  }
  return nullptr;
}

// Whether the wait is in a task of another runtime that cannot step aside. The thread may be one of
// this runtime's workers below that task, and the only one: it must do their work here.
bool must_help(const runtime_state& c, const participant& self, const participant* actor) noexcept {
  if (self.running != nullptr || c.caps.virtual_time || !c.caps.working_hosts) return false;
  return actor != nullptr && actor->engine != self.engine && actor->running != nullptr;
}

// A participant in whose wait this one is called looks for no ends meanwhile. Those below it are
// paused by waits of their own.
class watch_pauses {
 public:
  watch_pauses(const runtime_state& c, const participant* actor) noexcept : actor_(actor) {
    is_paused_ =
        actor != nullptr && actor->engine != &c && actor->engine->crew->pause_watch(*actor);
  }
  ~watch_pauses() {
    if (is_paused_) actor_->engine->crew->resume_watch(*actor_);
  }
  watch_pauses(watch_pauses&&) = delete;

 private:
  const participant* actor_;
  bool is_paused_ = false;
};

// The participant in whose task the wait is in which this one serves, on the same thread. Where
// time is virtual, workers go on in the wait of the host.
const participant* below(const participant& p) noexcept {
  const engine& e = *p.engine;
  return (e.caps.virtual_time && p.is_worker ? e.participants[e.first_host] : p).serves_in;
}

}  // namespace

bool is_in_task_or_bulk(const runtime_state& c, const participant& self) noexcept {
  if (self.running != nullptr || self.open_joins != 0 || hook_call::is_here_of(&c.sched))
    return true;
  for (const participant* p = actor_here(); p != nullptr; p = below(*p)) {
    if (p->engine == &c && p->running != nullptr) return true;
  }
  return false;
}

bool is_guest(const runtime_state& c, const participant& self) noexcept {
  return outer_of(c, self, actor_here()) != nullptr;
}

const participant* poster_of(const runtime_state& c, const participant& self) noexcept {
  return self.running != nullptr ? &self : outer_of(c, self, actor_here());
}

bool await(runtime_state& c, participant& self, awaited& what, std::uint64_t deadline_ns,
           wait_policy how, giving_up when) noexcept {
  batch::send_all(self);
  participant* const actor = actor_here();
  const watch_pauses pauses(c, actor);
  participant* outer = self.running == nullptr ? outer_of(c, self, actor) : nullptr;
  if (outer == nullptr) {
    if (must_help(c, self, actor)) how = wait_policy::help;
    return c.crew->await(self, what, deadline_ns, how, when);
  }
  leave(c, self);
  // Each machine's clock starts when it is made.
  if (deadline_ns != no_deadline) {
    const std::uint64_t now_ns = c.machine->now_ns();
    deadline_ns =
        outer->engine->machine->now_ns() + (deadline_ns > now_ns ? deadline_ns - now_ns : 0);
  }
  await_as_guest guest(self, *outer, what, when);
  crew& there = *outer->engine->crew;
  // A service that has nothing to do does not give up: only the guest knows what goes on here.
  if (there.is_service(*outer)) when = giving_up::when_all_wait;
  return there.await(*outer, guest, deadline_ns, wait_policy::help, when) && what.is_there();
}

}  // namespace lev::detail
