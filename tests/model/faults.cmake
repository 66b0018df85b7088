# The wrong steps that the model tests must find; see plant.cmake. Each is a mistake that would be easy to make.

plant(queue/index_ring.hpp
  [[there = run_of(position, count, 1);]]
  [[there = model::fault("index_ring: a consumer trusts the tail, not the cell") && size() >= count
                  ? count
                  : run_of(position, count, 1);]])
plant(queue/index_ring.hpp
  [[if (sequence(c) != position + there + offset) break;]]
  [[if (model::fault("index_ring: sequence compared with a signed <") ? sequence(c) < position + there + offset
                                                                  : sequence(c) != position + there + offset) {
        break;
      }]])
plant(queue/index_ring.hpp
  [[c.store(pack(position + i + mask_ + 1, 0), memory_order_release);]]
  [[c.store(pack(position + i + mask_ + (model::fault("index_ring: a popped cell is off by one lap") ? 2 : 1), 0),
              memory_order_release);]])
