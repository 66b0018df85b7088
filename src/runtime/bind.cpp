// Which participant a host thread is. A thread is bound to one when it first calls in and leaves it
// when it ends, so that it owns a cache of free slots, an inbox and a place to sleep like any
// worker.
#include "runtime/core.hpp"

#include "sync/spin_lock.hpp"
#include "worker/wake.hpp"

#include <vector>

namespace lev::detail {

namespace {

// The runtimes that are open, for threads that end: their participants may be gone.
struct open_runtimes {
  spin_lock<> lock;
  std::vector<core*> all;
};
open_runtimes& opened() noexcept {
  static auto* all = new open_runtimes;  // outlives every thread
  return *all;
}

struct binding {
  std::uint64_t runtime_id;
  participant* self;
};

// This thread's bindings; given back when it ends.
struct bindings {
  std::vector<binding> all;
  ~bindings() {
    open_runtimes& o = opened();
    o.lock.lock([] { real_env::pause(); });
    for (const binding& b : all) {
      for (core* c : o.all) {
        if (c->id != b.runtime_id) continue;
        unbind(*c, *b.self);
      }
    }
    o.lock.unlock();
  }
};
thread_local bindings this_thread;
thread_local binding last_used{0, nullptr};

void use(core& c, std::uint32_t index) noexcept {
  std::uint32_t used = c.people_used.load(memory_order_relaxed);
  // Pairs with looks_idle(): thieves and sleepers look at this participant's inbox from here on.
  // Sequentially consistent, as those looks are.
  while (used < index + 1 &&
         !c.people_used.compare_exchange_strong(used, index + 1, memory_order_seq_cst)) {
  }
}

// Bindings to runtimes that are closed would pile up in a thread that opens many.
void forget_closed() noexcept {
  open_runtimes& o = opened();
  o.lock.lock([] { real_env::pause(); });
  std::vector<binding>& all = this_thread.all;
  for (std::size_t i = all.size(); i-- > 0;) {
    bool is_open = false;
    for (const core* c : o.all) is_open |= c->id == all[i].runtime_id;
    if (!is_open) {
      all[i] = all.back();
      all.pop_back();
    }
  }
  o.lock.unlock();
}

participant* bind(core& c) noexcept {
  forget_closed();
  for (std::uint32_t i = c.first_host; i + 1 < c.people_count; ++i) {
    participant& p = c.people[i];
    // Pairs with the release of the thread that was bound before.
    if (p.is_bound.load(memory_order_relaxed) != 0 ||
        p.is_bound.exchange(1, memory_order_acquire) != 0)
      continue;
    use(c, i);
    this_thread.all.push_back({c.id, &p});
    return &p;
  }
  return nullptr;
}

}  // namespace

participant* here(core& c) noexcept {
  if (auto* actor = static_cast<participant*>(current_actor());
      actor != nullptr && actor->home == &c)
    return actor;
  if (last_used.runtime_id == c.id) return last_used.self;
  for (const binding& b : this_thread.all) {
    if (b.runtime_id != c.id) continue;
    last_used = b;
    return b.self;
  }
  participant* self = bind(c);
  if (self != nullptr) last_used = {c.id, self};
  return self;
}

participant* closer(core& c) noexcept {
  use(c, c.people_count - 1);
  return &c.people[c.people_count - 1];
}

void announce_open(core& c) {
  open_runtimes& o = opened();
  o.lock.lock([] { real_env::pause(); });
  static std::uint64_t next_id = 1;
  c.id = next_id++;
  o.all.push_back(&c);
  o.lock.unlock();
}

void announce_close(core& c) noexcept {
  open_runtimes& o = opened();
  o.lock.lock([] { real_env::pause(); });
  for (std::size_t i = 0; i < o.all.size(); ++i) {
    if (o.all[i] == &c) {
      o.all[i] = o.all.back();
      o.all.pop_back();
      break;
    }
  }
  o.lock.unlock();
}

}  // namespace lev::detail
