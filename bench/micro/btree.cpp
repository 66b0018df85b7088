// btree: look-ups in a B+ tree of about 1 GiB: one after another, many at a time by interleave()
// with stacks, by coroutines, and by hand.
#include "micro/latency.hpp"

#include <leveret/interleave_flat.hpp>

namespace bench {
namespace {

constexpr figure_spec over_naive{"over_naive", "ratio", ">= 3.2"};
constexpr figure_spec over_amac{"over_amac", "ratio", ">= 0.92"};
constexpr figure_spec strands_over_amac{"strands_over_amac", "ratio", ""};
constexpr figure_spec naive_ns{"naive_ns", "ns", ""};

runner interleaved(const search_tree& tree, unsigned n) {
  return [&tree, n](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    lev::interleave(n, end - begin, [&, begin](std::size_t i, auto& s) {
      sum += find(tree, tree.probe_key(begin + i), s);
    });
    return sum;
  };
}

lev::flat find_flat(const search_tree& tree, lev::items& left, std::size_t first,
                    std::uint64_t& sum) {
  for (const std::size_t i : left) {
    const std::uint64_t key = tree.probe_key(first + i);
    const tree_node* node = tree.root();
    for (unsigned level = 1; level < tree.levels(); ++level) {
      node = tree.node(node->links[search_tree::place_of(node, key)]);
      co_await lev::fetch(node);
    }
    sum += node->links[search_tree::place_of(node, key)];
  }
}

runner by_coroutines(const search_tree& tree, unsigned n) {
  return [&tree, n](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    lev::interleave_flat(n, end - begin,
                         [&](lev::items& left) { return find_flat(tree, left, begin, sum); });
    return sum;
  };
}

runner by_hand(const search_tree& tree, unsigned n) {
  return [&tree, n](std::size_t begin, std::size_t end) { return amac_find(tree, begin, end, n); };
}

}  // namespace

void btree(const settings& how, report& figures) {
  const pinned here(usable_cores()[0]);
  const search_tree tree(how.quick ? 5 : 7, how.quick ? 8 : 4);
  std::vector<runner> runners = {interleaved(tree, 1)};
  with_widths(runners, [&](unsigned n) { return interleaved(tree, n); });
  with_widths(runners, [&](unsigned n) { return by_hand(tree, n); });
  with_widths(runners, [&](unsigned n) { return by_coroutines(tree, n); });
  const std::size_t items = how.scaled(1'000'000);
  const auto ns = item_ns(how.rounds(), items, 100 * items, runners);
  const best_width stacks = best_from(ns, 1), hand = best_from(ns, 1 + width_count),
                   ours = best_from(ns, 1 + 2 * width_count);
  figures.add(over_naive, ratio(ns[0], ours.ns),
              text("naive %.0f ns; coroutines, n = %u: %.0f ns; tree of %zu MiB", median(ns[0]),
                   ours.width, median(ours.ns), tree.bytes() >> 20));
  figures.add(over_amac, ratio(hand.ns, ours.ns),
              text("by hand, n = %u: %.0f ns", hand.width, median(hand.ns)));
  figures.add(strands_over_amac, ratio(hand.ns, stacks.ns),
              text("stacks, n = %u: %.0f ns", stacks.width, median(stacks.ns)));
  figures.add(naive_ns, ns[0]);
}

}  // namespace bench
