// dependants: which tasks wait for which. Every edge is a node in a bounded pool, of which each
// participant keeps a few, linked into its predecessor's list; the completer takes the whole list
// at once.
//
//   submitter                               completer
//   reserves its nodes                      sees `depended_on` in the state word
//   locks the list                          takes the flag down
//   announces `depended_on`: too late?      locks the list, takes all of it, unlocks
//     then the node stays its own           finishes; a flag that is up again fails that
//   links the node, unlocks
//
// The announcement names the generation, and only a live task of that generation accepts it. So no
// edge can hang on the slot's next task, and a list is empty when its task is complete.
#pragma once

#include "base/assert.hpp"
#include "flow/index_pool.hpp"
#include "sync/spin_lock.hpp"
#include "task/slot.hpp"

#include <utility>

namespace lev {

class dependants {
 public:
  // An array of `count` nodes (a power of two) and the cells of its free list; they outlive this.
  void open(dependant* nodes, index_ring<>::cell* cells, std::uint32_t count) noexcept {
    nodes_ = nodes;
    count_ = count;
    free_.open(cells, count, 0, count);
  }

  // reserve() takes `count` nodes, for a submit that is not visible yet; returns how many it got.
  // If fewer, the caller gives them back.
  std::uint32_t reserve(index_cache& cache, std::uint32_t* nodes, std::uint32_t count) noexcept {
    return free_.take_some(cache, nodes, count);
  }
  std::uint32_t count() const noexcept { return count_; }
  std::uint32_t free_count() const noexcept { return free_.size(); }
  // has() is the last look of a sleeper that wants `count` nodes, its own ones among them.
  bool has(const index_cache& own, std::uint32_t count) const noexcept {
    const std::uint32_t there = own.count();
    return count <= there || (!free_.looks_empty() && free_.size() >= count - there);
  }
  // give() and flush() return whether nodes went back to where others see them.
  bool give(index_cache& cache, std::uint32_t node) noexcept {
    LEV_DCHECK(node < count_);
    return free_.give(cache, node);
  }
  bool flush(index_cache& cache) noexcept { return free_.flush(cache); }

  // add() makes `successor` wait for the task in `predecessor`, by a node of the caller's. False:
  // that task is complete, or gone, and the node is still the caller's.
  bool add(slot& predecessor, slot_extra& extra, std::uint32_t generation, std::uint32_t node,
           std::uint32_t successor) noexcept {
    LEV_DCHECK(node < count_ && successor != no_slot);
    const spin_guard<> held(extra.telling);
    const bool is_in_time = predecessor.state.announce(generation, state_bits::depended_on);
    if (is_in_time) {
      nodes_[node].slot = successor;
      nodes_[node].next = extra.dependants;
      extra.dependants = node + 1;
    }
    return is_in_time;
  }

  // take() is the completer's: the first node + 1 of the list, 0 if empty. Walk it with node().
  std::uint32_t take(slot_extra& extra) noexcept {
    const spin_guard<> held(extra.telling);
    const std::uint32_t list = std::exchange(extra.dependants, 0);
    LEV_DCHECK(list <= count_);
    return list;
  }
  // join() appends list `b` to list `a`, both taken, and returns the whole.
  std::uint32_t join(std::uint32_t a, std::uint32_t b) noexcept {
    LEV_DCHECK(a <= count_ && b <= count_ && (a == 0 || a != b));
    if (a == 0) return b;
    std::uint32_t last = a;
    while (nodes_[last - 1].next != 0) last = nodes_[last - 1].next;
    nodes_[last - 1].next = b;
    return a;
  }
  const dependant& node(std::uint32_t node_plus_1) const noexcept {
    LEV_DCHECK(node_plus_1 != 0 && node_plus_1 <= count_);
    return nodes_[node_plus_1 - 1];
  }

 private:
  dependant* nodes_ = nullptr;
  std::uint32_t count_ = 0;
  index_pool free_;
};

}  // namespace lev
