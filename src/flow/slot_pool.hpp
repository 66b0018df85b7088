// slot_pool: all task slots, and which of them are free. Every participant keeps a few free slots
// for itself; the rest are in a ring. The pool's size bounds the tasks in flight, and with them
// every queue.
//
// Spare slots are for tasks that submit when all others are in use, perhaps by queued tasks each of
// which needs a child's slot before it can give its own back. Last slots are for the tasks of the
// backlog when all others are in use, perhaps by tickets that nobody collects: each is given back
// when its task has ended.
#ifndef LEVERET_FLOW_SLOT_POOL_HPP
#define LEVERET_FLOW_SLOT_POOL_HPP

#include "base/assert.hpp"
#include "base/numbers.hpp"
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
  // How many there are of each kind: powers of two.
  struct counts {
    std::uint32_t free;
    std::uint32_t spare;
    std::uint32_t last;
    constexpr std::uint32_t all() const noexcept { return free + spare + last; }
  };
  // Arrays of counts::all() elements that outlive the pool; cells for the rings likewise.
  struct storage {
    slot* slots;
    slot_tail* tails;
    slot_extra* extras;
    index_ring<>::cell* cells;
    index_ring<>::cell* spare_cells;
    index_ring<>::cell* last_cells;
  };
  void open(const storage& s, const counts& n) noexcept {
    slots_ = s.slots;
    tails_ = s.tails;
    extras_ = s.extras;
    first_spare_ = n.free;
    first_last_ = n.free + n.spare;
    count_ = n.all();
    fill(free_, s.cells, 0, n.free);
    fill(spare_, s.spare_cells, first_spare_, n.spare);
    fill(last_, s.last_cells, first_last_, n.last);
  }

  // All of them, of each kind.
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
    LEV_DCHECK(index >= first_spare_ && index < first_last_);
    LEV_DCHECK_LOOK(at(index).state.is_free());
    return index;
  }
  // try_take_last() is for a task of the backlog, when try_take() found none.
  std::uint32_t try_take_last() noexcept {
    std::uint32_t index = no_slot;
    if (!last_.try_pop(&index)) return no_slot;
    LEV_DCHECK(index >= first_last_ && index < count_);
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
  bool looks_exhausted_for_backlog() const noexcept {
    return free_.looks_empty() && last_.looks_empty();
  }
  std::uint32_t free_count() const noexcept { return free_.size() + spare_.size() + last_.size(); }

  // write() writes a task into a slot that was taken for it. It has no parent yet.
  void write(std::uint32_t task, const detail::task_head& head, std::uint8_t flags,
             const argument* arguments) noexcept {
    LEV_DCHECK(head.argument_count <= argument_count_max);
    slot& s = at(task);
    s.state.open((flags & task_detached) != 0 ? std::uint64_t{state_bits::released} : 0);
    static_cast<detail::task_head&>(s) = head;
    s.flags = flags;
    s.parent = no_slot;
    s.parent_generation = 0;
    s.dice_depth = 0;
    LEV_DCHECK(s.mailbox == 0);
    const unsigned near = smaller(unsigned{head.argument_count}, near_arguments);
    for (unsigned i = 0; i < near; ++i) s.arguments[i] = arguments[i];
    for (unsigned i = near; i < head.argument_count; ++i) argument_at(task, i) = arguments[i];
  }

 private:
  static void fill(index_ring<>& ring, index_ring<>::cell* cells, std::uint32_t first,
                   std::uint32_t count) noexcept {
    LEV_DCHECK((count & (count - 1)) == 0);
    ring.open(cells, count);
    for (std::uint32_t i = 0; i < count; ++i) ring.try_push(first + i);
  }
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
      index_ring<>& kept = index < first_last_ ? spare_ : last_;
      while (!kept.try_push(index)) real_env::pause();
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
  std::uint32_t first_last_ = 0;
  index_ring<> free_;
  index_ring<> spare_;
  index_ring<> last_;
};

}  // namespace lev

#endif
