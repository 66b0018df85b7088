// engine: everything the participants of one runtime share.
#ifndef LEVERET_WORKER_ENGINE_HPP
#define LEVERET_WORKER_ENGINE_HPP

#include "flow/dependants.hpp"
#include "flow/item_costs.hpp"
#include "flow/mutex_table.hpp"
#include "flow/scheduler.hpp"
#include "machine/machine.hpp"
#include "task/procedure_table.hpp"
#include "worker/participant.hpp"

namespace lev {

struct engine {
  config settings;
  machine* place = nullptr;
  capability caps{};
  std::uint32_t workers = 0;
  std::uint32_t people_count = 0;  // workers, then host threads
  std::uint32_t takers = 1;        // workers, plus one if hosts help
  std::uint32_t depth = 1;
  bool copies_all = false;
  std::uint32_t turns_per_look = 1;  // idle polling: turns between looks at the shared queues
  std::uint64_t id = 0;              // unique in the process

  slot_pool pool;
  scheduler sched;
  dependants edges;
  mutex_table mutexes;
  item_costs costs;
  doorbell<> bell;
  participant* people = nullptr;

  // Written by host threads that bind for the first time, read by thieves and wakers: participants
  // in use. Publishes nothing: participants are ready from the start.
  alignas(line_pair_bytes) atomic<std::uint32_t> people_used{0};
  // Written by sleepers, read by those who complete tasks or free slots: how many participants want
  // each thing.
  atomic<std::uint32_t> space_wanted{0};
  // Written by begin_submit() and end_submit(), read by barrier waiters: 1 between the two.
  // Publishes nothing.
  atomic<std::uint32_t> phase_open{0};
  // Written by close(), read by submitters: 1 once new tasks are refused. Publishes nothing.
  atomic<std::uint32_t> closing{0};
  // Written by close(), read by workers: 1 when waiting tasks are to be cancelled. Publishes
  // nothing.
  atomic<std::uint32_t> cancelling{0};
  // Written by close(), read by workers: 1 when they are to return. Publishes nothing.
  atomic<std::uint32_t> stopping{0};

  // Written by barrier waiters, read by those who run out of work: how many wait. Publishes
  // nothing.
  alignas(line_pair_bytes) atomic<std::uint32_t> barrier_wanted{0};

  // Failures of tasks without a ticket, for wait_for_completion(). Protected by failure_lock.
  spin_lock<> failure_lock;
  outcome failure;
};

}  // namespace lev

#endif
