// hash-probe: look-ups in a chained hash table: one after another (where the core overlaps
// neighbours by itself), interleaved with stacks and by coroutines, by hand; and the automatic
// choice for tables of any size.
#include "micro/latency.hpp"

#include <leveret/interleave_flat.hpp>

#include <algorithm>

namespace bench {
namespace {

constexpr figure_spec over_naive{"over_naive", "ratio", ">= 1.4"};
constexpr figure_spec over_amac{"over_amac", "ratio", ">= 0.9"};
constexpr figure_spec strands_over_amac{"strands_over_amac", "ratio", ""};
constexpr figure_spec auto_worst{"auto_worst", "ratio", ">= 0.97"};
constexpr figure_spec naive_ns{"naive_ns", "ns", ""};

constexpr unsigned widths[] = {16, 24, 32};
constexpr unsigned fixed_widths[] = {16, 24, 32, 48};  // beside automatic

std::uint64_t probes(const hash_table& table, unsigned n, std::size_t begin, std::size_t end) {
  std::uint64_t sum = 0;
  lev::interleave(n, end - begin, [&, begin](std::size_t i, auto& s) {
    sum += probe(table, table.probe_key(begin + i), s);
  });
  return sum;
}

runner interleaved(const hash_table& table, unsigned n) {
  return [&table, n](std::size_t begin, std::size_t end) { return probes(table, n, begin, end); };
}

lev::flat probe_flat(const hash_table& table, lev::items& left, std::size_t first,
                     std::uint64_t& sum) {
  for (const std::size_t i : left) {
    const std::uint64_t key = table.probe_key(first + i);
    const hash_node* const* const head = table.head(key);
    co_await lev::fetch(head);
    for (const hash_node* node = *head; node != nullptr; node = node->next) {
      co_await lev::fetch(node);
      if (node->key != key) continue;
      sum += node->value;
      break;
    }
  }
}

runner by_coroutines(const hash_table& table, unsigned n) {
  return [&table, n](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    lev::interleave_flat(n, end - begin,
                         [&](lev::items& left) { return probe_flat(table, left, begin, sum); });
    return sum;
  };
}

runner by_hand(const hash_table& table, unsigned n) {
  return
      [&table, n](std::size_t begin, std::size_t end) { return amac_probe(table, begin, end, n); };
}

std::size_t fastest(const std::vector<samples>& ns, std::size_t first, std::size_t last) {
  std::size_t best = first;
  for (std::size_t i = first; i < last; ++i) {
    if (median(ns[i]) < median(ns[best])) best = i;
  }
  return best;
}

void measure_large(const settings& how, report& figures) {
  const hash_table table(std::size_t{1} << (how.quick ? 22 : 25));
  std::vector<runner> runners = {interleaved(table, 1)};
  for (const unsigned n : widths) runners.push_back(interleaved(table, n));
  for (const unsigned n : widths) runners.push_back(by_hand(table, n));
  for (const unsigned n : widths) runners.push_back(by_coroutines(table, n));
  const std::size_t items = how.scaled(2'000'000);
  const auto ns = item_ns(how.rounds(), items, 100 * items, runners);
  const std::size_t stacks = fastest(ns, 1, 4), hand = fastest(ns, 4, 7), ours = fastest(ns, 7, 10);
  figures.add(over_naive, ratio(ns[0], ns[ours]),
              text("naive %.1f ns; coroutines, n = %u of 16, 24, 32: %.1f ns", median(ns[0]),
                   widths[ours - 7], median(ns[ours])));
  figures.add(over_amac, ratio(ns[hand], ns[ours]),
              text("by hand, n = %u: %.1f ns", widths[hand - 4], median(ns[hand])));
  figures.add(strands_over_amac, ratio(ns[hand], ns[stacks]),
              text("stacks, n = %u: %.1f ns", widths[stacks - 1], median(ns[stacks])));
  figures.add(naive_ns, ns[0]);
}

// The worst of all sizes, by medians: the ratio of automatic's time to that of the better way.
void measure_automatic(const settings& how, report& figures) {
  samples worst;
  std::string at = "no size";
  for (unsigned log = 10; log <= (how.quick ? 18u : 26u); ++log) {
    const hash_table table(std::size_t{1} << log);
    std::vector<runner> runners = {interleaved(table, 1)};
    for (const unsigned n : fixed_widths) runners.push_back(interleaved(table, n));
    runners.push_back(interleaved(table, lev::strands_automatic));
    const std::size_t items = how.scaled(1'000'000);
    const auto ns = item_ns(how.rounds(), items, 100 * items, runners);
    const std::size_t automatic = ns.size() - 1;
    const std::size_t best = fastest(ns, 0, automatic);
    const samples ratios = ratio(ns[best], ns[automatic]);
    if (!worst.empty() && median(ratios) >= median(worst)) continue;
    worst = ratios;
    at = text("%zu KiB: naive %.1f, best %.1f, automatic %.1f ns", table.bytes() / 1024,
              median(ns[0]), median(ns[best]), median(ns[automatic]));
  }
  figures.add(auto_worst, worst, at);
}

}  // namespace

void hash_probe(const settings& how, report& figures) {
  const pinned here(usable_cores()[0]);
  measure_large(how, figures);
  measure_automatic(how, figures);
}

}  // namespace bench
