// Barnes-Hut on Jack Rabbit's pool; see applications.hpp. How the work of tasks differs is counted
// in a quad tree of our own; how long a task takes in the mean is calibrated for each number of
// bodies, whose times in the paper grow far faster than those of any tree would.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "jack_rabbit/applications.hpp"

namespace leveret_papers {

namespace {

constexpr unsigned of_set = 512;
constexpr std::uint32_t bytes_of_body = 32;
constexpr std::uint32_t bytes_of_node = 32;
constexpr unsigned depth_most = 20;                      // coordinates have so many bits
constexpr std::uint64_t second_level_bytes = 512 << 10;  // S0, section 3.1: the PPE's L2

struct point {
  std::int64_t x;
  std::int64_t y;
  std::uint64_t key;  // their bits, in turns: sorted, the bodies of a node follow each other
};

struct node {
  std::int64_t x;  // the mean of its bodies
  std::int64_t y;
  std::int64_t width;
  std::uint32_t next;  // behind all that is below it
  std::uint32_t bodies;
  bool is_leaf;
};

struct tree {
  std::vector<point> bodies;  // as drawn
  std::vector<node> nodes;    // depth first
  // Bodies of all nodes: each is looked at once on each level. In nodes whose bodies the PPE's
  // second-level cache holds, and in larger ones.
  std::uint64_t placed_near = 0;
  std::uint64_t placed_far = 0;
};

std::uint64_t key_of(std::uint64_t x, std::uint64_t y) {
  std::uint64_t key = 0;
  for (unsigned b = 0; b < depth_most; ++b)
    key |= ((x >> b & 1) << (2 * b + 1)) | ((y >> b & 1) << (2 * b));
  return key;
}

void build(tree& t, const std::vector<point>& sorted, std::size_t first, std::size_t last,
           unsigned depth, unsigned leaf) {
  const std::size_t self = t.nodes.size();
  node n{0,
         0,
         std::int64_t{1} << (depth_most - depth),
         0,
         static_cast<std::uint32_t>(last - first),
         last - first <= leaf || depth == depth_most};
  for (std::size_t i = first; i < last; ++i) {
    n.x += sorted[i].x;
    n.y += sorted[i].y;
  }
  n.x /= n.bodies;
  n.y /= n.bodies;
  const bool is_near = n.bodies * std::uint64_t{bytes_of_body} <= second_level_bytes;
  (is_near ? t.placed_near : t.placed_far) += n.bodies;
  t.nodes.push_back(n);
  const unsigned shift = n.is_leaf ? 0 : 2 * (depth_most - depth - 1);
  for (std::size_t at = first; !n.is_leaf && at < last;) {
    const std::uint64_t quarter = sorted[at].key >> shift;
    std::size_t end = at;
    while (end < last && sorted[end].key >> shift == quarter) ++end;
    build(t, sorted, at, end, depth + 1, leaf);
    at = end;
  }
  t.nodes[self].next = static_cast<std::uint32_t>(t.nodes.size());
}

tree grow(unsigned bodies, unsigned leaf) {
  tree t;
  std::mt19937_64 random(bodies);
  for (unsigned i = 0; i < bodies; ++i) {
    const std::uint64_t drawn = random();
    const std::uint64_t x = drawn >> 44;
    const std::uint64_t y = drawn & 0xfffff;
    t.bodies.push_back({std::int64_t(x), std::int64_t(y), key_of(x, y)});
  }
  std::vector<point> sorted = t.bodies;
  std::sort(sorted.begin(), sorted.end(),
            [](const point& a, const point& b) { return a.key < b.key; });
  build(t, sorted, 0, sorted.size(), 0, leaf);
  return t;
}

// What a body does in a piece of the tree: nodes looked at, and bodies of leaves that are near. A
// node is taken for one body when its width is less than half its distance.
std::uint64_t interactions(const tree& t, const point& b, std::uint32_t from, std::uint32_t to) {
  std::uint64_t count = 0;
  while (from < to) {
    const node& n = t.nodes[from];
    const std::int64_t dx = n.x - b.x;
    const std::int64_t dy = n.y - b.y;
    const bool is_far = 4 * n.width * n.width < dx * dx + dy * dy;
    count += 1 + (n.is_leaf && !is_far ? n.bodies : 0);
    from = is_far ? n.next : from + 1;
  }
  return count;
}

// The tasks of some turns: how much more or less than the mean each has to do.
struct turns {
  std::vector<std::vector<double>> shares;
  std::uint64_t placed_near = 0;
  std::uint64_t placed_far = 0;
  std::uint32_t nodes_of_piece = 0;
};

turns count_turns(unsigned bodies, unsigned leaf, unsigned sampled) {
  const tree t = grow(bodies, leaf);
  const unsigned sets = sets_of(bodies);
  const auto nodes = static_cast<std::uint32_t>(t.nodes.size());
  turns found;
  found.placed_near = t.placed_near;
  found.placed_far = t.placed_far;
  found.nodes_of_piece = nodes / sets + 1;
  double sum = 0;
  for (unsigned turn = 0; turn < sampled; ++turn) {
    std::vector<double> counts(sets, 0);
    for (unsigned j = 0; j < sets; ++j) {
      const unsigned set = (j + turn * (sets / sampled)) % sets;
      const auto from = static_cast<std::uint32_t>(std::uint64_t{nodes} * j / sets);
      const auto to = static_cast<std::uint32_t>(std::uint64_t{nodes} * (j + 1) / sets);
      std::uint64_t count = 0;
      for (unsigned i = set * of_set; i < std::min(bodies, (set + 1) * of_set); ++i)
        count += interactions(t, t.bodies[i], from, to);
      counts[j] = static_cast<double>(count);
      sum += counts[j];
    }
    found.shares.push_back(std::move(counts));
  }
  for (auto& counts : found.shares)
    for (double& c : counts) c *= double(sets) * sampled / sum;
  return found;
}

// The same for each number of workers.
const turns& known_turns(unsigned bodies, unsigned leaf, unsigned sampled) {
  thread_local std::map<std::array<unsigned, 3>, turns> known;
  const std::array key{bodies, leaf, sampled};
  if (!known.contains(key)) known[key] = count_turns(bodies, leaf, sampled);
  return known[key];
}

rabbit_batch turn_of(const std::vector<double>& shares, double mean, std::uint32_t tree_bytes,
                     const cell::array<char>& memory) {
  rabbit_batch b;
  for (const double share : shares) {
    rabbit_task t{1, static_cast<std::int64_t>(share * mean)};
    t.in = {rabbit_bytes{memory.ea, tree_bytes},
            rabbit_bytes{memory.at(16384), of_set * bytes_of_body}};
    t.out = t.in[1];
    b.tasks.push_back(t);
  }
  return b;
}

rabbit_batch moves(unsigned sets, std::int64_t work, const cell::array<char>& memory) {
  rabbit_batch b;
  for (unsigned i = 0; i < sets; ++i) {
    rabbit_task t{2, work};
    t.in[0] = {memory.at(16384), of_set * bytes_of_body};
    t.out = t.in[0];
    b.tasks.push_back(t);
  }
  return b;
}

// The tree is built by the PPE: on each level it reads the bodies in order, a line with several of
// them at a time, and writes each.
double build_cycles(world& w, const cell::machine_file& file, const turns& t) {
  constexpr double of_line = double(cell::line_bytes) / bytes_of_body;
  const double lines_near = double(t.placed_near) / of_line;
  const double lines_far = double(t.placed_far) / of_line;
  return lines_near * w.constant(file, "ppe.cached_load") +
         lines_far * w.constant(file, "ppe.missed_load") +
         double(t.placed_near + t.placed_far) * w.constant(file, "ppe.store");
}

}  // namespace

unsigned sets_of(unsigned bodies) {
  return (bodies + of_set - 1) / of_set;
}

double bodies_seconds(world& w, const rabbit_bodies& what) {
  const unsigned sets = sets_of(what.bodies);
  const unsigned sampled = std::min(sets, what.bodies > 500000 ? 2u : 8u);
  const turns& t =
      known_turns(what.bodies, static_cast<unsigned>(w.number("jack_rabbit.leaf")), sampled);
  const cell::machine_file file = w.file("cell-ps3");
  const double rate = w.constant(file, "clock.rate");
  const double mean = w.number(what.cost) * 1e-6 * rate;
  rabbit_pool pool;
  pool.spes = what.spes;
  pool.is_double_buffered = what.is_double_buffered;
  const rabbit_outcome o = run_rabbit(w, pool, [&](cell::machine& m) {
    const auto memory = m.memory<char>(32768);
    const std::uint32_t tree_bytes =
        std::min<std::uint32_t>(16384, (t.nodes_of_piece * bytes_of_node + 15) / 16 * 16);
    std::vector<rabbit_batch> batches;
    for (const auto& shares : t.shares) {
      batches.push_back(turn_of(shares, mean, tree_bytes, memory));
      batches.back().is_relaunch = batches.size() > 1;
    }
    batches.push_back(moves(sets, w.cost_of("jack_rabbit.move").count * of_set, memory));
    return batches;
  });
  // The first turn makes the tasks, the others launch them again.
  double turn = 0;
  for (unsigned i = 1; i < sampled; ++i) turn += o.seconds[i] / (sampled - 1);
  const double build = build_cycles(w, file, t) / rate;
  return what.steps * (build + o.seconds.front() + turn * (sets - 1) + o.seconds.back());
}

}  // namespace leveret_papers
