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

void measure_large(const settings& how, report& figures) {
  const hash_table table(std::size_t{1} << (how.quick ? 22 : 25));
  std::vector<runner> runners = {interleaved(table, 1)};
  with_widths(runners, [&](unsigned n) { return interleaved(table, n); });
  with_widths(runners, [&](unsigned n) { return by_hand(table, n); });
  with_widths(runners, [&](unsigned n) { return by_coroutines(table, n); });
  const std::size_t items = how.scaled(2'000'000);
  const auto ns = item_ns(how.rounds(), items, 100 * items, runners);
  const best_width stacks = best_from(ns, 1), hand = best_from(ns, 1 + width_count),
                   ours = best_from(ns, 1 + 2 * width_count);
  figures.add(over_naive, ratio(ns[0], ours.ns),
              text("naive %.1f ns; coroutines, n = %u: %.1f ns", median(ns[0]), ours.width,
                   median(ours.ns)));
  figures.add(over_amac, ratio(hand.ns, ours.ns),
              text("by hand, n = %u: %.1f ns", hand.width, median(hand.ns)));
  figures.add(strands_over_amac, ratio(hand.ns, stacks.ns),
              text("stacks, n = %u: %.1f ns", stacks.width, median(stacks.ns)));
  figures.add(naive_ns, ns[0]);
}

// The worst of all sizes, by medians: the ratio of automatic's time to that of the better way.
void measure_automatic(const settings& how, report& figures) {
  samples worst;
  std::string at = "no size";
  for (unsigned log = 10; log <= (how.quick ? 18u : 26u); ++log) {
    const hash_table table(std::size_t{1} << log);
    std::vector<runner> runners = {interleaved(table, 1)};
    with_widths(runners, [&](unsigned n) { return interleaved(table, n); });
    runners.push_back(interleaved(table, lev::strands_automatic));
    const std::size_t items = how.scaled(1'000'000);
    const auto ns = item_ns(how.rounds(), items, 100 * items, runners);
    const samples& automatic = ns.back();
    const samples& wide = best_from(ns, 1).ns;
    const samples& best = median(wide) < median(ns[0]) ? wide : ns[0];
    const samples ratios = ratio(best, automatic);
    if (!worst.empty() && median(ratios) >= median(worst)) continue;
    worst = ratios;
    at = text("%zu KiB: naive %.1f, best %.1f, automatic %.1f ns", table.bytes() / 1024,
              median(ns[0]), median(best), median(automatic));
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
