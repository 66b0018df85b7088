// index_ring: a bounded queue of slot numbers for any number of producers and consumers. It serves
// as the ready queue, the prefilter and the list of free slots. No operation waits for another
// thread; a full or empty ring says so.
//
// Each cell holds (sequence, value) in one word. Position p may be written when its cell's sequence
// is p, and read when it is p + 1; reading sets it to p + capacity. Batches reserve consecutive
// positions with one compare-exchange, after checking that every one of their cells is there.
// Positions wrap at 2^32; the capacity is a power of two, so cells follow.
//
// After D. Vyukov's bounded MPMC queue (1024cores.net). Model test:
// tests/model/index_ring_model.cpp.
#pragma once

#include "sync/env.hpp"

#include <cstdint>

namespace lev {

template <class Env = real_env>
class index_ring {
 public:
  using cell = typename Env::template atomic<std::uint64_t>;

  // `cells` is an array of `capacity` cells, a power of two of at least 2; it outlives the ring.
  // `start` is the first position (tests start near the wrap).
  void open(cell* cells, std::uint32_t capacity, std::uint32_t start = 0) noexcept {
    cells_ = cells;
    mask_ = capacity - 1;
    for (std::uint32_t i = 0; i < capacity; ++i) {
      cells_[(start + i) & mask_].store(pack(start + i, 0), memory_order_relaxed);
    }
    head_.store(start, memory_order_relaxed);
    tail_.store(start, memory_order_relaxed);
  }

  bool try_push(std::uint32_t value) noexcept { return try_push_all(&value, 1); }

  // Pushes all `count` values or none. `count` is at most the capacity.
  bool try_push_all(const std::uint32_t* values, std::uint32_t count) noexcept {
    cell* const cells = cells_;
    const std::uint32_t mask = mask_;
    std::uint32_t position = tail_.load(memory_order_relaxed);
    for (;;) {
      const std::uint32_t there = run_of(cells, mask, position, count, 0);
      if (there < count) {
        const std::uint32_t now = tail_.load(memory_order_relaxed);
        if (now == position) return false;
        position = now;
        continue;
      }
      // Pairs with looks_empty(). Sequentially consistent: a pusher's reservation and its look at
      // the doorbell are one side of a handshake with a worker that announces its sleep and then
      // looks at the ring.
      if (tail_.compare_exchange_strong(position, position + count, memory_order_seq_cst)) break;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      // Pairs with run_of() of a consumer: publishes the slot's contents.
      cells[(position + i) & mask].store(pack(position + i + 1, values[i]), memory_order_release);
    }
    return true;
  }

  bool try_pop(std::uint32_t* value) noexcept { return try_pop_some(value, 1) == 1; }

  // Pops up to `count` values that are there now; returns how many it popped.
  std::uint32_t try_pop_some(std::uint32_t* values, std::uint32_t count) noexcept {
    cell* const cells = cells_;
    const std::uint32_t mask = mask_;
    std::uint32_t position = head_.load(memory_order_relaxed);
    std::uint32_t there;
    for (;;) {
      there = run_of(cells, mask, position, count, 1, values);
      if (there == 0) {
        const std::uint32_t now = head_.load(memory_order_relaxed);
        if (now == position) return 0;
        position = now;
        continue;
      }
      if (head_.compare_exchange_strong(position, position + there, memory_order_relaxed)) break;
    }
    for (std::uint32_t i = 0; i < there; ++i) {
      // Pairs with run_of() of a producer one lap later: it may overwrite the cell.
      cells[(position + i) & mask].store(pack(position + i + mask + 1, 0), memory_order_release);
    }
    return there;
  }

  // position() is where the next value comes from, unless a consumer takes it meanwhile.
  std::uint32_t position() const noexcept { return head_.load(memory_order_relaxed); }
  // try_pop_at() pops the value at that position. False: it is not there yet, or another consumer
  // has popped since. `later` is the value `ahead` positions behind it, or 0 if that is not there:
  // a hint.
  bool try_pop_at(std::uint32_t position, std::uint32_t* value, std::uint32_t ahead,
                  std::uint32_t* later) noexcept {
    cell* const cells = cells_;
    const std::uint32_t mask = mask_;
    // Pairs with try_push_all().
    const std::uint64_t c = cells[position & mask].load(memory_order_acquire);
    *value = static_cast<std::uint32_t>(c);
    *later =
        static_cast<std::uint32_t>(cells[(position + ahead) & mask].load(memory_order_relaxed));
    std::uint32_t head = position;
    if (sequence(c) != position + 1 ||
        !head_.compare_exchange_strong(head, position + 1, memory_order_relaxed))
      return false;
    // Pairs with run_of() of a producer one lap later, as in try_pop_some().
    cells[position & mask].store(pack(position + mask + 1, 0), memory_order_release);
    return true;
  }

  // looks_empty() is the sleeper's last look: false once a push has reserved its place, even if the
  // value is not there yet.
  bool looks_empty() const noexcept {
    const std::uint32_t head = head_.load(memory_order_relaxed);
    // Pairs with try_push_all(), and is sequentially consistent for the reason given there.
    return tail_.load(memory_order_seq_cst) == head;
  }
  // How many values are in the ring, about.
  std::uint32_t size() const noexcept {
    const std::uint32_t head = head_.load(memory_order_relaxed);
    const std::uint32_t used = tail_.load(memory_order_relaxed) - head;
    return used > mask_ + 1 ? 0 : used;
  }

 private:
  static constexpr std::uint64_t pack(std::uint32_t s, std::uint32_t value) noexcept {
    return std::uint64_t{s} << 32 | value;
  }
  static constexpr std::uint32_t sequence(std::uint64_t c) noexcept {
    return static_cast<std::uint32_t>(c >> 32);
  }

  // How many of the `count` cells from `position` on have the sequence of their position plus
  // `offset`. A consumer gets their values, too: they stay as they are until it takes them, or
  // another one does. (A store to a cell might change the members, for all GCC knows: so the caller
  // reads these.)
  static std::uint32_t run_of(const cell* cells, std::uint32_t mask, std::uint32_t position,
                              std::uint32_t count, std::uint32_t offset,
                              std::uint32_t* values = nullptr) noexcept {
    std::uint32_t there = 0;
    while (there < count) {
      // Pairs with the release stores of try_push_all() and try_pop_some().
      const std::uint64_t c = cells[(position + there) & mask].load(memory_order_acquire);
      if (sequence(c) != position + there + offset) break;
      if (values != nullptr) values[there] = static_cast<std::uint32_t>(c);
      ++there;
    }
    return there;
  }

  cell* cells_ = nullptr;
  std::uint32_t mask_ = 0;
  // Written by producers, read by all: where the next value goes. Publishes only reservations.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> tail_{0};
  // Written by consumers, read by all: where the next value comes from. Publishes only
  // reservations.
  alignas(line_pair_bytes) typename Env::template atomic<std::uint32_t> head_{0};
};

}  // namespace lev
