// mutex_table: the mutexes that tasks name. A task takes its mutexes one after the other in
// ascending order, before it is queued; if one is taken, the task joins that mutex's list and no
// worker waits for it. Ascending order excludes deadlock; the lists are first come first served and
// hand over directly, so no task starves.
//
// Paper: Sol MT's locked jobs and deferment list (Jack Rabbit thesis, section 3), whose stated
// weakness is starvation.
#pragma once

#include <leveret/options.hpp>

#include "flow/slot_pool.hpp"
#include "sync/spin_lock.hpp"

#include <algorithm>

namespace lev {

static_assert(sizeof(slot_extra::locks) == mutexes_per_task_max * sizeof(mutex_id));

class mutex_table {
 public:
  // make() returns a new mutex, or false when all are in use.
  bool make(mutex_id* id) noexcept {
    std::uint32_t n = made_.load(memory_order_relaxed);
    do {
      if (n >= mutex_count_max) return false;
    } while (!made_.compare_exchange_strong(n, n + 1, memory_order_relaxed));
    *id = static_cast<mutex_id>(n);
    return true;
  }
  bool exists(mutex_id id) const noexcept { return id < made_.load(memory_order_relaxed); }

  // note() writes the mutexes of a task into its slot, in ascending order and each once.
  static void note(slot_extra& extra, const mutex_id* locks, std::uint32_t count) noexcept {
    LEV_DCHECK(count <= mutexes_per_task_max);
    mutex_id* const end = std::copy_n(locks, count, extra.locks);
    std::sort(extra.locks, end);
    extra.lock_count = static_cast<std::uint8_t>(std::unique(extra.locks, end) - extra.locks);
    extra.locks_held = 0;
  }

  // acquire() takes the remaining mutexes of a task. False: the task waits in a list and comes out
  // of some release().
  bool acquire(slot_pool& slots, std::uint32_t task) noexcept {
    slot_extra& extra = slots.extra(task);
    LEV_DCHECK(extra.lock_count <= mutexes_per_task_max);
    while (extra.locks_held < extra.lock_count) {
      // Ascending: or two tasks could wait for each other.
      LEV_DCHECK(extra.locks_held == 0 ||
                 extra.locks[extra.locks_held - 1] < extra.locks[extra.locks_held]);
      if (!enter(slots, entries_[extra.locks[extra.locks_held]], task)) return false;
      ++extra.locks_held;
    }
    return true;
  }
  // release() frees one mutex of a completed task. Returns a task that now holds it and must go on
  // with acquire(), or no_slot.
  std::uint32_t release(slot_pool& slots, mutex_id id) noexcept {
    LEV_DCHECK_LOOK(exists(id));
    entry& e = entries_[id];
    const spin_guard<> held(e.lock);
    LEV_DCHECK_LOOK(e.taken);
    LEV_DCHECK((e.first == no_slot) == (e.last == no_slot));
    const std::uint32_t next = e.first;
    if (next == no_slot) {
      e.taken = false;
    } else {
      e.first = slots.extra(next).lock_next;
      if (e.first == no_slot) e.last = no_slot;
      ++slots.extra(next).locks_held;
    }
    return next;
  }

 private:
  struct alignas(line_bytes) entry {
    spin_lock<> lock;  // protects the rest; held for a few instructions
    bool taken = false;
    std::uint32_t first = no_slot;
    std::uint32_t last = no_slot;
  };

  bool enter(slot_pool& slots, entry& e, std::uint32_t task) noexcept {
    const spin_guard<> held(e.lock);
    const bool entered = !e.taken;
    LEV_DCHECK(!entered || e.first == no_slot);  // or a task would wait for no holder
    if (entered) {
      e.taken = true;
    } else {
      slots.extra(task).lock_next = no_slot;
      if (e.last == no_slot) {
        e.first = task;
      } else {
        slots.extra(e.last).lock_next = task;
      }
      e.last = task;
    }
    return entered;
  }

  entry entries_[mutex_count_max];
  // Written by make(), read by submitters: how many mutexes there are.
  atomic<std::uint32_t> made_{0};
};

}  // namespace lev
