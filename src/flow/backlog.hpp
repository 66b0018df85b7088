// backlog: tasks that were posted inside other tasks when no slot was free. A participant that
// finds nothing else to do gives them slots, the last one first: a search that goes deep before it
// goes wide leaves the least behind.
//
// Tasks with mutexes are a pile of their own. They get fewer slots, because they may keep them
// until a task ends that waits for one of the other pile.
//
// It is the one queue that the number of slots does not bound: its memory is taken piece by piece.
// When it is empty, all but one piece are given back.
#pragma once

#include <leveret/options.hpp>

#include "sync/spin_lock.hpp"
#include "task/slot.hpp"

namespace lev {

// A task without a slot: what will be written into one. `flags` are the slot's.
struct backlog_task : detail::task_head {
  std::uint32_t parent = no_slot;
  std::uint16_t parent_generation = 0;
  std::uint8_t lock_count = 0;
  mutex_id locks[mutexes_per_task_max];
};

class backlog {
 public:
  backlog() = default;
  backlog(backlog&&) = delete;
  ~backlog();

  // push() copies the task and its `head.argument_count` arguments. False: there is no memory.
  bool push(const backlog_task& head, const argument* arguments) noexcept;
  // pop() copies the last one out, of those with or without mutexes; `arguments` has room for
  // argument_count_max. False: there is none, or get(), which is only asked if there is one, says
  // no. So a slot that get() takes is never in the hands of one that finds no task for it: a host
  // that asks meanwhile whether any slot is left would not see it.
  template <class Get>
  bool pop(bool with_locks, backlog_task* head, argument* arguments, Get&& get) noexcept {
    pile& from = piles_[with_locks];
    if (!has(with_locks)) return false;
    piece* empty = nullptr;
    {
      const spin_guard<> held(lock_);
      if (from.last == nullptr || !get()) return false;
      empty = take_last(from, head, arguments);
    }
    drop(empty);
    return true;
  }

  // looks_empty() is for a sleeper's last look, and for those who give slots back.
  bool looks_empty() const noexcept {
    // Pairs with push(). Sequentially consistent: one side of the handshakes that sync/README.md
    // has; the others are the sleeper's announcement and the free slots' ring.
    return count_.load(memory_order_seq_cst) == 0;
  }
  // has() asks for one pile, after looks_empty() has said no.
  bool has(bool with_locks) const noexcept {
    return piles_[with_locks].count.load(memory_order_relaxed) != 0;
  }
  std::uint64_t size() const noexcept { return count_.load(memory_order_relaxed); }

 private:
  struct piece;
  struct pile {
    piece* last = nullptr;  // the pieces that are in use, the last one first
    // Written under lock_, before count_, which publishes it; read by those who look for work.
    atomic<std::uint64_t> count{0};
  };
  bool try_push(const backlog_task& head, const argument* arguments, piece*& more) noexcept;
  piece* take_last(pile& from, backlog_task* head, argument* arguments) noexcept;
  static void drop(piece* empty) noexcept;

  spin_lock<> lock_;
  // Protected by lock_: the piles, and an empty piece that is kept.
  pile piles_[2];
  piece* kept_ = nullptr;
  // Written under lock_, read by those who look for work and those who give slots back: how many
  // tasks there are.
  alignas(line_pair_bytes) atomic<std::uint64_t> count_{0};
};

}  // namespace lev
