// backlog: tasks that were posted inside other tasks when no slot was free. A participant that
// finds nothing else to do gives them slots, the last one first: a search that goes deep before it
// goes wide leaves the least behind.
//
// It is the one queue that the number of slots does not bound: its memory is taken piece by piece,
// and is given back but for one piece when it is empty.
#ifndef LEVERET_FLOW_BACKLOG_HPP
#define LEVERET_FLOW_BACKLOG_HPP

#include <leveret/options.hpp>

#include "sync/spin_lock.hpp"
#include "task/slot.hpp"

namespace lev {

// A task without a slot: what will be written into one. `flags` are the slot's.
struct task_to_come : detail::task_head {
  std::uint32_t parent = no_slot;
  std::uint16_t parent_generation = 0;
  std::uint8_t lock_count = 0;
  mutex_id locks[mutexes_per_task_max];
};

class backlog {
 public:
  backlog() = default;
  backlog(const backlog&) = delete;
  backlog& operator=(const backlog&) = delete;
  ~backlog();

  // push() copies the task and its `head.argument_count` arguments. False: there is no memory.
  bool push(const task_to_come& head, const argument* arguments) noexcept;
  // pop() copies the last one out; `arguments` has room for argument_count_max. False: it is empty.
  bool pop(task_to_come* head, argument* arguments) noexcept;

  // looks_empty() is for a sleeper's last look, and for those who give slots back.
  bool looks_empty() const noexcept {
    // Pairs with push(). Sequentially consistent: one side of the handshakes that sync/README.md
    // has; the others are the sleeper's announcement and the free slots' ring.
    return count_.load(memory_order_seq_cst) == 0;
  }
  std::uint64_t size() const noexcept { return count_.load(memory_order_relaxed); }

 private:
  struct piece;
  bool try_push(const task_to_come& head, const argument* arguments, piece*& more) noexcept;

  spin_lock<> lock_;
  // Protected by lock_: pieces that are in use, the last one first, and an empty one that is kept.
  piece* last_ = nullptr;
  piece* kept_ = nullptr;
  // Written under lock_, read by those who look for work and those who give slots back: how many
  // tasks there are.
  alignas(line_pair_bytes) atomic<std::uint64_t> count_{0};
};

}  // namespace lev

#endif
