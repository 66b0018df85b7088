// The backlog's memory: a stack in pieces. A task lies in one piece: its arguments, then its head,
// so that the head is found from the end.
#include "flow/backlog.hpp"

#include "base/assert.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace lev {

struct backlog::piece {
  static constexpr std::size_t size = 64 << 10;  // of all of it, in bytes
  piece* before = nullptr;
  std::size_t used = 0;
  unsigned char bytes[size - 2 * sizeof(std::size_t)];

  bool has_room(std::size_t n) const noexcept { return sizeof bytes - used >= n; }
  void put(const void* from, std::size_t n) noexcept {
    LEV_DCHECK(used + n <= sizeof bytes);
    std::memcpy(bytes + used, from, n);
    used += n;
  }
  void take(void* to, std::size_t n) noexcept {
    LEV_DCHECK(n <= used);
    used -= n;
    std::memcpy(to, bytes + used, n);
  }
};

backlog::~backlog() {
  LEV_DCHECK(piles_[0].last == nullptr && piles_[1].last == nullptr);  // all tasks are complete
  delete kept_;
}

// False: there is no room, and `more` is none.
bool backlog::try_push(const backlog_task& head, const argument* arguments, piece*& more) noexcept {
  const std::size_t bytes = head.argument_count * sizeof(argument);
  const spin_guard<> held(lock_);
  pile& to = piles_[(head.flags & task_has_locks) != 0];
  if (to.last == nullptr || !to.last->has_room(bytes + sizeof head)) {
    piece* const next = std::exchange(more != nullptr ? more : kept_, nullptr);
    if (next == nullptr) return false;
    next->before = std::exchange(to.last, next);
  }
  if (bytes != 0) to.last->put(arguments, bytes);
  to.last->put(&head, sizeof head);
  to.count.store(to.count.load(memory_order_relaxed) + 1, memory_order_relaxed);
  // Pairs with looks_empty().
  count_.fetch_add(1, memory_order_seq_cst);
  return true;
}

bool backlog::push(const backlog_task& head, const argument* arguments) noexcept {
  piece* more = nullptr;
  while (!try_push(head, arguments, more)) {
    // Memory is asked for without the lock: that may take long.
    more = new (std::nothrow) piece;
    if (more == nullptr) return false;
  }
  delete more;
  return true;
}

// Returns a piece that is needed no more, or null.
backlog::piece* backlog::take_last(pile& from, backlog_task* head, argument* arguments) noexcept {
  piece* const last = from.last;
  last->take(head, sizeof *head);
  if (head->argument_count != 0) last->take(arguments, head->argument_count * sizeof(argument));
  from.count.store(from.count.load(memory_order_relaxed) - 1, memory_order_relaxed);
  count_.fetch_sub(1, memory_order_relaxed);
  return last->used != 0 ? nullptr : std::exchange(kept_, std::exchange(from.last, last->before));
}

void backlog::drop(piece* empty) noexcept {
  delete empty;
}

}  // namespace lev
