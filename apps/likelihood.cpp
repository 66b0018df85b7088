// The likelihood of a tree as tasks, and the same serially.
//
// For each inner node and site: the probability of all that the species below show, for each state
// that the node may have had, in each category. 1. Transition probabilities of all branches. 2. For
// each node, from the species up, and each part of the sites, a task. In phases: the nodes whose
// children are done are a bulk; wait; then the next ones. By dependencies: a task is after those of
// the node's children. A subtree is submitted as a whole, the larger one first, so few tickets are
// held: as many as there are halvings of the tree. 3. Tasks that take the logarithms at the root.
// 4. The caller adds them up.
//
// The probabilities of many species together are smaller than a double can be. A site whose largest
// one is below 2^-256 is multiplied by 2^256, and how often is counted, for children and node
// together.
#include "leveret_apps/likelihood.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "drained.hpp"
#include "likelihood_model.hpp"

namespace leveret_apps {
namespace {

constexpr double tiny = 0x1p-256;
constexpr double huge = 0x1p256;
constexpr double log_of_tiny = -177.44567822334599;

// The probabilities of a node at a site, by category and state.
struct conditional {
  double of[rate_categories][4];
};

// For a species: what each set of states gives to the node above.
struct tip_table {
  conditional of[16];
};

struct root_weights {
  double of[4];
};

// The four products of a branch's probabilities with what the child shows, in each category. One
// order of sums for all: results do not depend on which kernel runs, nor on where sites are cut.
conditional carried(const branch& along, const conditional& child) {
  conditional sum = {};
  for (unsigned c = 0; c < rate_categories; ++c) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 4; ++i) sum.of[c][i] += along.of[c][j][i] * child.of[c][j];
    }
  }
  return sum;
}

tip_table table_of(const branch& along) {
  tip_table table;
  for (unsigned set = 0; set < 16; ++set) {
    conditional shown;
    for (auto& category : shown.of) {
      for (int state = 0; state < 4; ++state) category[state] = (set >> state & 1) != 0 ? 1 : 0;
    }
    table.of[set] = carried(along, shown);
  }
  return table;
}

// Both children together; returns how often the site was made larger.
std::int32_t join(const conditional& left, const conditional& right, conditional& node) {
  double largest = 0;
  for (unsigned c = 0; c < rate_categories; ++c) {
    for (int i = 0; i < 4; ++i) {
      node.of[c][i] = left.of[c][i] * right.of[c][i];
      largest = std::max(largest, node.of[c][i]);
    }
  }
  std::int32_t times = 0;
  for (; largest < tiny && largest > 0; largest *= huge, ++times) {
    for (auto& category : node.of) {
      for (double& p : category) p *= huge;
    }
  }
  return times;
}

void tips(lev::in<tip_table> left, lev::in<tip_table> right, lev::in<std::uint8_t> left_states,
          lev::in<std::uint8_t> right_states, lev::out<conditional> node,
          lev::out<std::int32_t> times) {
  for (std::size_t s = 0; s < node.size(); ++s) {
    times[s] = join(left[0].of[left_states[s]], right[0].of[right_states[s]], node[s]);
  }
}

void tip_and_inner(lev::in<tip_table> left, lev::in<branch> right,
                   lev::in<std::uint8_t> left_states, lev::in<conditional> right_child,
                   lev::in<std::int32_t> right_times, lev::out<conditional> node,
                   lev::out<std::int32_t> times) {
  for (std::size_t s = 0; s < node.size(); ++s) {
    times[s] = right_times[s] +
               join(left[0].of[left_states[s]], carried(right[0], right_child[s]), node[s]);
  }
}

void inners(lev::in<branch> left, lev::in<branch> right, lev::in<conditional> left_child,
            lev::in<conditional> right_child, lev::in<std::int32_t> left_times,
            lev::in<std::int32_t> right_times, lev::out<conditional> node,
            lev::out<std::int32_t> times) {
  for (std::size_t s = 0; s < node.size(); ++s) {
    times[s] = left_times[s] + right_times[s] +
               join(carried(left[0], left_child[s]), carried(right[0], right_child[s]), node[s]);
  }
}

void logs(lev::in<root_weights> weights, lev::in<conditional> root, lev::in<std::int32_t> times,
          lev::out<double> site_logs) {
  for (std::size_t s = 0; s < site_logs.size(); ++s) {
    double sum = 0;
    for (const auto& category : root[s].of) {
      for (int i = 0; i < 4; ++i) sum += weights[0].of[i] * category[i];
    }
    site_logs[s] = std::log(sum / rate_categories) + times[s] * log_of_tiny;
  }
}

// An SPE of the first Cell begins a multiply and add of two doubles every 7 cycles (Cell Broadband
// Engine Programming Handbook, 1.11, appendix B): so 8 for the 16 products of a site, 32 for each
// child that is no species. The last argument but one is the node's.
template <unsigned Children>
std::uint64_t site_cycles(const lev::descriptor& task) {
  const lev::argument& node = task.arguments[task.argument_count - 2u];
  return node.row_bytes / sizeof(conditional) * 7 * (8 + 32 * Children);
}
// The same for the sum of 16 products; the logarithm as much again, an assumption.
std::uint64_t log_cycles(const lev::descriptor& task) {
  return task.arguments[1].row_bytes / sizeof(conditional) * 7 * (8 + 8);
}

const auto tips_procedure = lev::define("likelihood_tips", &tips, nullptr, &site_cycles<0>);
const auto tip_and_inner_procedure =
    lev::define("likelihood_tip_and_inner", &tip_and_inner, nullptr, &site_cycles<1>);
const auto inners_procedure = lev::define("likelihood_inners", &inners, nullptr, &site_cycles<2>);
const auto logs_procedure = lev::define("likelihood_logs", &logs, nullptr, &log_cycles);

// Sites of the smallest piece: some 5 us, as 30 to 80 ns each for two inner children.
constexpr std::uint32_t grain_sites = 128;

// Memory for a body that is called without a task.
template <class T>
struct direct {
  lev::memory<T> m;
  operator lev::in<T>() const noexcept { return {m.data, m.row_size, 1, m.stride_bytes}; }
  operator lev::out<T>() const noexcept { return {m.data, m.row_size, 1, m.stride_bytes}; }
};

template <class T>
direct<T> as_direct(const lev::memory<T>& m) noexcept {
  return {m};
}

// Two uses of a procedure, its body and its arguments: as a task, or at once.
constexpr auto as_task = [](auto procedure, auto*, const auto&... arguments) {
  lev::descriptor task = lev::pack(procedure, arguments...);
  task.grain = grain_sites;
  return task;
};
constexpr auto at_once = [](auto, auto* body, const auto&... arguments) {
  body(as_direct(arguments)...);
};

[[noreturn]] void refuse(const std::string& what) {
  throw lev::error(lev::status::bad_argument, -1, ("likelihood: " + what).c_str());
}

void check_model(const substitution_model& model) {
  double sum = 0;
  for (const double f : model.frequency) {
    if (!(f > 0)) refuse("model.frequency: each state's must be more than 0");
    sum += f;
  }
  if (!(std::abs(sum - 1) <= 1e-6)) refuse("model.frequency: the sum must be 1");
  for (const double e : model.exchange) {
    if (!(e > 0 && e <= 1e6)) refuse("model.exchange: each must be more than 0, at most 1e6");
  }
  if (!(model.alpha >= 0.02 && model.alpha <= 1000)) refuse("model.alpha: must be 0.02 to 1000");
}

void check_lengths(const phylogeny& tree) {
  for (const inner_node& node : tree.inner) {
    for (const double length : node.length) {
      if (!(length >= 0 && length <= 1000)) refuse("tree: a branch's length must be 0 to 1000");
    }
  }
}

void check_tree(const phylogeny& tree) {
  if (tree.species < 2 || tree.species > 1u << 20) refuse("tree.species: must be 2 to 2^20");
  if (tree.inner.size() != tree.species - 1) refuse("tree.inner: must be species - 1 nodes");
  std::vector<bool> has_parent(tree.species + tree.inner.size());
  for (std::size_t i = 0; i < tree.inner.size(); ++i) {
    for (const std::uint32_t child : tree.inner[i].child) {
      if (child >= tree.species + i) refuse("tree: a child must have a smaller number");
      if (has_parent[child]) refuse("tree: node " + std::to_string(child) + " has two parents");
      has_parent[child] = true;
    }
  }
  check_lengths(tree);
}

void check_alignment(const alignment& dna, std::size_t species) {
  if (dna.sites == 0 || dna.sites > (std::size_t{1} << 40) / species ||
      dna.states.size() != dna.sites * species) {
    refuse("alignment.states: must be sites x species, and not empty");
  }
  for (const std::uint8_t set : dna.states) {
    if (set == 0 || set > 15) refuse("alignment.states: a set of states is 1 to 15");
  }
}

}  // namespace

struct likelihood_evaluation::state {
  state(const substitution_model& model, const phylogeny& tree, const alignment& dna)
      : species(tree.species),
        sites(dna.sites),
        along(model),
        tables(2 * tree.inner.size()),
        branches(2 * tree.inner.size()),
        states(dna.states.size()),
        nodes(tree.inner.size() * dna.sites),
        times(tree.inner.size() * dna.sites),
        site_logs(dna.sites),
        weights(1) {
    std::copy(dna.states.begin(), dna.states.end(), states.data());
    std::copy(model.frequency, model.frequency + 4, weights[0].of);
    order_nodes(tree);
  }

  // Children before parents, and the larger subtree of a node before the smaller one.
  void order_nodes(const phylogeny& tree) {
    std::vector<std::size_t> size(tree.species + tree.inner.size(), 1);
    std::vector<std::size_t> level(size.size());  // above the higher one of the children
    for (std::size_t n = 0; n < tree.inner.size(); ++n) {
      const auto& child = tree.inner[n].child;
      const std::size_t node = tree.species + n;
      children.push_back({child[0], child[1]});
      size[node] += size[child[0]] + size[child[1]];
      level[node] = 1 + std::max(level[child[0]], level[child[1]]);
      if (levels.size() < level[node]) levels.emplace_back();
      levels[level[node] - 1].push_back(n);
    }
    std::vector<std::size_t> left = {size.size() - 1};
    while (!left.empty()) {
      const std::size_t n = left.back() - tree.species;
      left.pop_back();
      order.push_back(n);
      const auto [a, b] = children[n];
      const auto [small, large] = size[a] < size[b] ? std::array{a, b} : std::array{b, a};
      // The last node reached here comes first when the order is reversed.
      if (large >= tree.species) left.push_back(large);
      if (small >= tree.species) left.push_back(small);
    }
    std::reverse(order.begin(), order.end());
  }

  void set_lengths(const phylogeny& tree) {
    if (tree.species != species || tree.inner.size() != children.size()) refuse("another tree");
    check_lengths(tree);
    for (std::size_t n = 0; n < tree.inner.size(); ++n) {
      for (std::size_t side = 0; side < 2; ++side) {
        const inner_node& node = tree.inner[n];
        if (node.child[side] != children[n][side]) refuse("another tree");
        const branch b = along.along(node.length[side]);
        if (node.child[side] < species) {
          tables[2 * n + side] = table_of(b);
        } else {
          branches[2 * n + side] = b;
        }
      }
    }
  }

  // Part of what a node has for each site.
  template <class T>
  lev::memory<T> part(lev::shared_array<T>& all, std::size_t node, lev::range r, bool slice) {
    auto m = lev::view(all.data() + node * sites + r.begin, r.end - r.begin);
    m.is_sliced = slice;
    return m;
  }

  // use(procedure, body, argument ...) for one node and some sites. A species is the first child
  // where there is one.
  template <class Use>
  auto node(std::size_t n, lev::range r, bool slice, Use&& use) {
    const std::size_t first = children[n][0] >= species && children[n][1] < species ? 1 : 0;
    const std::size_t a = 2 * n + first;
    const std::size_t b = 2 * n + 1 - first;
    const std::size_t left = children[n][first];
    const std::size_t right = children[n][1 - first];
    const auto to = part(nodes, n, r, slice);
    const auto to_times = part(times, n, r, slice);
    if (right < species) {
      return use(tips_procedure, &tips, lev::view(&tables[a], 1), lev::view(&tables[b], 1),
                 part(states, left, r, slice), part(states, right, r, slice), to, to_times);
    }
    const auto right_node = part(nodes, right - species, r, slice);
    const auto right_times = part(times, right - species, r, slice);
    if (left < species) {
      return use(tip_and_inner_procedure, &tip_and_inner, lev::view(&tables[a], 1),
                 lev::view(&branches[b], 1), part(states, left, r, slice), right_node, right_times,
                 to, to_times);
    }
    return use(inners_procedure, &inners, lev::view(&branches[a], 1), lev::view(&branches[b], 1),
               part(nodes, left - species, r, slice), right_node,
               part(times, left - species, r, slice), right_times, to, to_times);
  }

  // The same for the root's logarithms.
  template <class Use>
  auto root(lev::range r, bool slice, Use&& use) {
    const std::size_t n = children.size() - 1;
    return use(logs_procedure, &logs, lev::view(&weights[0], 1), part(nodes, n, r, slice),
               part(times, n, r, slice), part(site_logs, 0, r, slice));
  }

  double sum() {
    double all = 0;
    for (const double each : site_logs) all += each;
    return all;
  }

  std::size_t species;
  std::size_t sites;
  transitions along;
  lev::shared_array<tip_table> tables;  // two for each inner node; for children that are species
  lev::shared_array<branch> branches;   // for the others
  lev::shared_array<std::uint8_t> states;
  lev::shared_array<conditional> nodes;
  lev::shared_array<std::int32_t> times;
  lev::shared_array<double> site_logs;
  lev::shared_array<root_weights> weights;
  std::vector<std::array<std::size_t, 2>> children;
  std::vector<std::vector<std::size_t>> levels;  // nodes of each
  std::vector<std::size_t> order;                // of submits
};

// How the sites of a node are cut.
struct likelihood_evaluation::cutter {
  std::size_t sites;
  std::size_t parts;
  bool dice;

  lev::range at(std::size_t i) const { return {sites * i / parts, sites * (i + 1) / parts}; }
};

void likelihood_evaluation::in_phases(lev::runtime& runtime, state& s, const cutter& cut) {
  for (const std::vector<std::size_t>& level : s.levels) {
    const auto make = [&](std::size_t i, lev::descriptor& task) {
      task = s.node(level[i / cut.parts], cut.at(i % cut.parts), cut.dice, as_task);
    };
    runtime.submit_bulk(level.size() * cut.parts, make).wait();
  }
  const auto make = [&](std::size_t i, lev::descriptor& task) {
    task = s.root(cut.at(i), cut.dice, as_task);
  };
  runtime.submit_bulk(cut.parts, make).wait();
}

void likelihood_evaluation::by_dependencies(lev::runtime& runtime, state& s, const cutter& cut) {
  std::vector<lev::ticket> tickets(s.children.size() * cut.parts);
  const auto ticket_of = [&](std::size_t node, std::size_t i) -> lev::ticket& {
    return tickets[(node - s.species) * cut.parts + i];
  };
  const std::size_t root = s.species + s.children.size() - 1;
  for (const std::size_t n : s.order) {
    for (std::size_t i = 0; i < cut.parts; ++i) {
      lev::options after;
      for (const std::size_t child : s.children[n]) {
        if (child >= s.species) after.after(ticket_of(child, i));
      }
      ticket_of(s.species + n, i) = runtime.submit(s.node(n, cut.at(i), cut.dice, as_task), &after);
      for (const std::size_t child : s.children[n]) {
        if (child >= s.species) ticket_of(child, i).release();
      }
    }
  }
  std::vector<lev::ticket> logs(cut.parts);
  for (std::size_t i = 0; i < cut.parts; ++i) {
    lev::options after;
    after.after(ticket_of(root, i));
    logs[i] = runtime.submit(s.root(cut.at(i), cut.dice, as_task), &after);
  }
  for (lev::ticket& each : logs) each.wait();
}

likelihood_evaluation::likelihood_evaluation(const substitution_model& model, const phylogeny& tree,
                                             const alignment& dna) {
  check_model(model);
  check_tree(tree);
  check_alignment(dna, tree.species);
  state_ = new state(model, tree, dna);
}

likelihood_evaluation::~likelihood_evaluation() {
  delete state_;
}

double likelihood_evaluation::with_tasks(lev::runtime& runtime, const phylogeny& tree,
                                         const likelihood_options& options) {
  state& s = *state_;
  s.set_lengths(tree);
  const cutter cut{s.sites, std::clamp<std::size_t>(options.tasks, 1, s.sites), options.dice};
  drained(runtime, [&] {
    if (options.schedule == likelihood_schedule::phases) {
      in_phases(runtime, s, cut);
    } else {
      by_dependencies(runtime, s, cut);
    }
  });
  return s.sum();
}

double likelihood_evaluation::serially(const phylogeny& tree) {
  state& s = *state_;
  s.set_lengths(tree);
  const lev::range all{0, s.sites};
  for (std::size_t n = 0; n < s.children.size(); ++n) s.node(n, all, false, at_once);
  s.root(all, false, at_once);
  return s.sum();
}

const double* likelihood_evaluation::site_logs() const noexcept {
  return state_->site_logs.data();
}

}  // namespace leveret_apps
