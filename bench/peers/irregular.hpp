// Three programs whose tasks are small and of unknown number: queens on a board, quicksort, and the
// size of an unbalanced tree (UTS: Olivier, Huan, Liu, Prins, Dinan, Sadayappan, Tseng, LCPC 2006;
// its binomial tree, with mix() in place of SHA-1). Every contestant runs these, compiled alike; it
// brings `Fork`, which has
//
//   template <auto body, class Node> static void all(Node* nodes, std::size_t count);
//
// that calls body(nodes[i]) for each as tasks, the last one in place, and returns when all are
// done.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "chased.hpp"
#include "timing.hpp"

namespace bench {

// The ways to go on from a position: columns and diagonals that are attacked in the next row.
struct queens_node {
  std::uint32_t columns, left, right;
  std::uint32_t rows_left;
  std::uint32_t board;  // a bit for each column
  std::uint64_t solutions;
};

struct sort_node {
  std::uint64_t* begin;
  std::uint64_t* end;
};

struct tree_branch {
  std::uint64_t seed;
  std::uint64_t nodes;
};

template <class Fork>
class irregular {
 public:
  static std::uint64_t queens(unsigned size) {
    queens_node root{0, 0, 0, size, (1u << size) - 1, 0};
    place_queens(root);
    return root.solutions;
  }

  static void sort(std::uint64_t* data, std::size_t count) {
    sort_node all{data, data + count};
    sort_part(all);
  }

  // A root with `branches` children; below it one in eight, nearly, has eight more.
  static std::uint64_t tree(unsigned branches, std::uint64_t seed) {
    std::vector<tree_branch> children(branches);
    for (std::size_t i = 0; i < children.size(); ++i) children[i].seed = mix(seed + i);
    Fork::template all<&irregular::grow>(children.data(), children.size());
    std::uint64_t nodes = 1;
    for (const tree_branch& child : children) nodes += child.nodes;
    return nodes;
  }

 private:
  static constexpr std::uint32_t serial_rows = 6;
  static constexpr std::ptrdiff_t serial_sort = 2048;
  static constexpr unsigned tree_fan = 8;
  static constexpr std::uint64_t node_steps = 100;  // some 0.1 us, as SHA-1 of a node takes
  // 0.98 children for each node: a branch has 50 nodes on average, and some have thousands.
  static constexpr std::uint64_t tree_odds = static_cast<std::uint64_t>(0x1p64 * (0.98 / tree_fan));

  static std::uint64_t count_queens(const queens_node& at) {
    if (at.rows_left == 0) return 1;
    std::uint64_t solutions = 0;
    for (std::uint32_t free = free_of(at); free != 0; free &= free - 1)
      solutions += count_queens(with_queen(at, free & -free));
    return solutions;
  }
  static std::uint32_t free_of(const queens_node& at) {
    return at.board & ~(at.columns | at.left | at.right);
  }
  static queens_node with_queen(const queens_node& at, std::uint32_t column) {
    return {at.columns | column,
            (at.left | column) << 1,
            (at.right | column) >> 1,
            at.rows_left - 1,
            at.board,
            0};
  }
  static void place_queens(queens_node& at) {
    if (at.rows_left <= serial_rows) {
      at.solutions = count_queens(at);
      return;
    }
    queens_node children[32];
    std::size_t count = 0;
    for (std::uint32_t free = free_of(at); free != 0; free &= free - 1)
      children[count++] = with_queen(at, free & -free);
    if (count != 0) Fork::template all<&irregular::place_queens>(children, count);
    for (std::size_t i = 0; i < count; ++i) at.solutions += children[i].solutions;
  }

  static void sort_part(sort_node& part) {
    if (part.end - part.begin <= serial_sort) {
      std::sort(part.begin, part.end);
      return;
    }
    std::uint64_t* const middle = part.begin + (part.end - part.begin) / 2;
    // The median of three goes to the front, as a sentinel.
    if (*middle < *part.begin) std::swap(*middle, *part.begin);
    if (part.end[-1] < *part.begin) std::swap(part.end[-1], *part.begin);
    if (part.end[-1] < *middle) std::swap(part.end[-1], *middle);
    const std::uint64_t pivot = *middle;
    std::uint64_t* const low_end =
        std::partition(part.begin, part.end, [=](std::uint64_t x) { return x < pivot; });
    std::uint64_t* const high =
        std::partition(low_end, part.end, [=](std::uint64_t x) { return x == pivot; });
    sort_node parts[] = {{part.begin, low_end}, {high, part.end}};
    Fork::template all<&irregular::sort_part>(parts, 2);
  }

  static void grow(tree_branch& branch) {
    branch.nodes = 1;
    keep(chain(branch.seed, node_steps));
    if (branch.seed >= tree_odds) return;
    tree_branch children[tree_fan];
    for (unsigned i = 0; i < tree_fan; ++i) children[i].seed = mix(branch.seed + i + 1);
    Fork::template all<&irregular::grow>(children, tree_fan);
    for (const tree_branch& child : children) branch.nodes += child.nodes;
  }
};

// The same without tasks: the right answers, and the time to compare with.
struct serial_fork {
  template <auto body, class Node>
  static void all(Node* nodes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) body(nodes[i]);
  }
};

// The three of one contestant.
struct irregular_programs {
  std::uint64_t (*queens)(unsigned size);
  void (*sort)(std::uint64_t* data, std::size_t count);
  std::uint64_t (*tree)(unsigned branches, std::uint64_t seed);
};

template <class Fork>
constexpr irregular_programs irregular_of() {
  return {&irregular<Fork>::queens, &irregular<Fork>::sort, &irregular<Fork>::tree};
}

}  // namespace bench
