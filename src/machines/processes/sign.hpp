// sign: the state that a pool shows to other processes of its user (look.cpp): its lanes and its
// processes. It is the beginning of the board's file, which only the host can write to. It is
// written only when a worker process begins or dies, not while tasks run.
#pragma once

#include "machine/machine.hpp"
#include "machines/processes/lane.hpp"

#include <cstddef>

namespace lev::processes {

constexpr const char* board_name = "leveret-board";  // of the memory file

struct worker_sign {
  // Written by the service, read by lookers: the worker's process, 0 while there is none. Publishes
  // nothing.
  atomic<std::uint32_t> pid{0};
  // Written by the service, read by lookers: processes that died here. Publishes nothing.
  atomic<std::uint32_t> deaths{0};
  // Written by the service, read by lookers: numbers of the lane whose tasks were taken back when a
  // process died. Publishes nothing.
  atomic<std::uint32_t> returned{0};
  std::int32_t file = -1;  // the lane's, in the host
  std::uint64_t inode = 0;
  // Written by the service, read by lookers: the procedure that the last process died in; 0: none
  // yet. Publishes nothing.
  atomic<procedure_id> died_in{0};
  std::uint32_t unused = 0;
};

struct sign {
  static constexpr std::uint64_t open_pool = 0x6c65766572657431;
  static constexpr std::uint32_t this_version = 3;
  // Written by the host, read by lookers: open_pool from the pool's opening to its end. Publishes
  // the rest.
  atomic<std::uint64_t> magic{0};
  std::uint32_t version = this_version;  // of everything in the board and the lanes
  std::uint32_t board_bytes = 0;
  std::uint32_t lane_bytes = sizeof(lane<>);  // without the store
  std::uint32_t host = 0;                     // its process, in its own namespace
  std::uint32_t workers = 0;
  worker_sign worker_signs[workers_max];
};
// A looker of another build reads it: a change of the layout counts this_version up.
static_assert(std::is_standard_layout_v<sign> && sizeof(worker_sign) == 32);
static_assert(offsetof(sign, magic) == 0 && offsetof(sign, version) == 8 &&
              offsetof(sign, worker_signs) == 32);

}  // namespace lev::processes
