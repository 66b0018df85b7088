# The whole pipeline on the checker's atomics (pipeline.hpp): the environment is exchanged, and some
# bounds are smaller, so that a schedule is short. Then wrong steps, as in faults.cmake.

plant(sync/env.hpp [[#include "sync/fence.hpp"]] [[#include "relacy_env.hpp"
#include "sync/fence.hpp"]])
plant(sync/env.hpp [[struct real_env {]] [[using real_env = model::env;
struct hardware_env {]])
plant(task/slot.hpp [[static_assert(sizeof(slot) == line_bytes);]] [[]])
# Some plain fields, so that the checker sees who may touch them.
plant(task/slot.hpp [[procedure_id procedure = 0;]] [[model::plain<procedure_id> procedure = 0;]])
plant(task/slot.hpp
  [[std::uint32_t lock_next = no_slot;]]
  [[model::plain<std::uint32_t> lock_next = no_slot;]])
plant(task/slot.hpp [[std::uint32_t next;
  std::uint32_t slot;]] [[model::plain<std::uint32_t> next;
  model::plain<std::uint32_t> slot;]])
plant(task/slot.hpp
  [[std::uint32_t dependants = 0;]]
  [[model::plain<std::uint32_t> dependants = 0;]])
plant(task/slot.hpp
  [[void* callback_context = nullptr;]]
  [[model::plain<void*> callback_context = nullptr;]])
plant(task/slot.hpp
  [[bool is_withdrawn = false;]]
  [[model::plain<bool> is_withdrawn = false;]])
plant(flow/mutex_table.hpp [[bool taken = false;]] [[model::plain<bool> taken = false;]])
plant(task/procedure_table.hpp
  [[atomic<std::uint32_t> count{1};]]
  [[std::atomic<std::uint32_t> count{1};]])
plant(worker/participant.hpp
  [[constexpr std::uint32_t inbox_capacity = 256;]]
  [[constexpr std::uint32_t inbox_capacity = 4;]])
plant(flow/mutex_table.hpp [[entry entries_[mutex_count_max];]] [[entry entries_[2];]])
plant(runtime/open.cpp [[if (p.free_slots.limit < 4)]] [[if (p.free_slots.limit < 1)]])
plant(worker/idle.cpp
  [[constexpr std::uint32_t looks_per_turn = 8;]]
  [[constexpr std::uint32_t looks_per_turn = 1;]])
plant(worker/idle.cpp
  [[constexpr std::uint32_t looks_per_clock = 4;]]
  [[constexpr std::uint32_t looks_per_clock = 1;]])

plant(worker/share_core.hpp
  [[constexpr std::uint32_t passes_max = 100;]]
  [[constexpr std::uint32_t passes_max = 2;]])

# Completion, dependants, mutexes, pieces, barriers (flow_model.cpp)
plant(worker/complete.cpp
  [[if (!e.pool.at(task).state.retract(seen, state_bits::depended_on)) return;]]
  [[if (!model::fault("finish: dependants are taken while their flag stays up") &&
      !e.pool.at(task).state.retract(seen, state_bits::depended_on)) {
    return;
  }]])
plant(worker/complete.cpp
  [[while ((seen & state_bits::depended_on) != 0 ||]]
  [[while (((seen & state_bits::depended_on) != 0 &&
              !model::fault("finish: dependants are taken while their flag stays up")) ||]])
plant(worker/complete.cpp
  [[if ((seen & state_bits::crowd) != 0) {]]
  [[if ((seen & state_bits::crowd) != 0 &&
      !model::fault("finish: only the waiter named last is woken")) {]])
plant(runtime/submit.cpp
  [[extra.predecessors.store(count + 1, memory_order_relaxed);]]
  [[extra.predecessors.store(
      count + (model::fault("start_after: the submit holds no count of its own") ? 0 : 1),
      memory_order_relaxed);]])
plant(flow/dependants.hpp
  [[extra.telling.lock([] { real_env::pause(); });
    const bool is_in_time = predecessor.state.announce(generation, state_bits::depended_on);
    if (is_in_time) {]]
  [[const bool early = model::fault("add: announces before it has the list");
    bool is_in_time = early && predecessor.state.announce(generation, state_bits::depended_on);
    extra.telling.lock([] { real_env::pause(); });
    if (!early) is_in_time = predecessor.state.announce(generation, state_bits::depended_on);
    if (is_in_time || model::fault("add: hangs an edge on whatever the slot has now")) {]])
plant(flow/dependants.hpp
  [[extra.telling.unlock();
    return is_in_time;]]
  [[extra.telling.unlock();
    return is_in_time || model::fault("add: hangs an edge on whatever the slot has now");]])
plant(runtime/submit.cpp
  [[if (outcome == status::stale_ticket) break;]]
  [[if (outcome == status::stale_ticket &&
        !model::fault("start_after: a predecessor that was consumed has failed"))
      break;]])
plant(runtime/submit.cpp
  [[extra.is_withdrawn = true;]]
  [[extra.is_withdrawn = !model::fault("start_after: a refused submit leaves its task behind");]])
plant(runtime/submit.cpp
  [[if (!is_accepted) {
    give_edges(c, edges, i, count);]]
  [[if (!is_accepted) {
    if (!model::fault("start_after: a refused submit keeps its edges"))
      give_edges(c, edges, i, count);]])
plant(runtime/wait.cpp
  [[extra.telling.lock([] { real_env::pause(); });
  const std::uint64_t w = state.word();]]
  [[extra.telling.lock([] { real_env::pause(); });
  if (model::fault("on_complete: writes the callback before it announces it")) {
    extra.callback = run;
    extra.callback_context = context;
  }
  const std::uint64_t w = state.word();]])
plant(worker/complete.cpp
  [[std::uint64_t completed = 0;]]
  [[if (model::fault("is_quiescent: submissions are read before completions")) {
    std::uint64_t open = 0;
    for (std::uint32_t i = 0; i < used; ++i) open += e.people[i].counters.submitted.read();
    for (std::uint32_t i = 0; i < used; ++i) open -= e.people[i].counters.completed.read();
    return open == 0;
  }
  std::uint64_t completed = 0;]])
plant(flow/scheduler.cpp
  [[report.submitted.add(is_piece ? p.made - 1 : p.made);]]
  [[const bool late = model::fault("split: pieces are counted when the pass has ended");
  if (late) report.late += is_piece ? p.made - 1 : p.made;
  if (!late) report.submitted.add(is_piece ? p.made - 1 : p.made);]])
plant(flow/scheduler.hpp
  [[owned_counter& submitted;]]
  [[std::uint64_t late = 0;
  owned_counter& submitted;]])
plant(worker/enqueue.hpp
  [[e.sched.pass(self.free_slots, report);]]
  [[e.sched.pass(self.free_slots, report);
  if (report.late != 0) self.counters.submitted.add(report.late);]])
plant(worker/complete.cpp
  [[if (e.barrier_wanted.fetch_add(0, memory_order_seq_cst) != 0]]
  [[if ((model::fault("settle: the barrier's word is only read")
           ? e.barrier_wanted.load(memory_order_seq_cst)
           : e.barrier_wanted.fetch_add(0, memory_order_seq_cst)) != 0]])
plant(runtime/bulk.cpp
  [[close_join(*c, *self, join);
  leave(*c, *self);]]
  [[close_join(*c, *self, join);
  if (!model::fault("submit_bulk: leaves without a look for barrier waiters")) leave(*c, *self);]])
plant(flow/mutex_table.hpp
  [[++pool.extra(next).locks_held;]]
  [[if (!model::fault("mutex_table: handed over, but not held")) ++pool.extra(next).locks_held;]])
plant(runtime/awaits.hpp
  [[.state.announce_waiter(ticket_generation(ids[i]), self.index))
        return false;]]
  [[.state.announce_waiter(ticket_generation(ids[i]), self.index))
        return false;
      if (model::fault("await_any: only the first ticket is armed")) return true;]])
plant(worker/take.hpp
  [[run_pass(e, self);
    ring(e, self.index + 1);
  }]]
  [[run_pass(e, self);
    if (!model::fault("take: no ring after a pass")) ring(e, self.index + 1);
  }]])

# Sleeping and waking (pipeline_model.cpp)
plant(worker/idle.cpp
  [[(!helps || looks_idle(e, self)))]]
  [[(!helps || model::fault("sleep: no last look, in the pipeline") || looks_idle(e, self)))]])
plant(worker/idle.cpp
  [[if (what.arm() && !what.is_there() &&]]
  [[if ((model::fault("sleep: the waiter is not armed") || what.arm()) && !what.is_there() &&]])
plant(runtime/submit.cpp
  [[if (c.bell.sleeps(w) ||]]
  [[if ((!model::fault("submit: a letter to one that sleeps") && c.bell.sleeps(w)) ||]])
plant(worker/enqueue.hpp
  [[ring(e, self.index + 1);]]
  [[if (model::fault("enqueue: no ring for the own inbox") && self.running != nullptr) return;
  if (!model::fault("enqueue: no ring")) ring(e, self.index + 1);]])
plant(runtime/admit.hpp
  [[return !is_closing ||]]
  [[return !is_closing || model::fault("submit: does not look at closing once more") ||]])
plant(runtime/close.cpp
  [[real_env::heavy_fence();]]
  [[if (!model::fault("close: no heavy fence")) real_env::heavy_fence();]])
plant(runtime/close.cpp
  [[for (std::uint32_t i = c.first_actor; i < c.first_host; ++i) unpark(c, i);]]
  [[for (std::uint32_t i = c.first_actor; i < c.first_host; ++i) {
    if (!model::fault("close: workers are not woken")) unpark(c, i);
  }]])
plant(worker/wake.hpp
  [[if (e.space_wanted.load(memory_order_seq_cst) != 0)]]
  [[if (e.space_wanted.load(memory_order_seq_cst) != 0 &&
      !model::fault("tell_space: slots come back silently"))]])
plant(runtime/awaits.hpp
  [[await_shared::arm();
    // Pairs with tell_barrier(), a change of the same word: the later one of the two sees what came
    // before the other, the wish or the completions. So this comes after the wish.
    c.barrier_wanted.fetch_add(1, memory_order_acq_rel);]]
  [[const bool early = model::fault("await_space: counted for the barrier before it says so");
    if (early) c.barrier_wanted.fetch_add(1, memory_order_acq_rel);
    await_shared::arm();
    if (!early && !model::fault("await_space: not counted for the barrier"))
      c.barrier_wanted.fetch_add(1, memory_order_acq_rel);]])
plant(runtime/awaits.hpp
  [[c.barrier_wanted.fetch_sub(1, memory_order_relaxed);]]
  [[if (!model::fault("await_space: not counted for the barrier"))
      c.barrier_wanted.fetch_sub(1, memory_order_relaxed);]])
plant(runtime/awaits.hpp
  [[return is_held;]]
  [[return is_held && (is_armed || !model::fault("await_space: forgets that all is held"));]])
plant(flow/slot_pool.hpp
  [[while (!free_.try_push_all(cache.slots, n)) real_env::pause();
    cache.set_count(0);]]
  [[const bool early = model::fault("slot_pool: a cache looks empty before the ring is full");
    if (early) cache.set_count(0);
    while (!free_.try_push_all(cache.slots, n)) real_env::pause();
    cache.set_count(0);]])
plant(worker/share_core.hpp
  [[if (found.what == core_find::named) unpark(e, found.host);]]
  [[if (found.what == core_find::named && !model::fault("directed: the hand-over is lost"))
    unpark(e, found.host);]])
plant(worker/share_core.hpp
  [[const bool sleeps = what.arm() &&]]
  [[const bool sleeps = (model::fault("directed: sleeps without having said so") || what.arm()) &&]])
plant(worker/share_core.hpp
  [[list.stop_polling([&](std::uint32_t host) { unpark(e, host); });]]
  [[if (!model::fault("directed: those who are named are left when the last poller goes"))
    list.stop_polling([&](std::uint32_t host) { unpark(e, host); });
  else
    list.stop_polling([](std::uint32_t) {});]])
plant(worker/wake.hpp
  [[self.is_bound.store(0, memory_order_seq_cst);
  tell_space(e);]]
  [[self.is_bound.store(0, memory_order_seq_cst);
  if (!model::fault("unbind: nobody is told")) tell_space(e);]])
