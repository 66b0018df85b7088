// The common parts of the benches of latency hiding: the three kinds of items, written once and
// compiled for each way to run them, and the measuring of many ways side by side.
#pragma once

#include "chased.hpp"
#include "limits/amac.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/interleave.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace bench {

template <class Strand>
inline void rank_list(const scattered_lists& lists, std::size_t list, Strand& s, ranks& total) {
  ranks own;
  for (const list_node* node = lists.head(list); node != nullptr;) {
    s.fetch(node);
    ++own.nodes;
    own.sum += node->value;
    node = node->next;
  }
  total.nodes += own.nodes;
  total.sum += own.sum;
}

template <class Strand>
inline std::uint64_t probe(const hash_table& table, std::uint64_t key, Strand& s) {
  for (const hash_node* node = *s.fetch(table.head(key)); node != nullptr; node = node->next) {
    s.fetch(node);
    if (node->key == key) return node->value;
  }
  return 0;
}

template <class Strand>
inline std::uint64_t find(const search_tree& tree, std::uint64_t key, Strand& s) {
  const tree_node* node = tree.root();
  for (unsigned level = 1; level < tree.levels(); ++level) {
    node = s.fetch(tree.node(node->links[search_tree::place_of(node, key)]));
  }
  return node->links[search_tree::place_of(node, key)];
}

// A contestant: runs items [begin, end), and returns an answer that all must agree on. The answers
// of parts add up to that of the whole.
using runner = std::function<std::uint64_t(std::size_t begin, std::size_t end)>;

// How many items in flight is best depends on the CPU: each contestant has its best of these.
inline constexpr unsigned widths[] = {16, 24, 32, 48};
inline constexpr std::size_t width_count = sizeof widths / sizeof *widths;

// with_widths() adds a runner for each width.
template <class Make>
void with_widths(std::vector<runner>& runners, Make&& make) {
  for (const unsigned n : widths) runners.push_back(make(n));
}

// A contestant's best: its times, and its number of items in flight.
struct best_width {
  const samples& ns;
  unsigned width;
};

// best_from() looks for it among the runners of all widths, from `first` on.
inline best_width best_from(const std::vector<samples>& ns, std::size_t first) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < width_count; ++i) {
    if (median(ns[first + i]) < median(ns[first + best])) best = i;
  }
  return {ns[first + best], widths[best]};
}

// middle() is the mean of the middle half of the values: one that lost its core does not count.
inline double middle(samples values) {
  std::sort(values.begin(), values.end());
  const std::size_t quarter = values.size() / 4;
  double sum = 0;
  for (std::size_t i = quarter; i < values.size() - quarter; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * quarter);
}

// lead_in() lets a runner run for 2 ms before it is measured: after a runner that waits for each
// access, the first milliseconds of the next one are slower (16 to 20 ns a node in place of 13).
inline void lead_in(const runner& run, std::size_t begin, std::size_t piece_items) {
  constexpr std::uint64_t lead_ns = 2'000'000;
  const std::uint64_t end_ns = now_ns() + lead_ns;
  for (unsigned piece = 0; piece < 8 && now_ns() < end_ns; ++piece) {
    keep(run(begin + piece * piece_items, begin + (piece + 1) * piece_items));
  }
}

// item_ns() measures the runners side by side, each round on other items, `items` of them, and
// checks that all have the same answer. Result: ns per item, by runner and round.
//
// In each turn of a round every runner does a part of the items, each a different one. What happens
// to the machine meanwhile happens to all of them, and no runner finds in a cache what the one
// before has left there.
inline std::vector<samples> item_ns(int rounds, std::size_t items, std::size_t items_there,
                                    const std::vector<runner>& runners) {
  constexpr std::size_t parts = 32;
  const std::size_t part_items = items / parts;
  std::vector<samples> ns(runners.size());
  for (int round = 0; round <= rounds; ++round) {
    wait_until_quiet();
    const std::size_t begin = static_cast<std::size_t>(round) * items % (items_there - items + 1);
    std::vector<samples> part_ns(runners.size());
    std::vector<std::uint64_t> answers(runners.size());
    for (std::size_t turn = 0; turn < parts; ++turn) {
      for (std::size_t r = 0; r < runners.size(); ++r) {
        const std::size_t part = (turn + r * parts / runners.size()) % parts;
        const std::size_t first = begin + part * part_items;
        lead_in(runners[r], begin + (part + parts / 2) % parts * part_items, part_items / 8);
        const std::uint64_t start_ns = now_ns();
        answers[r] += runners[r](first, first + part_items);
        part_ns[r].push_back(static_cast<double>(now_ns() - start_ns));
      }
    }
    for (std::size_t r = 0; r < runners.size(); ++r) {
      check(answers[r] == answers[0], "an answer differs from the naive one");
      // The first round touches everything for the first time, and does not count.
      if (round > 0) ns[r].push_back(middle(part_ns[r]) / static_cast<double>(part_items));
    }
  }
  return ns;
}

}  // namespace bench
