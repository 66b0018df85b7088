// dependants: which tasks wait for which. Every edge is a node in a bounded pool, linked into its
// predecessor's list; the completer takes the whole list at once.
//
// A predecessor's list head carries its generation, so a late submitter cannot hang an edge on the
// slot's next task.
#ifndef LEVERET_FLOW_DEPENDANTS_HPP
#define LEVERET_FLOW_DEPENDANTS_HPP

#include "queue/index_ring.hpp"
#include "task/slot.hpp"

namespace lev {

class dependants {
 public:
  // An array of `count` nodes (a power of two) and the cells of its free list; they outlive this.
  void open(dependant* nodes, index_ring<>::cell* cells, std::uint32_t count) noexcept {
    nodes_ = nodes;
    free_.open(cells, count);
    for (std::uint32_t i = 0; i < count; ++i) free_.try_push(i);
  }

  std::uint32_t free_count() const noexcept { return free_.size(); }

  enum class add_result { added, late, no_node };

  // add() makes `successor` wait for the task in `predecessor`. late: that task was completed
  // meanwhile, and its completer may have missed this edge (and those of other late submitters):
  // the caller must take() the list and serve it as the completer.
  add_result add(slot& predecessor, slot_extra& extra, std::uint32_t generation,
                 std::uint32_t successor) noexcept {
    std::uint32_t node = 0;
    if (!free_.try_pop(&node)) return add_result::no_node;
    nodes_[node].slot = successor;
    const std::uint64_t mine = std::uint64_t{generation} << 32 | (node + 1);
    std::uint64_t head = extra.dependants.load(memory_order_relaxed);
    do {
      nodes_[node].next = head >> 32 == generation ? static_cast<std::uint32_t>(head) : 0;
      // Pairs with take(): publishes the node.
    } while (!extra.dependants.compare_exchange_strong(head, mine, memory_order_acq_rel,
                                                       memory_order_relaxed));
    return predecessor.state.announce(generation, state_bits::depended_on) ? add_result::added
                                                                           : add_result::late;
  }

  // take() is the completer's: the first node + 1 of the list, 0 if empty. Walk it with node().
  std::uint32_t take(slot_extra& extra, std::uint32_t generation) noexcept {
    std::uint64_t head = extra.dependants.load(memory_order_relaxed);
    do {
      if (head >> 32 != generation) return 0;
      // Pairs with add().
    } while (!extra.dependants.compare_exchange_strong(head, std::uint64_t{generation} << 32,
                                                       memory_order_acq_rel, memory_order_relaxed));
    return static_cast<std::uint32_t>(head);
  }
  // join() appends list `b` to list `a`, both taken, and returns the whole.
  std::uint32_t join(std::uint32_t a, std::uint32_t b) noexcept {
    if (a == 0) return b;
    std::uint32_t last = a;
    while (nodes_[last - 1].next != 0) last = nodes_[last - 1].next;
    nodes_[last - 1].next = b;
    return a;
  }
  const dependant& node(std::uint32_t node_plus_1) const noexcept {
    return nodes_[node_plus_1 - 1];
  }
  void give(std::uint32_t node_plus_1) noexcept {
    while (!free_.try_push(node_plus_1 - 1)) real_env::pause();
  }

 private:
  dependant* nodes_ = nullptr;
  index_ring<> free_;
};

}  // namespace lev

#endif
