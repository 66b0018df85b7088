// slot_pool: all task slots, and which of them are free. Every participant keeps a few free slots
// for itself; the rest are in a ring. The pool's size bounds the tasks in flight, and with them
// every queue.
//
// Spare slots are for tasks that submit when all others are in use: queued tasks may hold these,
// and each may need a child's slot before it can give its own back. Last slots are for tasks of the
// backlog when all others are in use: tickets that no thread collects may hold these. Each last
// slot is given back when its task has ended. Tasks with mutexes may take half of them. An own slot
// is one host's, for the tasks that it runs as it posts them: it is in no list.
#pragma once

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "flow/index_pool.hpp"
#include "task/slice.hpp"
#include "task/slot.hpp"

#include <bit>
#include <exception>
#include <utility>

namespace lev {

// The task that submitted another one, with half of its generation.
struct task_parent {
  std::uint32_t task = no_slot;
  std::uint16_t generation = 0;
};

class slot_pool {
 public:
  // How many slots there are of each kind; free and spare ones are a power of two.
  struct counts {
    std::uint32_t free;
    std::uint32_t spare;
    std::uint32_t last;
    std::uint32_t own;
    constexpr std::uint32_t all() const noexcept { return free + spare + last + own; }
  };
  // Arrays of counts::all() elements that outlive the pool; cells for the rings likewise, for the
  // last ones a power of two of at least 2.
  struct storage {
    slot* slots;
    slot_rest* rests;
    slot_extra* extras;
    index_ring<>::cell* cells;
    index_ring<>::cell* spare_cells;
    index_ring<>::cell* last_cells;
  };
  void open(const storage& s, const counts& n) noexcept {
    slots_ = s.slots;
    rests_ = s.rests;
    extras_ = s.extras;
    first_spare_ = n.free;
    first_last_ = n.free + n.spare;
    first_own_ = first_last_ + n.last;
    count_ = n.all();
    free_.open(s.cells, n.free, 0, n.free);
    spare_.open(s.spare_cells, n.spare, first_spare_, n.spare);
    last_.open(s.last_cells, std::bit_ceil(larger(n.last, 2u)), first_last_, n.last);
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
  // prefetch() asks for a slot that the caller will write; any number does no harm. Inlined, as
  // GCC 12 drops calls of what only prefetches.
  [[gnu::always_inline]] void prefetch(std::uint32_t i) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(slots_) + std::size_t{i} * sizeof(slot);
    __builtin_prefetch(reinterpret_cast<const void*>(at), 1, 3);
  }
  slot_extra& extra(std::uint32_t i) noexcept {
    LEV_DCHECK(i < count_);
    return extras_[i];
  }
  // keep_exception() is how a slot comes by one. drop_exceptions() looks for them only in those
  // parts of all slots that have had any: others may have no memory yet. It runs when no task is
  // left.
  void keep_exception(std::uint32_t i, std::exception_ptr e) noexcept {
    extra(i).exception = std::move(e);
    const std::uint64_t part = std::uint64_t{1} << part_of(i);
    if ((with_exceptions_.load(memory_order_relaxed) & part) == 0)
      with_exceptions_.fetch_or(part, memory_order_relaxed);
  }
  void drop_exceptions() noexcept {
    const std::uint64_t parts = with_exceptions_.load(memory_order_relaxed);
    for (std::uint32_t i = 0; parts != 0 && i < count_; ++i) {
      if ((parts >> part_of(i) & 1) == 0) continue;
      const std::exception_ptr of_task = std::exchange(extra(i).exception, nullptr);
    }
  }
  argument& argument_at(std::uint32_t i, unsigned n) noexcept {
    LEV_DCHECK(i < count_ && n < argument_count_max);
    return n < near_arguments ? slots_[i].arguments[n] : rests_[i].arguments[n - near_arguments];
  }

  // items_of() is the number of items of a task's sliced arguments (task/slice.hpp).
  [[gnu::noinline]] std::uint64_t items_of(std::uint32_t task) noexcept {
    return lev::items_of(at(task).argument_count,
                         [&](unsigned i) -> const argument& { return argument_at(task, i); });
  }

  // try_take() returns a free slot, or no_slot; take_kept() is for a cache that has `n`, not 0.
  std::uint32_t try_take(index_cache& cache) noexcept {
    std::uint32_t n = cache.count();
    if (n == 0 && (n = refill(cache)) == 0) return no_slot;
    return take_kept(cache, n);
  }
  std::uint32_t take_kept(index_cache& cache, std::uint32_t n) noexcept {
    LEV_DCHECK(n != 0);
    LEV_DCHECK_LOOK(at(cache.numbers[n - 1]).state.is_free());
    cache.set_count(n - 1);
    return cache.numbers[n - 1];
  }
  // try_take_spare() is for a task's submit, when try_take() found none.
  std::uint32_t try_take_spare() noexcept {
    std::uint32_t index = no_slot;
    if (!spare_.try_take(&index)) return no_slot;
    LEV_DCHECK(index >= first_spare_ && index < first_last_);
    LEV_DCHECK_LOOK(at(index).state.is_free());
    return index;
  }
  // try_take_last() is for a task of the backlog, when try_take() found none.
  std::uint32_t try_take_last(bool with_locks) noexcept {
    std::uint32_t index = no_slot;
    if (with_locks && is_half_taken()) return no_slot;
    if (!last_.try_take(&index)) return no_slot;
    LEV_DCHECK(index >= first_last_ && index < first_own_);
    LEV_DCHECK_LOOK(at(index).state.is_free());
    return index;
  }
  // try_take_own() is for host number `host`. no_slot: a task has the slot, and the caller is in
  // its body or its end. (Such a task is plain, and has no pieces.)
  std::uint32_t try_take_own(std::uint32_t host) noexcept {
    const std::uint32_t index = first_own_ + host;
    LEV_DCHECK(index < count_);
    // Pairs with give_kept(): the completer has done with the slot.
    if (extras_[index].is_taken.load(memory_order_acquire) != 0) return no_slot;
    LEV_DCHECK_LOOK(at(index).state.is_free());
    extras_[index].is_taken.store(1, memory_order_relaxed);
    return index;
  }
  // give() frees a slot whose state is `free`. Returns whether slots went back to the ring, where
  // others see them.
  bool give(index_cache& cache, std::uint32_t index) noexcept {
    LEV_DCHECK_LOOK(at(index).state.is_free());
    return index < first_spare_ ? free_.give(cache, index) : give_kept(index);
  }
  // can_keep() tells whether give() would leave the slot with the participant, and keep() does so.
  bool can_keep(const index_cache& cache, std::uint32_t index) const noexcept {
    return index < first_spare_ && cache.has_room();
  }
  void keep(index_cache& cache, std::uint32_t index) noexcept {
    LEV_DCHECK_LOOK(at(index).state.is_free());
    LEV_DCHECK(can_keep(cache, index) && at(index).mailbox.load(memory_order_relaxed) == 0);
    cache.keep(index);
  }
  // flush() gives a participant's own free slots back.
  bool flush(index_cache& cache) noexcept { return free_.flush(cache); }
  bool looks_exhausted(bool for_task = false) const noexcept {
    return free_.looks_empty() && (!for_task || spare_.looks_empty());
  }
  bool looks_exhausted_for_backlog(bool with_locks) const noexcept {
    return free_.looks_empty() && (with_locks ? is_half_taken() : last_.looks_empty());
  }
  // Those that lie in lists.
  std::uint32_t free_count() const noexcept { return free_.size() + spare_.size() + last_.size(); }
  std::uint32_t listed_count() const noexcept { return first_own_; }

  // write() writes a task into a slot that was taken for it, and returns what task_state::open()
  // does. write_near() is for a task whose arguments all lie in the slot, and whose head has no
  // flags.
  [[gnu::always_inline]] std::uint64_t write(std::uint32_t task, const detail::task_head& head,
                                             std::uint8_t flags, const argument* arguments,
                                             task_parent by = {}) noexcept {
    LEV_DCHECK(head.argument_count <= argument_count_max);
    const std::uint64_t opened = write_slot(at(task), head, flags, arguments, by);
    at(task).flags = flags;
    if (head.argument_count > near_arguments) [[unlikely]]
      write_rest(task, head.argument_count, arguments);
    return opened;
  }
  template <std::uint8_t flags>
  [[gnu::always_inline]] std::uint64_t write_near(std::uint32_t task, const detail::task_head& head,
                                                  const argument* arguments,
                                                  task_parent by) noexcept {
    LEV_DCHECK(head.argument_count <= near_arguments && head.flags == 0);
    const std::uint64_t opened = write_slot(at(task), head, flags, arguments, by);
    if constexpr (flags != 0) at(task).flags = flags;
    return opened;
  }

 private:
  // All but the flags, which are the head's, and the rest of the arguments.
  [[gnu::always_inline]] static std::uint64_t write_slot(slot& s, const detail::task_head& head,
                                                         std::uint8_t flags,
                                                         const argument* arguments,
                                                         task_parent by) noexcept {
    const std::uint64_t opened =
        s.state.open((flags & task_detached) != 0 ? std::uint64_t{state_bits::released} : 0);
    static_cast<detail::task_head&>(s) = head;
    s.parent = by.task;
    s.parent_generation = by.generation;
    s.dice_depth = 0;
    LEV_DCHECK(s.mailbox.load(memory_order_relaxed) == 0);
    const unsigned count = head.argument_count;
    for (unsigned i = 0; i < near_arguments && i < count; ++i) s.arguments[i] = arguments[i];
    return opened;
  }
  unsigned part_of(std::uint32_t i) const noexcept {
    return static_cast<unsigned>(std::uint64_t{i} * 64 / count_);
  }
  bool is_half_taken() const noexcept { return last_.size() * 2 <= first_own_ - first_last_; }
  [[gnu::noinline]] bool give_kept(std::uint32_t index) noexcept {
    if (index >= first_own_) {
      // Pairs with try_take_own().
      extras_[index].is_taken.store(0, memory_order_release);
      return false;
    }
    (index < first_last_ ? spare_ : last_).give(index);
    return true;
  }
  [[gnu::noinline]] void write_rest(std::uint32_t task, unsigned count,
                                    const argument* arguments) noexcept {
    for (unsigned i = near_arguments; i < count; ++i)
      rests_[task].arguments[i - near_arguments] = arguments[i];
  }
  // The lines of new slots are with the workers that freed them: they are fetched all at once, not
  // one by one as they are written.
  [[gnu::noinline]] std::uint32_t refill(index_cache& cache) noexcept {
    const std::uint32_t n = free_.refill(cache);
    for (std::uint32_t i = 0; i < n; ++i) __builtin_prefetch(&slots_[cache.numbers[i]], 1, 3);
    return n;
  }

  slot* slots_ = nullptr;
  slot_rest* rests_ = nullptr;
  slot_extra* extras_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t first_spare_ = 0;
  std::uint32_t first_last_ = 0;
  std::uint32_t first_own_ = 0;
  // Written by those that keep an exception, read when the runtime has closed: a bit for each part
  // of the slots, of 64. Publishes nothing.
  atomic<std::uint64_t> with_exceptions_{0};
  index_pool free_;
  index_pool spare_;
  index_pool last_;
};

}  // namespace lev
