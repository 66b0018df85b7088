// awaits: the things that can be waited for: a ticket, one of several, the end of everything, a
// free slot, by workers the end of their runtime. All are for serve_until() and wait_in_task().
#pragma once

#include "runtime/wait.hpp"
#include "worker/complete.hpp"

namespace lev::detail {

struct await_ticket final : awaited {
  await_ticket(runtime_state& home, participant& waiter, std::uint64_t id) noexcept
      : state(home.task_slots.at(ticket_task(id)).state),
        task(ticket_task(id)),
        generation(ticket_generation(id)),
        self(waiter) {
    one = &state;
    pending = state.pending_word(generation);
  }
  bool is_there() noexcept override { return !state.is_pending(generation); }
  bool arm() noexcept override { return state.announce_waiter(generation, self.index); }
  bool awaits(std::uint32_t other) const noexcept override { return other == task; }
  task_state<>& state;
  std::uint32_t task;
  std::uint32_t generation;
  participant& self;
};

// A wait for one of the shared wishes, which completers and givers of slots check.
struct await_shared : awaited {
  await_shared(participant& waiter, std::uint32_t what, atomic<std::uint32_t>& how_many) noexcept
      : self(waiter), want(what), wanted(how_many) {}
  bool arm() noexcept override {
    self.wants.store(self.wants.load(memory_order_relaxed) | want, memory_order_relaxed);
    // Pairs with tell_space(), settle() and complete(): they free the slot or complete the task,
    // then load the count; sequentially consistent, as this waiter counts itself and then checks.
    wanted.fetch_add(1, memory_order_seq_cst);
    return true;
  }
  void disarm() noexcept override {
    const std::uint32_t before = wanted.fetch_sub(1, memory_order_relaxed);
    LEV_DCHECK(before != 0);
    // Those of other contexts are disarmed together with this one. Pairs with wake_for_slot().
    // Sequentially consistent: a waiter for a slot looks once more after it.
    self.wants.store(self.wants.load(memory_order_relaxed) & ~want, memory_order_seq_cst);
  }
  bool is_patient() const noexcept override { return true; }

 protected:
  await_shared(const await_shared&) = default;
  await_shared& operator=(const await_shared&) = delete;
  ~await_shared() = default;
  participant& self;
  std::uint32_t want;
  atomic<std::uint32_t>& wanted;  // Written by sleepers, read by completers; see engine
};

struct await_quiescent final : await_shared {
  await_quiescent(runtime_state& home, participant& waiter) noexcept
      : await_shared(waiter, want_barrier, home.barrier_wanted), c(home) {}
  bool is_there() noexcept override {
    // Pairs with end_submit(): the wish, then this look; sequentially consistent, as there.
    return c.phase_open.load(memory_order_seq_cst) == 0 && is_quiescent(c);
  }
  runtime_state& c;
};

// A free slot, and edges; or the end of the last task, or of the runtime, after which there may
// never be one.
struct await_space final : await_shared {
  await_space(runtime_state& home, participant& waiter, std::uint32_t edges, bool inside,
              bool waits_again) noexcept
      : await_shared(waiter, (edges == 0 && !inside ? want_slot : want_space) | want_barrier,
                     home.space_wanted),
        c(home),
        edge_count(edges),
        is_look(waits_again),
        is_inside(inside) {}
  bool looks_again() const noexcept override { return is_look; }
  bool is_there() noexcept override {
    // Busy workers own the counters' lines: while it polls, it seldom reads them.
    constexpr std::uint32_t looks_per_count = 64;
    if (!c.task_slots.looks_exhausted(is_inside) && c.edges.has(self.free_edges, edge_count))
      return true;
    if (is_armed || ++looks % looks_per_count == 0) {
      if (c.scopes.ask()) return true;
      is_in_vain = is_shut_out(c, self) || is_held_by_caller(c, self);
    }
    return is_in_vain;
  }
  bool arm() noexcept override {
    is_armed = true;
    await_shared::arm();
    // Pairs with tell_barrier(), a change of the same word: the later one of the two sees what came
    // before the other, the wish or the completions. So this comes after the wish.
    c.barrier_wanted.fetch_add(1, memory_order_acq_rel);
    return true;
  }
  void disarm() noexcept override {
    is_armed = false;
    c.barrier_wanted.fetch_sub(1, memory_order_relaxed);
    await_shared::disarm();
    // It may have been woken for a slot in place of another, whether it takes that or not.
    if ((want & want_slot) != 0 && !c.task_slots.looks_exhausted()) wake_for_slot(c);
  }
  runtime_state& c;
  std::uint32_t edge_count;
  bool is_look;    // of a submitter that waits again
  bool is_inside;  // of a task, for which some slots are kept
  bool is_armed = false;
  bool is_in_vain = false;  // as last looked at
  std::uint32_t looks = 0;
};

// Fewer bulks under submission.
struct await_join final : await_shared {
  await_join(runtime_state& home, participant& waiter, std::uint32_t joins_max) noexcept
      : await_shared(waiter, want_space, home.space_wanted), c(home), most(joins_max) {}
  // Pairs with give_back_join(): a sleeper has said that it sleeps before its last look.
  bool is_there() noexcept override {
    return c.open_joins.load(memory_order_seq_cst) < most || is_shut_out(c, self);
  }
  runtime_state& c;
  std::uint32_t most;
};

// One of several tickets, given by their numbers; 0 is passed over.
struct await_any final : awaited {
  await_any(runtime_state& home, participant& waiter, const std::uint64_t* all,
            std::size_t n) noexcept
      : c(home), self(waiter), ids(all), count(n) {}
  bool is_there() noexcept override { return first_done() != none_ready; }
  bool arm() noexcept override {
    for (std::size_t i = 0; i < count; ++i) {
      if (ids[i] == 0) continue;
      if (!c.task_slots.at(ticket_task(ids[i]))
               .state.announce_waiter(ticket_generation(ids[i]), self.index))
        return false;
    }
    return true;
  }
  bool awaits(std::uint32_t other) const noexcept override {
    for (std::size_t i = 0; i < count; ++i) {
      if (ids[i] != 0 && ticket_task(ids[i]) == other) return true;
    }
    return false;
  }
  std::size_t first_done() const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (ids[i] == 0) continue;
      if (c.task_slots.at(ticket_task(ids[i])).state.peek(ticket_generation(ids[i])) !=
          status::pending)
        return i;
    }
    return none_ready;
  }
  runtime_state& c;
  participant& self;
  const std::uint64_t* ids;
  std::size_t count;
};

// What a worker waits for, and meanwhile runs tasks.
struct await_stop final : awaited {
  explicit await_stop(const runtime_state& runtime) noexcept : c(runtime) {}
  // Pairs with stop_workers(), which wakes all.
  bool is_there() noexcept override { return c.stopping.load(memory_order_relaxed) != 0; }
  bool arm() noexcept override { return true; }
  const runtime_state& c;
};

}  // namespace lev::detail
