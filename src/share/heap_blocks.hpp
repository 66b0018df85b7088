// heap_blocks: which parts of a heap are in use. The first of the smallest free blocks that are
// large enough is taken; freed blocks that touch become one. All steps take logarithmic time in the
// number of blocks, and giving back allocates nothing. Not thread-safe.
#pragma once

#include "base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace lev {

class heap_blocks {
 public:
  // add() adds a free part that touches no other. Throws std::bad_alloc; then nothing has changed.
  void add(std::uintptr_t begin, std::size_t bytes) {
    by_size::node_type place = new_place();
    blocks_.emplace(begin, block{bytes, {}});
    put_in_line(std::move(place), bytes, begin);
  }
  void clear() noexcept {
    blocks_.clear();
    free_.clear();
  }

  // find() tells where a block of so many bytes would be taken; 0: nowhere.
  std::uintptr_t find(std::size_t bytes) const noexcept {
    const auto smallest = free_.lower_bound({bytes, 0});
    return smallest == free_.end() ? 0 : smallest->second;
  }
  // take() takes it. Throws std::bad_alloc; then nothing has changed.
  void take(std::uintptr_t begin, std::size_t bytes) {
    const auto taken = blocks_.find(begin);
    LEV_ASSERT(taken != blocks_.end() && !is_used(taken->second) && bytes != 0);
    const std::size_t all = taken->second.bytes;
    LEV_ASSERT(all >= bytes);
    if (all == bytes) {
      taken->second.place = free_.extract({all, begin});
      return;
    }
    by_size::node_type place = new_place();
    blocks_.emplace_hint(std::next(taken), begin + bytes, block{all - bytes, {}});
    put_in_line(free_.extract({all, begin}), all - bytes, begin + bytes);
    taken->second = {bytes, std::move(place)};
  }

  // used() tells the size of a block that was taken; 0: there is none that begins there.
  std::size_t used(std::uintptr_t begin) const noexcept {
    const auto b = blocks_.find(begin);
    return b == blocks_.end() || !is_used(b->second) ? 0 : b->second.bytes;
  }
  // give() makes such a block free.
  void give(std::uintptr_t begin) noexcept {
    auto given = blocks_.find(begin);
    LEV_ASSERT(given != blocks_.end() && is_used(given->second));
    by_size::node_type place = std::move(given->second.place);
    if (given != blocks_.begin()) {
      const auto before = std::prev(given);
      if (touches(before, given)) given = join(before, given);
    }
    const auto after = std::next(given);
    if (after != blocks_.end() && touches(given, after)) given = join(given, after);
    put_in_line(std::move(place), given->second.bytes, given->first);
  }

 private:
  using by_size = std::set<std::pair<std::size_t, std::uintptr_t>>;
  // A block in use keeps the place that it will have among the free ones.
  struct block {
    std::size_t bytes = 0;
    by_size::node_type place;
  };
  using by_address = std::map<std::uintptr_t, block>;

  static bool is_used(const block& b) noexcept { return !b.place.empty(); }
  static bool touches(by_address::iterator a, by_address::iterator b) noexcept {
    return !is_used(a->second) && !is_used(b->second) && a->first + a->second.bytes == b->first;
  }
  static by_size::node_type new_place() {
    by_size one;
    return one.extract(one.emplace(0, 0).first);
  }
  void put_in_line(by_size::node_type place, std::size_t bytes, std::uintptr_t begin) noexcept {
    place.value() = {bytes, begin};
    free_.insert(std::move(place));
  }
  // At most one of the two that touch has a place in line.
  by_address::iterator join(by_address::iterator a, by_address::iterator b) noexcept {
    free_.erase({a->second.bytes, a->first});
    free_.erase({b->second.bytes, b->first});
    a->second.bytes += b->second.bytes;
    blocks_.erase(b);
    return a;
  }

  by_address blocks_;  // all of them
  by_size free_;
};

}  // namespace lev
