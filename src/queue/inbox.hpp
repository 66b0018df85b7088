// inbox: a worker's own queue of slot numbers. Its owner pushes and pops at the bottom (last in,
// first out); idle workers steal at the top (oldest first). Bounded: a full inbox says so and the
// task goes to the ready queue instead.
//
// After Chase and Lev, "Dynamic circular work-stealing deque", SPAA 2005, with the orders of Le,
// Pop, Cohen and Zappa Nardelli, PPoPP 2013, without its stand-alone fences. Paper: Sol MT's worker
// inbox (Jack Rabbit thesis, section 3). Model test: tests/model/inbox_model.cpp.
#pragma once

#include "sync/env.hpp"

#include <cstdint>

namespace lev {

template <class Env = real_env, std::uint32_t Capacity = 256>
class inbox {
 public:
  static_assert((Capacity & (Capacity - 1)) == 0);

  // The owner calls try_push(). `heard` says that a participant sleeps, or that sleepers have no
  // heavy fence: the push is then a locked instruction, so that it is visible before the owner
  // looks at the doorbell. A sleeper that `heard` misses looks again after its heavy fence, or is
  // seen by the owner's look behind the push, which then calls confirm().
  bool try_push(std::uint32_t value, bool heard) noexcept { return try_push_all(&value, 1, heard); }

  // try_push_all() pushes `count` values or none, the first one last, so that they are popped in
  // their order here.
  bool try_push_all(const std::uint32_t* values, std::uint32_t count, bool heard) noexcept {
    const std::int64_t bottom = bottom_.load(memory_order_relaxed);
    // Pairs with try_steal(): the places thieves have left may be used again.
    if (bottom + count - top_.load(memory_order_acquire) > Capacity) return false;
    for (std::uint32_t i = 0; i < count; ++i)
      cells_[(bottom + i) & (Capacity - 1)].store(values[count - 1 - i], memory_order_relaxed);
    if (heard) {
      // Pairs with try_steal() and looks_empty(). Sequentially consistent: the owner's look at the
      // doorbell comes after it.
      bottom_.exchange(bottom + count, memory_order_seq_cst);
    } else {
      // Pairs with try_steal(): publishes the cells and the slots' contents.
      bottom_.store(bottom + count, memory_order_release);
    }
    return true;
  }

  // The owner calls confirm(): it makes earlier pushes visible before the owner's next look.
  void confirm() noexcept {
    // Pairs with looks_empty(). Sequentially consistent: the owner's look at the doorbell comes
    // after it.
    bottom_.exchange(bottom_.load(memory_order_relaxed), memory_order_seq_cst);
  }

  // The owner calls try_pop(): it gets the youngest value. try_pop_last() is for an owner that
  // knows the value by ends_with().
  bool try_pop(std::uint32_t* value) noexcept {
    const std::int64_t bottom = bottom_.load(memory_order_relaxed) - 1;
    if (bottom < top_.load(memory_order_relaxed)) return false;
    *value = cells_[bottom & (Capacity - 1)].load(memory_order_relaxed);  // only owners write cells
    return claim(bottom);
  }
  bool try_pop_last() noexcept { return claim(bottom_.load(memory_order_relaxed) - 1); }

  // The owner calls ends_with(): is `value` the youngest, unless it has been taken?
  bool ends_with(std::uint32_t value) const noexcept {
    const std::int64_t last = bottom_.load(memory_order_relaxed) - 1;
    return cells_[last & (Capacity - 1)].load(memory_order_relaxed) == value;
  }

  // Any thread may call try_steal(): it gets the oldest value.
  bool try_steal(std::uint32_t* value) noexcept {
    // Pairs with try_pop(). Sequentially consistent: see there.
    std::int64_t top = top_.load(memory_order_seq_cst);
    // Pairs with try_push(): the cell and the slot's contents are visible. Sequentially consistent:
    // see try_pop().
    const std::int64_t bottom = bottom_.load(memory_order_seq_cst);
    if (top >= bottom) return false;
    *value = cells_[top & (Capacity - 1)].load(memory_order_relaxed);
    // Pairs with try_pop() and other thieves. Sequentially consistent: see try_pop().
    return top_.compare_exchange_strong(top, top + 1, memory_order_seq_cst);
  }

  // The owner calls bottom(): where the next push goes, or the last pop came from.
  std::uint32_t bottom() const noexcept {
    return static_cast<std::uint32_t>(bottom_.load(memory_order_relaxed));
  }

  bool looks_empty() const noexcept {
    // Pairs with try_push(). Sequentially consistent: the sleeper's last look comes after its
    // announcement.
    return top_.load(memory_order_seq_cst) >= bottom_.load(memory_order_seq_cst);
  }
  // The owner calls has_any(), size() and room(): thieves may have taken some meanwhile.
  bool has_any() const noexcept {
    return bottom_.load(memory_order_relaxed) > top_.load(memory_order_relaxed);
  }
  std::uint32_t size() const noexcept {
    const std::int64_t used = bottom_.load(memory_order_relaxed) - top_.load(memory_order_relaxed);
    return used <= 0 ? 0 : static_cast<std::uint32_t>(used);
  }
  std::uint32_t room() const noexcept {
    const std::uint32_t used = size();
    return used >= Capacity ? 0 : Capacity - used;
  }

 private:
  // Whether the owner gets the youngest value, which lies at `bottom`.
  bool claim(std::int64_t bottom) noexcept {
    // Sequentially consistent, as is the load of top_: a thief must see the claim, or the owner
    // must see the theft; both missing each other would take one value twice. Pairs with
    // try_steal().
    bottom_.exchange(bottom, memory_order_seq_cst);
    std::int64_t top = top_.load(memory_order_seq_cst);  // Pairs with try_steal()
    if (top < bottom) return true;
    // Pairs with try_steal(): owner and thief race for the last value. Sequentially consistent, as
    // above.
    const bool won =
        top == bottom && top_.compare_exchange_strong(top, top + 1, memory_order_seq_cst);
    bottom_.store(bottom + 1, memory_order_relaxed);
    return won;
  }

  // Written by thieves and by the owner for the last value, read by all: the place of the oldest
  // value.
  alignas(line_pair_bytes) typename Env::template atomic<std::int64_t> top_{0};
  // Written by the owner, read by all: one past the youngest value. Publishes the cells below it.
  alignas(line_pair_bytes) typename Env::template atomic<std::int64_t> bottom_{0};
  // Written by the owner, read by all under the protocol above: relaxed, published by bottom_.
  typename Env::template atomic<std::uint32_t> cells_[Capacity]{};
};

}  // namespace lev
