// Which participant a host thread is. A thread is bound to one when it first calls in and leaves it
// when it ends, so that it has a cache of free slots, an inbox and a place to sleep like any
// worker.
//
// A thread's end is that of a key of thread-specific data, not of a thread_local object: keys come
// after all thread_local objects, so the tickets in those are released by a thread that is still
// bound. The main thread's key never ends: static objects that are destroyed after main() call in
// like main() itself.
//
// A fork() waits until no thread opens, closes, binds or leaves. In the child no runtime has
// workers any more: each is marked as absent, and the one remaining thread is bound to none of
// them. here() then finds no participant, which every function has to handle anyway; bound threads
// pay nothing for it.
#include "runtime/runtime_state.hpp"

#include "base/first_constructor.hpp"
#include "base/lasting.hpp"
#include "sync/exiting.hpp"
#include "sync/hook_call.hpp"
#include "sync/spin_lock.hpp"
#include "worker/contexts.hpp"
#include "worker/wake.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <vector>

namespace lev::detail {

namespace {

struct binding {
  std::uint64_t runtime_id;
  participant* self;
};
using bindings = std::vector<binding>;

void leave_all(void* mine) noexcept;

// The open runtimes, for threads that end: their participants may be gone.
struct open_runtimes {
  open_runtimes() noexcept : has_key(pthread_key_create(&key, &leave_all) == 0) {}

  spin_lock<> lock;
  std::vector<runtime_state*> all;
  pthread_key_t key = 0;
  bool has_key;
};
open_runtimes& opened() noexcept {
  return lasting<open_runtimes>();
}

// An unloaded library leaves nothing behind that threads would call at their end.
[[gnu::destructor]] void forget_key() {
  if (opened().has_key) pthread_key_delete(opened().key);
}

// This thread's bindings. Like its notes, they have no destructor: they exist as long as the
// thread.
thread_local bindings* this_thread = nullptr;
// The participant of a thread that is a runtime's service, for as long as it lives.
thread_local participant* service_here = nullptr;

void note_last(std::uint64_t runtime_id, participant* self) noexcept {
  if (hook_call::is_here()) return;
  this_thread_notes.runtime_id = runtime_id;
  this_thread_notes.self = self;
}

// A key's destructor, with the thread's bindings. Should another key's destructor call in later,
// the thread is bound anew, and comes here again.
void leave_all(void* mine) noexcept {
  auto* leaving = static_cast<bindings*>(mine);
  this_thread = nullptr;
  forget_last_runtime();
  open_runtimes& o = opened();
  const spin_guard<> held(o.lock);
  for (const binding& b : *leaving) {
    for (runtime_state* c : o.all) {
      if (c->id == b.runtime_id) unbind(*c, *b.self);
    }
  }
  delete leaving;
}

void use(runtime_state& c, std::uint32_t index) noexcept {
  LEV_ASSERT(index >= c.first_host && index < c.participant_count);
  std::uint32_t used = c.participants_used.load(memory_order_relaxed);
  // Pairs with looks_idle(): thieves and sleepers look at this participant's inbox from here on.
  // Sequentially consistent, as those looks are.
  while (used < index + 1 &&
         !c.participants_used.compare_exchange_strong(used, index + 1, memory_order_seq_cst)) {
  }
}

// Bindings to closed runtimes would pile up in a thread that opens many.
void forget_closed(bindings& all) noexcept {
  open_runtimes& o = opened();
  const spin_guard<> held(o.lock);
  std::erase_if(all, [&o](const binding& b) {
    return std::none_of(o.all.begin(), o.all.end(),
                        [&b](const runtime_state* c) { return c->id == b.runtime_id; });
  });
}

// Room for one more binding; null: there is no memory.
bindings* make_room() noexcept try {
  if (this_thread == nullptr) {
    this_thread = new bindings;
    if (opened().has_key) pthread_setspecific(opened().key, this_thread);
  }
  forget_closed(*this_thread);
  this_thread->reserve(this_thread->size() + 1);
  return this_thread;
} catch (const std::bad_alloc&) {
  return nullptr;
}

participant* bind(runtime_state& c) noexcept {
  if (c.why_absent != nullptr) return nullptr;
  bindings* mine = make_room();
  if (mine == nullptr) return nullptr;
  for (std::uint32_t i = c.first_host; i + 1 < c.participant_count; ++i) {
    participant& p = c.participants[i];
    if (!try_bind(c, p)) continue;
    // The thread before has left it so (unbind()).
    LEV_ASSERT(p.index == i && is_at_rest(p));
    use(c, i);
    mine->push_back({c.id, &p});
    return &p;
  }
  return nullptr;
}

// If a body forked, it is still on the stack. Its neighbours, which wait in other contexts, are the
// parent's: they get no turn here.
void part_from_others(participant& self) noexcept {
  contexts* own = self.contexts;
  if (own == nullptr) return;
  own->current->next = own->current;
  own->free = nullptr;
  own->waiting = own->last_waiting = nullptr;
  own->waiting_count = 0;
  own->live = 1;
  self.aside.other_contexts = 0;
}

// The parent's runtimes stay in the list, so that their memory does not count as lost.
void in_child() noexcept {
  open_runtimes& o = opened();
  if (auto* self = static_cast<participant*>(current_actor()); self != nullptr)
    part_from_others(*self);
  set_current_actor(nullptr);
  service_here = nullptr;
  forget_last_runtime();
  if (this_thread != nullptr) this_thread->clear();
  for (runtime_state* c : o.all) {
    if (c->why_absent == nullptr) c->machine->abandon();
    c->why_absent = absent_after_fork;
  }
  o.lock.unlock();
}

// As early as possible: a program's own handlers before a fork() then run before this, and those
// after it, in parent and child, later. So all of them may call in.
[[gnu::constructor(first_constructor)]] void watch_forks() {
  pthread_atfork([] { opened().lock.lock(); }, [] { opened().lock.unlock(); }, &in_child);
}

}  // namespace

// Whether this thread is below the caller's frame as `p`: it waits there, or runs a task, which has
// led it back here through another runtime. Then it must be another participant this time, because
// two flows of control must not share one. The same holds if it waits as the guest of a participant
// other than the one that runs the caller, because a guest has one place to sleep. In virtual time
// it is no participant: another turn must not begin in this one.
static bool is_below(const runtime_state& c, const participant& p) noexcept {
  const bool is_guest_below = p.guest.waits.load(memory_order_relaxed) != 0 &&
                              p.guest.outer != static_cast<participant*>(current_actor());
  return is_guest_below || p.running != nullptr ||
         p.doing.load(memory_order_relaxed) != activity::elsewhere || c.machine->is_in_worker();
}

// The first call of a thread, or one after it was in another runtime. A service stays the service:
// a wait below another runtime's code on its thread must go on with the duties that no other thread
// has. There is one flow of control, because no task with a stack of its own runs there
// (outer_of()).
[[gnu::noinline]] static participant* find_binding(runtime_state& c) noexcept {
  if (auto* actor = static_cast<participant*>(current_actor()); actor != nullptr)
    actor->calls_others = true;
  if (service_here != nullptr && service_here->engine == &c) return service_here;
  participant* self = nullptr;
  bool comes_back = false;
  if (this_thread != nullptr) {
    for (const binding& b : *this_thread) {
      if (b.runtime_id != c.id) continue;
      const bool is_in_call = is_below(c, *b.self);
      comes_back |= is_in_call;
      if (!is_in_call && self == nullptr) self = b.self;
    }
  }
  const bool is_new = self == nullptr;
  if (is_new) self = bind(c);
  if (self == nullptr) return nullptr;
  self->calls.comes_back = comes_back;
  note_last(c.id, self);
  if (!is_new) return self;
  if (c.is_started && !c.is_watched.exchange(true, memory_order_relaxed))
    watch_exit(exit_watcher::runtime);
  return self;
}

[[gnu::noinline]] participant* here(runtime_state& c) noexcept {
  const thread_notes& notes = this_thread_notes;
  auto* last = static_cast<participant*>(notes.self);
  LEV_DCHECK(notes.runtime_id != c.id || last->engine == &c);
  if (notes.runtime_id == c.id) return last;
  auto* const actor = static_cast<participant*>(notes.actor);
  if (actor == nullptr || actor->engine != &c) return find_binding(c);
  note_last(c.id, actor);
  return actor;
}

void begin_service(participant& self) noexcept {
  service_here = &self;
}

participant* closer(runtime_state& c) noexcept {
  LEV_ASSERT(!c.participants[c.participant_count - 1].is_worker);
  use(c, c.participant_count - 1);
  return &c.participants[c.participant_count - 1];
}

namespace {

// A guest counts as waiting, though its thread is in another runtime. It sleeps as that one's
// participant: a token of its own stays there, and says nothing.
//
// A participant that does not sleep yet may have a task at hand, and get no core for long. Only
// hosts wait for long without sleeping; workers do so for config::spin_ns.
bool waits_for_ever(const participant& p) noexcept {
  const std::uint32_t now = p.doing.load(memory_order_relaxed);
  if (now == activity::elsewhere) {
    const bool is_nobody = !p.is_worker && p.is_bound.load(memory_order_relaxed) == 0;
    return is_nobody || p.guest.waits.load(memory_order_relaxed) != 0;
  }
  if (now != activity::waits || p.engine->doorbell.someone_polls()) return false;
  return p.is_worker ? p.park.is_asleep() : !p.park.has_token();
}

// As engine::does_anybody_go_on has it.
bool does_anybody_go_on(const participant& but, giving_up how, std::uint64_t* completed) noexcept {
  open_runtimes& o = opened();
  const spin_guard<> held(o.lock);
  *completed = 0;
  for (runtime_state* c : o.all) {
    if (c->why_absent != nullptr) continue;
    // Tasks in another process, or that go on when virtual time passes, are not visible here.
    // The caller's own runtime has it look at what it knows.
    const bool is_visible = (c->has_contexts && !c->caps.virtual_time) || c == but.engine;
    if (!is_visible && !is_quiescent(*c)) return true;
    // Workers in other processes have nothing to do then, and nobody says so for them here.
    for (const participant& p : c->in_use()) {
      *completed += p.counters.completed.read();
      if (p.index < c->first_actor || &p == &but) continue;
      if (how == giving_up::when_still ? is_at_work(p) : !waits_for_ever(p)) return true;
    }
  }
  return false;
}

}  // namespace

void announce_open(runtime_state& c) {
  open_runtimes& o = opened();
  const spin_guard<> held(o.lock);
  static std::uint64_t next_id = 1;
  o.all.push_back(&c);
  c.id = next_id++;
  c.does_anybody_go_on = &does_anybody_go_on;
}

void announce_close(runtime_state& c) noexcept {
  open_runtimes& o = opened();
  const spin_guard<> held(o.lock);
  std::erase(o.all, &c);
}

}  // namespace lev::detail
