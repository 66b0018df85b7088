// slot_pool: all task slots, and which of them are free. Every participant keeps a few free slots
// for itself; the rest are in a ring. The pool's size bounds the tasks in flight, and with them
// every queue.
//
// Spare slots are for tasks that submit when all others are in use, perhaps by queued tasks each of
// which needs a child's slot before it can give its own back.
#ifndef LEVERET_FLOW_SLOT_POOL_HPP
#define LEVERET_FLOW_SLOT_POOL_HPP

#include "base/assert.hpp"
#include "queue/index_ring.hpp"
#include "task/slot.hpp"

namespace lev {

// A participant's own free slots. `limit` is 0 when the pool is too small to share out.
struct slot_cache {
  static constexpr std::uint32_t size_max = 32;
  std::uint32_t count() const noexcept {
    // Pairs with set_count(): slots that have left for the ring are seen there.
    return count_.load(memory_order_acquire);
  }
  void set_count(std::uint32_t n) noexcept {
    LEV_DCHECK(n <= size_max);
    // Pairs with count().
    count_.store(n, memory_order_release);
  }
  // has() is for assertions: no slot is in a cache twice.
  bool has(std::uint32_t index) const noexcept {
    const std::uint32_t n = count();
    for (std::uint32_t i = 0; i < n; ++i) {
      if (slots[i] == index) return true;
    }
    return false;
  }
  std::uint32_t limit = 0;
  std::uint32_t slots[size_max];

 private:
  // Written by the owner, read by hosts that ask whether any slot is left: publishes the ring that
  // slots went back to.
  atomic<std::uint32_t> count_{0};
};

class slot_pool {
 public:
  // Arrays of `count` and `spare_count` elements (powers of two) that outlive the pool; as many
  // cells for the rings likewise.
  struct storage {
    slot* slots;
    slot_tail* tails;
    slot_extra* extras;
    index_ring<>::cell* cells;
    index_ring<>::cell* spare_cells;
  };
  void open(const storage& s, std::uint32_t count, std::uint32_t spare_count) noexcept {
    LEV_DCHECK((count & (count - 1)) == 0 && (spare_count & (spare_count - 1)) == 0);
    slots_ = s.slots;
    tails_ = s.tails;
    extras_ = s.extras;
    first_spare_ = count;
    count_ = count + spare_count;
    free_.open(s.cells, count);
    for (std::uint32_t i = 0; i < count; ++i) free_.try_push(i);
    spare_.open(s.spare_cells, spare_count);
    for (std::uint32_t i = 0; i < spare_count; ++i) spare_.try_push(count + i);
  }

  // All of them, spare ones too.
  std::uint32_t count() const noexcept { return count_; }
  slot& at(std::uint32_t i) noexcept {
    LEV_DCHECK(i < count_);
    return slots_[i];
  }
  const slot& at(std::uint32_t i) const noexcept {
    LEV_DCHECK(i < count_);
    return slots_[i];
  }
  slot_extra& extra(std::uint32_t i) noexcept {
    LEV_DCHECK(i < count_);
    return extras_[i];
  }
  argument& argument_at(std::uint32_t i, unsigned n) noexcept {
    LEV_DCHECK(i < count_ && n < argument_count_max);
    return n < near_arguments ? slots_[i].arguments[n] : tails_[i].rest[n - near_arguments];
  }

  // try_take() returns a free slot, or no_slot.
  std::uint32_t try_take(slot_cache& cache) noexcept {
    std::uint32_t n = cache.count();
    if (n == 0 && (n = refill(cache)) == 0) return no_slot;
    LEV_DCHECK_LOOK(at(cache.slots[n - 1]).state.is_free());
    cache.set_count(n - 1);
    return cache.slots[n - 1];
  }
  // try_take_spare() is for a task's submit, when try_take() found none.
  std::uint32_t try_take_spare() noexcept {
    std::uint32_t index = no_slot;
    if (!spare_.try_pop(&index)) return no_slot;
    LEV_DCHECK(index >= first_spare_ && index < count_);
    LEV_DCHECK_LOOK(at(index).state.is_free());
    return index;
  }
  // give() frees a slot whose state is `free`. Returns whether slots went back to the ring, where
  // others see them.
  bool give(slot_cache& cache, std::uint32_t index) noexcept {
    LEV_DCHECK_LOOK(at(index).state.is_free());
    LEV_DCHECK_LOOK(!cache.has(index));
    const std::uint32_t n = cache.count();
    if (n >= cache.limit || index >= first_spare_) return give_back(cache, index), true;
    cache.slots[n] = index;
    cache.set_count(n + 1);
    return false;
  }
  // flush() gives a participant's own free slots back.
  bool flush(slot_cache& cache) noexcept {
    const std::uint32_t n = cache.count();
    if (n == 0) return false;
    while (!free_.try_push_all(cache.slots, n)) real_env::pause();
    cache.set_count(0);
    return true;
  }
  bool looks_exhausted(bool for_task = false) const noexcept {
    return free_.looks_empty() && (!for_task || spare_.looks_empty());
  }
  std::uint32_t free_count() const noexcept { return free_.size() + spare_.size(); }

 private:
  // Fills an empty cache to its half; returns how many slots there were.
  [[gnu::noinline]] std::uint32_t refill(slot_cache& cache) noexcept {
    const std::uint32_t wanted = cache.limit == 0 ? 1 : (cache.limit + 1) / 2;
    const std::uint32_t n = free_.try_pop_some(cache.slots, wanted);
    LEV_DCHECK(n <= wanted && wanted <= slot_cache::size_max);
    // Their lines are with the workers that freed them: fetch them all at once, not one by one as
    // they are written.
    for (std::uint32_t i = 0; i < n; ++i) __builtin_prefetch(&slots_[cache.slots[i]], 1, 3);
    return n;
  }
  // Half of a full cache goes back to the ring, to make room for `index`.
  [[gnu::noinline]] void give_back(slot_cache& cache, std::uint32_t index) noexcept {
    if (index >= first_spare_) {
      while (!spare_.try_push(index)) real_env::pause();
      return;
    }
    if (cache.limit == 0) {
      while (!free_.try_push(index)) real_env::pause();
      return;
    }
    const std::uint32_t half = (cache.limit + 1) / 2;
    while (!free_.try_push_all(cache.slots, half)) real_env::pause();
    LEV_DCHECK(cache.count() >= half);
    const std::uint32_t n = cache.count() - half;
    for (std::uint32_t i = 0; i < n; ++i) cache.slots[i] = cache.slots[i + half];
    cache.slots[n] = index;
    cache.set_count(n + 1);
  }

  slot* slots_ = nullptr;
  slot_tail* tails_ = nullptr;
  slot_extra* extras_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t first_spare_ = 0;
  index_ring<> free_;
  index_ring<> spare_;
};

}  // namespace lev

#endif
