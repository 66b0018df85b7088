// Data whose addresses depend on data: linked lists, a chained hash table and a B+ tree, all large,
// in an order that no prefetcher knows. And the steps that every contestant does with them.
#pragma once

#include "big_array.hpp"

#include <cstddef>
#include <cstdint>

namespace bench {

// mix() is a bijection of 64-bit numbers (the finalizer of MurmurHash3).
inline std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

// Lists of `length` nodes each, one node a line, scattered over one array.
struct alignas(64) list_node {
  const list_node* next;
  std::uint64_t value;
  std::uint64_t rest[6];
};

class scattered_lists {
 public:
  scattered_lists(std::size_t list_count, std::size_t length, pages size);

  const list_node* head(std::size_t list) const noexcept { return at(list * length_); }
  std::size_t count() const noexcept { return count_; }
  std::size_t length() const noexcept { return length_; }

 private:
  list_node* at(std::size_t position) const noexcept;

  std::size_t count_;
  std::size_t length_;
  big_array<list_node> nodes_;
};

// A hash table with chains: 8 bytes of head and 24 bytes of node per key, as many heads as keys. A
// key that is there costs 2.5 dependent accesses on average.
struct hash_node {
  std::uint64_t key;
  std::uint64_t value;
  const hash_node* next;
};

class hash_table {
 public:
  // `key_count` is a power of two; the table then has 32 bytes for each.
  explicit hash_table(std::size_t key_count);

  std::size_t key_count() const noexcept { return nodes_.size(); }
  std::size_t bytes() const noexcept { return 32 * key_count(); }

  // probe_key() is the key that the i-th probe looks for: one that is there, at random.
  std::uint64_t probe_key(std::size_t i) const noexcept {
    return key_of(mix(i) & (nodes_.size() - 1));
  }
  const hash_node* const* head(std::uint64_t key) const noexcept {
    return heads_.data() + (mix(key) & (nodes_.size() - 1));
  }

 private:
  static std::uint64_t key_of(std::size_t index) noexcept { return index * 0x9e3779b97f4a7c15u; }

  big_array<const hash_node*> heads_;
  big_array<hash_node> nodes_;
};

// A B+ tree of 16 children per node, 256 bytes each; keys are the even numbers.
struct alignas(64) tree_node {
  std::uint64_t keys[16];   // of an inner node, keys[c] is the least key below children[c]
  std::uint64_t links[16];  // children, as indices; in a leaf the values
};

class search_tree {
 public:
  // All levels full: 16^levels keys, or fewer: `top_count` children of the root.
  search_tree(unsigned levels, std::size_t top_count);

  const tree_node* root() const noexcept { return nodes_.data(); }
  const tree_node* node(std::uint64_t index) const noexcept { return nodes_.data() + index; }
  unsigned levels() const noexcept { return levels_; }
  std::size_t bytes() const noexcept { return nodes_.bytes(); }
  std::uint64_t probe_key(std::size_t i) const noexcept { return mix(i) % key_count_ * 2; }

  // place_of() is the last entry of a node that is not above `key`. Without branches, however it is
  // inlined: they could not be predicted.
  static unsigned place_of(const tree_node* node, std::uint64_t key) noexcept {
    unsigned place = 0;
    for (unsigned step = 8; step != 0; step /= 2) {
      const unsigned is_below = node->keys[place + step] <= key;
      place += step & (0u - is_below);
    }
    return place;
  }

 private:
  unsigned levels_;
  std::size_t key_count_;
  big_array<tree_node> nodes_;
};

}  // namespace bench
