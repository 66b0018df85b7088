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
