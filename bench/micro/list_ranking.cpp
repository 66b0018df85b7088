// list-ranking: the lengths of random linked lists in 1 GiB, in huge and in small pages: one list
// after another, many at a time by interleave() with stacks, by coroutines, and by hand. And what
// it costs to fetch three calls deep, 16 at a time.
#include "micro/latency.hpp"

#include <leveret/interleave_flat.hpp>

namespace bench {
namespace {

constexpr figure_spec over_naive_huge{"over_naive_huge", "ratio", ">= 8"};
constexpr figure_spec over_naive_4k{"over_naive_4k", "ratio", ">= 6"};
constexpr figure_spec over_amac{"over_amac", "ratio", ">= 0.92"};
constexpr figure_spec strands_over_amac{"strands_over_amac", "ratio", ""};
constexpr figure_spec deep3_over_flat{"deep3_over_flat", "ratio", ">= 0.9"};
constexpr figure_spec naive_ns{"naive_ns", "ns", ""};
constexpr figure_spec strands_ns{"interleaved_ns", "ns", ""};
constexpr figure_spec amac_ns{"amac_ns", "ns", ""};

constexpr unsigned width = 16;
constexpr std::size_t list_length = 1024;

std::uint64_t answer_of(const ranks& total) {
  return total.nodes * 31 + total.sum;
}

template <class Item>
runner interleaved(unsigned n, Item item) {
  return [n, item](std::size_t begin, std::size_t end) {
    ranks total;
    lev::interleave(n, end - begin, [&](std::size_t i, auto& s) { item(begin + i, s, total); });
    return answer_of(total);
  };
}

runner by_strands(const scattered_lists& lists, unsigned n) {
  return interleaved(
      n, [&lists](std::size_t list, auto& s, ranks& total) { rank_list(lists, list, s, total); });
}

runner by_hand(const scattered_lists& lists, unsigned n) {
  return [&lists, n](std::size_t begin, std::size_t end) {
    return answer_of(amac_rank(lists, begin, end, n));
  };
}

lev::flat rank_flat(const scattered_lists& lists, lev::items& left, std::size_t first,
                    ranks& total) {
  for (const std::size_t i : left) {
    ranks own;
    for (const list_node* node = lists.head(first + i); node != nullptr; node = node->next) {
      co_await lev::fetch(node);
      ++own.nodes;
      own.sum += node->value;
    }
    total.nodes += own.nodes;
    total.sum += own.sum;
  }
}

runner by_coroutines(const scattered_lists& lists, unsigned n) {
  return [&lists, n](std::size_t begin, std::size_t end) {
    ranks total;
    lev::interleave_flat(n, end - begin,
                         [&](lev::items& left) { return rank_flat(lists, left, begin, total); });
    return answer_of(total);
  };
}

// The same walk with each node read three calls below the loop.
[[gnu::noinline]] const list_node* step_1(const list_node* node, lev::strand& s, ranks& own) {
  s.fetch(node);
  ++own.nodes;
  return node;
}
[[gnu::noinline]] const list_node* step_2(const list_node* node, lev::strand& s, ranks& own) {
  const list_node* const fetched = step_1(node, s, own);
  own.sum += fetched->value;
  return fetched;
}
[[gnu::noinline]] const list_node* step_3(const list_node* node, lev::strand& s, ranks& own) {
  const list_node* const next = step_2(node, s, own)->next;
  keep(own.nodes);
  return next;
}

runner three_deep(const scattered_lists& lists) {
  return [&lists](std::size_t begin, std::size_t end) {
    ranks total;
    lev::interleave(width, end - begin, [&](std::size_t i, lev::strand& s) {
      ranks own;
      const list_node* node = lists.head(begin + i);
      while (node != nullptr) node = step_3(node, s, own);
      total.nodes += own.nodes;
      total.sum += own.sum;
    });
    return answer_of(total);
  };
}

struct sizes {
  explicit sizes(const settings& how)
      : list_count(std::size_t{1} << (how.quick ? 10 : 14)), per_round(list_count / 4) {}
  std::size_t list_count;
  std::size_t per_round;
};

constexpr double per_node = 1.0 / list_length;

void rank_in_huge_pages(const settings& how, const sizes& size, report& figures) {
  const scattered_lists lists(size.list_count, list_length, pages::huge);
  std::vector<runner> runners = {by_strands(lists, 1)};
  with_widths(runners, [&](unsigned n) { return by_strands(lists, n); });
  with_widths(runners, [&](unsigned n) { return by_hand(lists, n); });
  with_widths(runners, [&](unsigned n) { return by_coroutines(lists, n); });
  const auto ns = item_ns(how.rounds(), size.per_round, size.list_count, runners);
  const best_width stacks = best_from(ns, 1), hand = best_from(ns, 1 + width_count),
                   flat = best_from(ns, 1 + 2 * width_count);
  figures.add(
      over_naive_huge, ratio(ns[0], stacks.ns),
      text("naive: %.0f ns a node; stacks, n = %u: %.1f; n = 16: %.1f", median(ns[0]) * per_node,
           stacks.width, median(stacks.ns) * per_node, median(ns[1]) * per_node));
  figures.add(over_amac, ratio(hand.ns, flat.ns),
              text("coroutines, n = %u: %.1f, by hand, n = %u: %.1f ns a node", flat.width,
                   median(flat.ns) * per_node, hand.width, median(hand.ns) * per_node));
  figures.add(strands_over_amac, ratio(hand.ns, stacks.ns));
  figures.add(naive_ns, scale(ns[0], per_node));
  figures.add(strands_ns, scale(stacks.ns, per_node));
  figures.add(amac_ns, scale(hand.ns, per_node));
}

void rank_in_small_pages(const settings& how, const sizes& size, report& figures) {
  const scattered_lists lists(size.list_count, list_length, pages::small);
  std::vector<runner> runners = {by_strands(lists, 1)};
  with_widths(runners, [&](unsigned n) { return by_strands(lists, n); });
  const auto ns = item_ns(how.rounds(), size.per_round, size.list_count, runners);
  const best_width stacks = best_from(ns, 1);
  figures.add(over_naive_4k, ratio(ns[0], stacks.ns),
              text("naive: %.0f ns a node; n = %u: %.1f", median(ns[0]) * per_node, stacks.width,
                   median(stacks.ns) * per_node));
}

}  // namespace

void list_ranking(const settings& how, report& figures) {
  const sizes size(how);
  const pinned here(usable_cores()[0]);
  rank_in_huge_pages(how, size, figures);
  rank_in_small_pages(how, size, figures);
}

void nested(const settings& how, report& figures) {
  const sizes size(how);
  const pinned here(usable_cores()[0]);
  const scattered_lists lists(size.list_count, list_length, pages::huge);
  const auto ns = item_ns(how.rounds(), size.per_round, size.list_count,
                          {by_strands(lists, width), three_deep(lists)});
  figures.add(deep3_over_flat, ratio(ns[0], ns[1]),
              text("in the loop itself: %.1f ns a node", median(ns[0]) / list_length));
}

}  // namespace bench
