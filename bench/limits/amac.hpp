// The limit of hiding memory latency in software: asynchronous memory access chaining (Kocberber,
// Falsafi, Grot, VLDB 2015), written by hand for each kind of data. `width` items are in flight,
// each a few words of state in an array; a turn takes one item one access further.
#pragma once

#include "chased.hpp"

#include <cstddef>
#include <cstdint>

namespace bench {

inline constexpr unsigned amac_width_max = 64;

// The number of nodes of each list [begin, end), and the sum of their values.
struct ranks {
  std::uint64_t nodes = 0;
  std::uint64_t sum = 0;
  bool operator==(const ranks&) const = default;
};
ranks amac_rank(const scattered_lists& lists, std::size_t begin, std::size_t end, unsigned width);

// The sum of the values of probes [begin, end).
std::uint64_t amac_probe(const hash_table& table, std::size_t begin, std::size_t end,
                         unsigned width);
std::uint64_t amac_find(const search_tree& tree, std::size_t begin, std::size_t end,
                        unsigned width);

}  // namespace bench
