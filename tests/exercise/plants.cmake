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

plant(worker/complete.cpp
  [[if ((seen & state_bits::crowd) != 0) {]]
  [[if ((seen & state_bits::crowd) != 0 &&
      !plant::fault("finish: only the waiter named last is woken")) {]])
