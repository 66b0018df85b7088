// rank-by-tasks: one list through random memory, ranked by one worker whose contexts take turns at
// each cache miss, and by one that waits for each.
//
// Beside them stand the plain walk of the list, which one writes first, and the same algorithm by
// hand: one loop that keeps 16 walks going with prefetches, which one would have to write without
// contexts. All four run on one core.
#include "big_array.hpp"
#include "registry.hpp"
#include "timing.hpp"

#include <leveret/leveret.hpp>
#include <leveret_apps/list_ranking.hpp>

#include <algorithm>
#include <vector>

namespace bench {
namespace {

using leveret_apps::list_node;
using leveret_apps::no_node;

constexpr figure_spec gain{"one_context_over_16", "ratio", ">= 3"};
constexpr figure_spec over_plain{"plain_over_16_contexts", "ratio", ">= 3"};
constexpr figure_spec over_hand{"16_contexts_over_by_hand", "ratio", "<= 1.25"};
constexpr figure_spec automatic_ns{"automatic_ns", "ns", ""};
constexpr figure_spec contexts_1_ns{"contexts_1_ns", "ns", ""};
constexpr figure_spec contexts_16_ns{"contexts_16_ns", "ns", ""};
constexpr figure_spec plain_ns{"plain_ns", "ns", ""};
constexpr figure_spec by_hand_ns{"by_hand_ns", "ns", ""};

struct problem {
  explicit problem(std::size_t count) : nodes(count), ranks(count), expected(count) {
    options.nodes = count;
    leveret_apps::list_make(count, 1, 1, nodes.data(), &head);
    leveret_apps::list_rank_serial(nodes.data(), &head, 1);
    for (std::size_t i = 0; i < count; ++i) expected[i] = nodes[i].place;
  }
  leveret_apps::list_ranking_options options;
  big_array<list_node> nodes;
  big_array<std::uint32_t> ranks;
  big_array<std::uint32_t> expected;
  std::uint32_t head = 0;
};

// Per node, and checks the ranks.
template <class Rank>
double per_node_ns(problem& data, Rank&& rank) {
  std::fill(data.ranks.data(), data.ranks.data() + data.ranks.size(), no_node);
  const std::uint64_t start_ns = now_ns();
  rank();
  const double passed_ns = static_cast<double>(now_ns() - start_ns);
  for (std::size_t i = 0; i < data.ranks.size(); ++i)
    check(data.ranks[i] == data.expected[i], "ranks");
  return passed_ns / static_cast<double>(data.ranks.size());
}

// The plain walk writes ranks where the others do.
void rank_plainly(problem& data) {
  std::uint32_t rank = 0;
  for (std::uint32_t at = data.head; at != no_node; at = data.nodes[at].next)
    data.nodes[at].place = rank++;
  for (std::size_t i = 0; i < data.ranks.size(); ++i) data.ranks[i] = data.nodes[i].place;
}

struct hand_sublist {
  std::uint32_t first, length, following;
};

std::vector<hand_sublist> cut_by_hand(problem& data) {
  for (std::size_t i = 0; i < data.nodes.size(); ++i) data.nodes[i].sublist = no_node;
  std::vector<hand_sublist> sublists{{data.head, 0, no_node}};
  data.nodes[data.head].sublist = 0;
  const std::size_t cuts = data.options.cuts;
  for (std::size_t i = 0; i < cuts; ++i) {
    const auto first = static_cast<std::uint32_t>(data.nodes.size() * i / cuts);
    if (data.nodes[first].sublist != no_node) continue;
    data.nodes[first].sublist = static_cast<std::uint32_t>(sublists.size());
    sublists.push_back({first, 0, no_node});
  }
  return sublists;
}

void walk_by_hand(problem& data, std::vector<hand_sublist>& sublists) {
  struct walker {
    std::uint32_t at, length, sublist;
  };
  constexpr std::size_t walkers_max = 16;
  walker all[walkers_max];
  std::size_t live = 0;
  std::uint32_t given = 0;
  while (live < walkers_max && given < sublists.size()) {
    all[live++] = {sublists[given].first, 0, given};
    ++given;
  }
  while (live != 0) {
    for (std::size_t w = 0; w < live; ++w) {
      walker& k = all[w];
      list_node& node = data.nodes[k.at];
      const bool ends = k.length != 0 && node.sublist != no_node;
      if (!ends) {
        node.sublist = k.sublist;
        node.place = k.length++;
        k.at = node.next;
        if (k.at != no_node) {
          __builtin_prefetch(&data.nodes[k.at], 1);
          continue;
        }
      }
      sublists[k.sublist].length = k.length;
      sublists[k.sublist].following = ends ? node.sublist : no_node;
      if (given < sublists.size()) {
        k = {sublists[given].first, 0, given};
        ++given;
      } else {
        k = all[--live];
        --w;
      }
    }
  }
}

void rank_by_hand(problem& data) {
  std::vector<hand_sublist> sublists = cut_by_hand(data);
  walk_by_hand(data, sublists);
  std::vector<std::uint32_t> before(sublists.size());
  std::uint32_t sum = 0;
  for (std::uint32_t s = 0; s != no_node; s = sublists[s].following) {
    before[s] = sum;
    sum += sublists[s].length;
  }
  for (std::size_t i = 0; i < data.ranks.size(); ++i)
    data.ranks[i] = before[data.nodes[i].sublist] + data.nodes[i].place;
}

lev::config one_worker_config(std::uint32_t contexts) {
  lev::config c;
  c.workers = 1;
  c.wait = lev::wait_policy::park;
  c.full = lev::when_full::wait;
  c.contexts = contexts;
  return c;
}

}  // namespace

void rank_by_tasks(const settings& how, report& figures) {
  problem data(std::size_t{1} << (how.quick ? 20 : 22));  // 16 or 64 MiB
  lev::runtime automatic(one_worker_config(0));
  lev::runtime one(one_worker_config(1));
  lev::runtime sixteen(one_worker_config(16));
  const auto by_tasks = [&data](lev::runtime& r) {
    return [&data, &r] {
      return per_node_ns(data, [&] {
        list_rank(r, data.options, data.nodes.data(), &data.head, data.ranks.data());
      });
    };
  };
  const auto rounds =
      interleave(how.rounds(), {by_tasks(automatic), by_tasks(one), by_tasks(sixteen),
                                [&] { return per_node_ns(data, [&] { rank_plainly(data); }); },
                                [&] { return per_node_ns(data, [&] { rank_by_hand(data); }); }});
  check(automatic.count().helped + one.count().helped + sixteen.count().helped == 0,
        "the worker ran every task");
  figures.add(gain, ratio(rounds[1], rounds[2]));
  figures.add(over_plain, ratio(rounds[3], rounds[2]));
  figures.add(over_hand, ratio(rounds[2], rounds[4]));
  figures.add(automatic_ns, rounds[0]);
  figures.add(contexts_1_ns, rounds[1]);
  figures.add(contexts_16_ns, rounds[2]);
  figures.add(plain_ns, rounds[3]);
  figures.add(by_hand_ns, rounds[4]);
}

}  // namespace bench
