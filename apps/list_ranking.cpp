// List ranking with tasks that walk sublists in far memory (after Helman and JaJa, 1999).
//
// A sublist begins at a head of a list or at a cut, and ends where the next one begins. That node
// is known by its mark: the first nodes carry their sublist's number before the walks start, all
// others get theirs from the walk that comes by. So every node is written by one walk alone, and of
// another's first node only the mark is read, which does not change.
#include "leveret_apps/list_ranking.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "drained.hpp"
#include "far_memory.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

// Some ten instructions a node, at the pace of scalar code on an SPE: an assumption.
constexpr std::uint64_t cycles_per_step = 20;
constexpr std::uint64_t cycles_per_addition = 4;

struct sublist {
  std::uint32_t first;      // node
  std::uint32_t number;     // mark of its nodes
  std::uint32_t length;     // from here on written by the walk
  std::uint32_t following;  // the sublist that comes after; no_node: the list ends
};

// Two tags take turns: while a node is on its way, the one before is on its way back.
void walk(lev::task_context& task, const lev::far<list_node>& nodes, sublist& s) {
  std::uint32_t length = 0;
  for (std::uint32_t at = s.first;; ++length) {
    const unsigned tag = length % 2;
    task.wait(tag);
    list_node* node = task.get(nodes, at, 1, tag);
    task.wait(tag);
    task.pass_time(cycles_per_step);
    if (length != 0) {
      if (node->sublist != no_node) {
        s.following = node->sublist;
        break;
      }
      node->sublist = s.number;
    }
    node->place = length;
    const std::uint32_t next = node->next;
    task.put(nodes, at, 1, node, tag);
    if (next == no_node) {
      s.following = no_node;
      ++length;
      break;
    }
    at = next;
  }
  s.length = length;
}

void walk_task(lev::far<list_node> nodes, lev::inout<sublist> sublists) {
  auto task = lev::this_task();
  for (sublist& s : sublists) walk(task, nodes, s);
}

// `before` holds for each sublist how many nodes of its list come before it; no_node for a ring
// that no list leads to.
void add_task(lev::in<std::uint32_t> before, lev::in<list_node> nodes,
              lev::out<std::uint32_t> ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const list_node& n = nodes[i];
    const std::uint32_t sum = n.sublist == no_node ? no_node : before[n.sublist];
    ranks[i] = sum == no_node ? no_node : sum + n.place;
  }
}

// Walks pass their time themselves.
std::uint64_t walk_cycles(const lev::descriptor&) {
  return 0;
}
std::uint64_t add_cycles(const lev::descriptor& task) {
  return task.arguments[2].row_bytes / sizeof(std::uint32_t) * cycles_per_addition;
}

const auto walk_procedure = lev::define("list_walk", &walk_task, nullptr, &walk_cycles);
const auto add_procedure = lev::define("list_add", &add_task, nullptr, &add_cycles);

[[noreturn]] void refuse(const char* message) {
  throw lev::error(lev::status::bad_argument, -1, message);
}

void check(lev::runtime& runtime, const list_ranking_options& o) {
  need_far_memory(runtime, "list-ranking");
  if (o.nodes == 0 || o.nodes >= no_node) refuse("nodes must be 1 to 4294967294");
  if (o.lists == 0 || o.lists > o.nodes) refuse("lists must be 1 to the number of nodes");
}

void add_sublist(list_node* nodes, std::uint32_t first, std::vector<sublist>& sublists) {
  if (nodes[first].sublist != no_node) return;
  const auto number = static_cast<std::uint32_t>(sublists.size());
  nodes[first].sublist = number;
  sublists.push_back({first, number, 0, no_node});
}

// The first sublists are the lists' heads; cuts are spread evenly over memory, so at random over
// the lists.
std::vector<sublist> cut_lists(const list_ranking_options& o, list_node* nodes,
                               const std::uint32_t* heads) {
  for (std::size_t i = 0; i < o.nodes; ++i) nodes[i].sublist = no_node;
  std::vector<sublist> sublists;
  sublists.reserve(o.lists + o.cuts);
  for (std::size_t i = 0; i < o.lists; ++i) {
    if (heads[i] >= o.nodes) refuse("a head is not the number of a node");
    if (nodes[heads[i]].sublist != no_node) refuse("two lists have the same head");
    add_sublist(nodes, heads[i], sublists);
  }
  random_numbers random(o.seed);
  for (std::size_t i = 0; i < o.cuts; ++i) {
    const double part = (static_cast<double>(i) + random.next()) / o.cuts;
    const auto node = static_cast<std::size_t>(part * static_cast<double>(o.nodes));
    add_sublist(nodes, static_cast<std::uint32_t>(std::min(node, o.nodes - 1)), sublists);
  }
  return sublists;
}

// Each sublist follows at most one other, or two lists have met.
std::vector<std::uint32_t> count_before(std::size_t lists, const std::vector<sublist>& sublists) {
  std::vector<std::uint32_t> before(sublists.size(), no_node);
  for (std::uint32_t list = 0; list < lists; ++list) {
    std::uint32_t sum = 0;
    for (std::uint32_t s = list; s != no_node; s = sublists[s].following) {
      if (before[s] != no_node) refuse("two lists meet, or one is a ring");
      before[s] = sum;
      sum += sublists[s].length;
    }
  }
  return before;
}

// Submits count things in at most o.tasks tasks, and waits.
template <class Make>
void in_tasks(lev::runtime& runtime, const list_ranking_options& o, std::size_t count,
              const Make& make_part) {
  const std::size_t tasks = std::clamp<std::size_t>(o.tasks, 1, count);
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    const std::size_t first = count * i / tasks;
    task = make_part(first, count * (i + 1) / tasks - first);
  };
  drained(runtime, [&] { runtime.submit_bulk(tasks, make).wait(); });
}

std::uint64_t rank(lev::runtime& runtime, const list_ranking_options& o, list_node* nodes,
                   const std::uint32_t* heads, std::uint32_t* ranks) {
  check(runtime, o);
  std::vector<sublist> sublists = cut_lists(o, nodes, heads);
  in_tasks(runtime, o, sublists.size(), [&](std::size_t first, std::size_t count) {
    auto part = lev::view(&sublists[first], count);
    part.is_sliced = o.dice;
    lev::descriptor task = lev::pack(walk_procedure, lev::view(nodes, o.nodes), part);
    task.grain = 1;
    return task;
  });
  const std::vector<std::uint32_t> before = count_before(o.lists, sublists);
  in_tasks(runtime, o, o.nodes, [&](std::size_t first, std::size_t count) {
    auto numbered = lev::view(nodes + first, count);
    auto sums = lev::view(ranks + first, count);
    numbered.is_sliced = sums.is_sliced = o.dice;
    return lev::pack(add_procedure, before, numbered, sums);
  });
  return sublists.size();
}

}  // namespace

void list_make(std::size_t count, std::size_t lists, std::uint64_t seed, list_node* nodes,
               std::uint32_t* heads) {
  random_numbers random(seed);
  std::vector<std::uint32_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto j = static_cast<std::size_t>(random.next() * static_cast<double>(i + 1));
    order[i] = order[j];
    order[j] = static_cast<std::uint32_t>(i);
  }
  for (std::size_t list = 0; list < lists; ++list) {
    const std::size_t first = count * list / lists;
    const std::size_t end = count * (list + 1) / lists;
    heads[list] = order[first];
    for (std::size_t i = first; i < end; ++i)
      nodes[order[i]] = {i + 1 == end ? no_node : order[i + 1], no_node, no_node, 0};
  }
}

void list_rank(lev::runtime& runtime, const list_ranking_options& options, list_node* nodes,
               const std::uint32_t* heads, std::uint32_t* ranks) {
  rank(runtime, options, nodes, heads, ranks);
}

void list_rank_serial(list_node* nodes, const std::uint32_t* heads, std::size_t lists) {
  for (std::size_t list = 0; list < lists; ++list) {
    std::uint32_t place = 0;
    for (std::uint32_t at = heads[list]; at != no_node; at = nodes[at].next)
      nodes[at].place = place++;
  }
}

list_ranking_report run_list_ranking(lev::runtime& runtime, const list_ranking_options& options) {
  check(runtime, options);
  std::vector<list_node> nodes(options.nodes);
  std::vector<std::uint32_t> heads(options.lists);
  std::vector<std::uint32_t> ranks(options.nodes);
  list_make(options.nodes, options.lists, options.seed, nodes.data(), heads.data());
  list_ranking_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(runtime, [&] {
    report.sublists = rank(runtime, options, nodes.data(), heads.data(), ranks.data());
  });
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  report.serial_seconds =
      host_seconds([&] { list_rank_serial(nodes.data(), heads.data(), options.lists); });
  for (std::size_t i = 0; i < ranks.size(); ++i) report.error += ranks[i] != nodes[i].place;
  report.correct = report.error == 0;
  return report;
}

}  // namespace leveret_apps
