// index_pool: which of many things of one kind are free, by their numbers. Every participant keeps
// a few free ones for itself; the rest are in a ring.
#pragma once

#include "base/assert.hpp"
#include "base/numbers.hpp"
#include "queue/index_ring.hpp"

namespace lev {

// A participant's own free numbers. `limit` is 0 when the pool is too small to share out.
struct index_cache {
  static constexpr std::uint32_t size_max = 48;
  std::uint32_t count() const noexcept {
    // Pairs with set_count(): numbers that have left for the ring are seen there.
    return count_.load(memory_order_acquire);
  }
  void set_count(std::uint32_t n) noexcept {
    LEV_DCHECK(n <= size_max);
    // Pairs with count().
    count_.store(n, memory_order_release);
  }
  bool has_room() const noexcept { return count() < limit; }
  // keep() is for a cache that has room.
  void keep(std::uint32_t index) noexcept {
    const std::uint32_t n = count();
    LEV_DCHECK(n < limit);
    LEV_DCHECK_LOOK(!has(index));
    numbers[n] = index;
    set_count(n + 1);
  }
  // has() is for assertions: no number is in a cache twice.
  bool has(std::uint32_t index) const noexcept {
    const std::uint32_t n = count();
    for (std::uint32_t i = 0; i < n; ++i) {
      if (numbers[i] == index) return true;
    }
    return false;
  }
  std::uint32_t limit = 0;
  std::uint32_t numbers[size_max];

 private:
  // Written by the owner, read by hosts that ask whether any number is left: publishes the ring
  // that numbers went back to.
  atomic<std::uint32_t> count_{0};
};

class index_pool {
 public:
  // The numbers from `first` on, all free, in `capacity` cells (a power of two) that outlive this.
  void open(index_ring<>::cell* cells, std::uint32_t capacity, std::uint32_t first,
            std::uint32_t count) noexcept {
    LEV_DCHECK((capacity & (capacity - 1)) == 0 && count <= capacity);
    ring_.open(cells, capacity);
    for (std::uint32_t i = 0; i < count; ++i) ring_.try_push(first + i);
  }

  // Both look only at the ring.
  bool looks_empty() const noexcept { return ring_.looks_empty(); }
  std::uint32_t size() const noexcept { return ring_.size(); }

  // try_take() and give() of one number: past all caches. False: there is none.
  bool try_take(std::uint32_t* index) noexcept { return ring_.try_pop(index); }
  void give(std::uint32_t index) noexcept {
    while (!ring_.try_push(index)) real_env::pause();
  }

  // refill() fills an empty cache to its half; returns how many numbers there were.
  [[gnu::noinline]] std::uint32_t refill(index_cache& cache) noexcept {
    LEV_DCHECK(cache.count() == 0);
    const std::uint32_t wanted = cache.limit == 0 ? 1 : (cache.limit + 1) / 2;
    const std::uint32_t n = ring_.try_pop_some(cache.numbers, wanted);
    LEV_DCHECK(n <= wanted && wanted <= index_cache::size_max);
    return n;
  }
  // take_some() takes up to `count` numbers, from the cache first; returns how many it got.
  std::uint32_t take_some(index_cache& cache, std::uint32_t* numbers,
                          std::uint32_t count) noexcept {
    std::uint32_t own = cache.count();
    if (own == 0 && cache.limit != 0) own = refill(cache);
    std::uint32_t got = 0;
    for (; got < count && own != 0; ++got) numbers[got] = cache.numbers[--own];
    cache.set_count(own);
    while (got < count) {
      const std::uint32_t more = ring_.try_pop_some(numbers + got, count - got);
      if (more == 0) break;
      LEV_DCHECK(more <= count - got);
      got += more;
    }
    return got;
  }
  // give() frees a number. Returns whether numbers went back to the ring, where others see them.
  [[gnu::always_inline]] bool give(index_cache& cache, std::uint32_t index) noexcept {
    LEV_DCHECK_LOOK(!cache.has(index));
    const std::uint32_t n = cache.count();
    if (n >= cache.limit) [[unlikely]]
      return give_back(cache, index), true;
    cache.numbers[n] = index;
    cache.set_count(n + 1);
    return false;
  }
  // flush() gives a participant's own free numbers back.
  bool flush(index_cache& cache) noexcept {
    const std::uint32_t n = cache.count();
    if (n == 0) return false;
    while (!ring_.try_push_all(cache.numbers, n)) real_env::pause();
    cache.set_count(0);
    return true;
  }

 private:
  // Half of a full cache goes back to the ring, to make room for `index`.
  [[gnu::noinline]] void give_back(index_cache& cache, std::uint32_t index) noexcept {
    if (cache.limit == 0) return give(index);
    const std::uint32_t half = (cache.limit + 1) / 2;
    while (!ring_.try_push_all(cache.numbers, half)) real_env::pause();
    LEV_DCHECK(cache.count() >= half);
    const std::uint32_t n = cache.count() - half;
    for (std::uint32_t i = 0; i < n; ++i) cache.numbers[i] = cache.numbers[i + half];
    cache.numbers[n] = index;
    cache.set_count(n + 1);
  }

  index_ring<> ring_;
};

}  // namespace lev
