# The planted faults' code: one library has all of them, and the environment chooses one while it
# runs (plant.hpp). faults.hpp has the table. See tests/model/plant.cmake for plant().

plant(flow/mutex_table.hpp
  [[++pool.extra(next).locks_held;]]
  [[++pool.extra(next).locks_held;
      if (plant::fault("mutex: handed over, but not held")) e.taken = false;]])

plant(worker/complete.cpp
  [[if (outcome != status::ok)
      extra.first_failure.store(static_cast<std::uint32_t>(outcome), memory_order_relaxed);]]
  [[if (outcome != status::ok && !plant::fault("after: dependants of a failed task run"))
      extra.first_failure.store(static_cast<std::uint32_t>(outcome), memory_order_relaxed);]])

# What another thread does between two looks.
plant(runtime/submit.cpp
  [[const std::uint32_t count = edges.count;]]
  [[const std::uint32_t count = edges.count;
  if (plant::fault("after: a stale ticket is a failure")) ::usleep(50);]])
plant(runtime/submit.cpp
  [[if (outcome == status::stale_ticket) break;]]
  [[if (outcome == status::stale_ticket && !plant::fault("after: a stale ticket is a failure")) break;]])

# Edges hang on whoever has the slot now.
plant(flow/dependants.hpp
  [[const bool is_in_time = predecessor.state.announce(generation, state_bits::depended_on);
    if (is_in_time) {]]
  [[const bool is_in_time = predecessor.state.announce(generation, state_bits::depended_on);
    if (is_in_time && plant::fault("after: an edge is written over the others")) {
      nodes_[node].slot = successor;
      nodes_[node].next = 0;
      extra.dependants = node + 1;
    } else if (is_in_time) {]])

# Lanes of worker processes.
plant(machines/processes/lane.hpp
  [[record_of(number).skip.store(number - 1, memory_order_relaxed);]]
  [[if (!plant::fault("lane: what a dead worker wrote is believed") &&
        !plant::fault("lane: the number 0 means none")) {
      record_of(number).skip.store(number - 1, memory_order_relaxed);
    }]])
plant(machines/processes/lane.hpp
  [[r.skip.store(before, memory_order_relaxed);]]
  [[if (plant::fault("lane: the number 0 means none")) r.skip.store(0, memory_order_relaxed);
    else if (!plant::fault("lane: what a dead worker wrote is believed"))
      r.skip.store(before, memory_order_relaxed);]])
plant(machines/processes/pool.cpp
  [[s.desk->reset(s.posted + 1);]]
  [[if (plant::fault("lane: the number 0 means none") && s.posted == 0) s.posted = 0xfffffff8u;
  s.desk->reset(s.posted + 1);]])

plant(worker/tend.cpp
  [[bool level(engine& e) noexcept {]]
  [[bool level(engine& e) noexcept {
  if (plant::fault("processes: nothing is taken back for an idle worker")) return false;]])

plant(worker/stage.hpp
  [[std::memcpy(room, reinterpret_cast<const void*>(a.address), a.row_bytes);]]
  [[if (!plant::fault("result: is not there before the body"))
      std::memcpy(room, reinterpret_cast<const void*>(a.address), a.row_bytes);]])
plant(worker/stage.hpp
  [[std::memset(room, 0, payload_bytes(a));]]
  [[if (!plant::fault("out: shows what another task left in the store"))
      std::memset(room, 0, payload_bytes(a));]])

# Waiting inside a task.
plant(worker/wait_in_task.cpp
  [[return is_awaited(e, what, task) ||
         (is_own_child(e, self, e.pool.at(task)) && has_ticket(e, task));]]
  [[return plant::fault("wait: any task runs on top of one that waits") || is_awaited(e, what, task) ||
         (is_own_child(e, self, e.pool.at(task)) && has_ticket(e, task));]])
plant(worker/wait_in_task.cpp
  [[if (c->live == 1 && !(is_worth_starting(e, self, how) && start_tasks(*c))) return false;]]
  [[if (plant::fault("wait: a task that waits keeps its worker")) return false;
  if (c->live == 1 && !(is_worth_starting(e, self, how) && start_tasks(*c))) return false;]])
plant(runtime/wait.cpp
  [[const bool has_context = self->held == nullptr || self->held->free != nullptr;]]
  [[const bool has_context = !plant::fault("wait: what is done is too deep") &&
                           (self->held == nullptr || self->held->free != nullptr);]])
plant(runtime/wait.cpp
  [[if (waits_inside(c, self) && self.nest < c.settings.nest_max) run_if_last(c, self, what.task);
  return what.is_there();]]
  [[if (plant::fault("wait: what is done is too deep") && self.nest >= c.settings.nest_max)
    return false;
  if (waits_inside(c, self) && self.nest < c.settings.nest_max) run_if_last(c, self, what.task);
  return what.is_there();]])
plant(runtime/admit.cpp
  [[if ((task = try_take_room(c, self, edges, true)) != no_slot) return task;]]
  [[if (!plant::fault("submit: tasks have no spare tickets") &&
        (task = try_take_room(c, self, edges, true)) != no_slot)
      return task;]])
plant(runtime/bulk.cpp
  [[++self.open_joins;]]
  [[if (!plant::fault("bulk: its submitter waits for its own join")) ++self.open_joins;]])
plant(runtime/bulk.cpp
  [[--self.open_joins;]]
  [[if (!plant::fault("bulk: its submitter waits for its own join")) --self.open_joins;]])

# Callbacks.
plant(worker/complete.cpp
  [[stop_polling(e, self);
  drain(e, self);]]
  [[if (!plant::fault("callback: a letter waits behind it")) stop_polling(e, self);
  drain(e, self);]])
plant(worker/complete.cpp
  [[self.running = &tail;]]
  [[if (!plant::fault("callback: it waits like a host")) self.running = &tail;]])

plant(worker/worker.cpp
  [[return tell_ends_aside(*self.held);
  flush_notices(e, self);]]
  [[if (!plant::fault("callback: the task behind it is in hand")) return tell_ends_aside(*self.held);
  flush_notices(e, self);]])

# Loops and bulks.
plant(runtime/bulk.cpp
  [[const outcome o = wait_surely(c, id);
  if (o.code != status::ok) throw_outcome(o);]]
  [[if (plant::fault("loop: it returns before its pieces") && self != nullptr && self->nest > 1) {
    release(c, id);
    throw error(status::too_deep, -1, "planted");
  }
  const outcome o = wait_surely(c, id);
  if (o.code != status::ok) throw_outcome(o);]])
plant(worker/complete.cpp
  [[if ((seen & (state_bits::waited | state_bits::crowd)) != 0) wake_waiters(e, seen);]]
  [[if ((seen & (state_bits::waited | state_bits::crowd)) != 0 &&
      !((flags & task_is_join) != 0 && plant::fault("pieces: who waits for them is not told")))
    wake_waiters(e, seen);]])

# Threads, cancels, contexts, staging ahead.
plant(runtime/bind.cpp
  [[if (p.is_bound.load(memory_order_relaxed) != 0 ||
        p.is_bound.exchange(1, memory_order_acquire) != 0)
      continue;]]
  [[if (!plant::fault("thread: it is another one's participant") &&
        (p.is_bound.load(memory_order_relaxed) != 0 ||
         p.is_bound.exchange(1, memory_order_acquire) != 0))
      continue;]])
plant(worker/tend.cpp
  [[if (!line.was_asked(n) && is_unwanted(e, line.job_at(n))) take_back(e, w, n);]]
  [[if (!line.was_asked(n) && plant::fault("cancel: takes the tasks of others"))
        e.pool.at(line.job_at(n).task).state.announce(
            e.pool.at(line.job_at(n).task).state.generation(), state_bits::cancel_asked);
      if (!line.was_asked(n) && is_unwanted(e, line.job_at(n))) take_back(e, w, n);]])
plant(runtime/this_task.cpp
  [[if (c.live == 1) c.home->place->relax();]]
  [[if (c.live == 1 && !plant::fault("yield: no time passes for one that polls alone"))
    c.home->place->relax();]])
plant(worker/take.hpp
  [[if (from.staged[i].load(memory_order_relaxed) == no_slot) continue;]]
  [[if (from.staged[i].load(memory_order_relaxed) == no_slot ||
        plant::fault("staged ahead: kept from idle workers"))
      continue;]])
