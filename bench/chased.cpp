// Building of the data that is chased; see chased.hpp.
#include "chased.hpp"

namespace bench {
namespace {

std::size_t nodes_of(unsigned levels, std::size_t top_count) noexcept {
  std::size_t count = 1;
  std::size_t of_level = top_count;
  for (unsigned level = 1; level < levels; ++level, of_level *= 16) count += of_level;
  return count;
}

std::size_t keys_of(unsigned levels, std::size_t top_count) noexcept {
  std::size_t count = top_count;
  for (unsigned level = 1; level < levels; ++level) count *= 16;
  return count;
}

}  // namespace

scattered_lists::scattered_lists(std::size_t list_count, std::size_t length, pages size)
    : count_(list_count), length_(length), nodes_(list_count * length, size) {
  for (std::size_t position = 0; position < nodes_.size(); ++position) {
    const bool is_last = position % length == length - 1;
    list_node* const node = at(position);
    node->next = is_last ? nullptr : at(position + 1);
    node->value = mix(position);
  }
}

list_node* scattered_lists::at(std::size_t position) const noexcept {
  return nodes_.data() + scatter(position, nodes_.size());
}

hash_table::hash_table(std::size_t key_count) : heads_(key_count), nodes_(key_count) {
  for (std::size_t index = 0; index < key_count; ++index) {
    hash_node& node = nodes_[scatter(index, key_count)];
    const std::uint64_t key = key_of(index);
    const hash_node*& first = heads_[mix(key) & (key_count - 1)];
    node = {key, mix(index), first};
    first = &node;
  }
}

search_tree::search_tree(unsigned levels, std::size_t top_count)
    : levels_(levels), key_count_(keys_of(levels, top_count)), nodes_(nodes_of(levels, top_count)) {
  // Level by level from the root. A node's place within its level is scattered where the level is
  // a power of two, so that neighbours in order are none in memory.
  std::size_t level_start = 0, level_count = 1;
  for (unsigned level = 0; level < levels; ++level) {
    const std::size_t fanout = level == 0 ? top_count : 16;
    const std::size_t next_start = level_start + level_count, next_count = level_count * fanout;
    const std::size_t keys_below = key_count_ / next_count;
    for (std::size_t order = 0; order < level_count; ++order) {
      tree_node& node = nodes_[level_start + scatter(order, level_count)];
      for (std::size_t c = 0; c < 16; ++c) {
        const std::size_t child = order * fanout + c;
        node.keys[c] = c < fanout ? child * keys_below * 2 : ~std::uint64_t{0};
        if (c >= fanout) continue;
        const bool is_leaf = level + 1 == levels;
        node.links[c] = is_leaf ? mix(child) : next_start + scatter(child, next_count);
      }
    }
    level_start = next_start;
    level_count = next_count;
  }
}

}  // namespace bench
