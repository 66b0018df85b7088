// Building the quad tree and cutting it into parts.
//
// 1. Find a square around all bodies. 2. Split a cell's bodies by quadrant, keeping their order,
// and go into each quadrant that has any; stop at leaf size. 3. On the way back add up masses. 4.
// Cut the array of nodes into parts of equal length.
#include "barnes_hut_tree.hpp"

#include <algorithm>

namespace leveret_apps {
namespace {

// Cells are halved at most this often, so that bodies at one place end in one leaf: 2^-50 of the
// square is rounding error.
constexpr unsigned depth_max = 50;

struct square {
  double x, y, half;  // centre and half its side

  unsigned quadrant(const body& b) const { return (b.x >= x ? 1u : 0u) + (b.y >= y ? 2u : 0u); }
  square child(unsigned q) const {
    const double h = half / 2;
    return {(q & 1) != 0 ? x + h : x - h, (q & 2) != 0 ? y + h : y - h, h};
  }
};

square bounds(const std::vector<body>& bodies) {
  double x0 = bodies[0].x, x1 = x0, y0 = bodies[0].y, y1 = y0;
  for (const body& b : bodies) {
    x0 = std::min(x0, b.x);
    x1 = std::max(x1, b.x);
    y0 = std::min(y0, b.y);
    y1 = std::max(y1, b.y);
  }
  return {(x0 + x1) / 2, (y0 + y1) / 2, std::max(x1 - x0, y1 - y0) / 2};
}

class builder {
 public:
  builder(std::vector<body>& bodies, std::vector<body>& other, unsigned leaf_bodies,
          std::vector<tree_node>& nodes)
      : bodies_(bodies), other_(other), leaf_bodies_(std::max(1u, leaf_bodies)), nodes_(nodes) {}

  // Adds the subtree of bodies [first, end), which lie in `cell`.
  void add(std::size_t first, std::size_t end, const square& cell, unsigned depth) {
    const std::size_t here = nodes_.size();
    nodes_.push_back(
        {0, 0, 0, 4 * cell.half * cell.half, 0, static_cast<std::uint32_t>(first), 0, 0});
    if (end - first <= leaf_bodies_ || depth == depth_max) {
      nodes_[here].body_count = static_cast<std::uint32_t>(end - first);
      for (std::size_t b = first; b < end; ++b) gather(here, bodies_[b]);
    } else {
      add_children(first, end, cell, depth);
      for (std::size_t c = here + 1; c < nodes_.size(); c = nodes_[c].next) gather(here, nodes_[c]);
    }
    nodes_[here].x /= nodes_[here].mass;
    nodes_[here].y /= nodes_[here].mass;
    nodes_[here].next = static_cast<std::uint32_t>(nodes_.size());
  }

 private:
  template <class Mass>
  void gather(std::size_t node, const Mass& m) {
    nodes_[node].x += m.mass * m.x;
    nodes_[node].y += m.mass * m.y;
    nodes_[node].mass += m.mass;
  }

  void add_children(std::size_t first, std::size_t end, const square& cell, unsigned depth) {
    std::size_t start[5] = {first, first, first, first, first};
    for (std::size_t b = first; b < end; ++b) ++start[cell.quadrant(bodies_[b]) + 1];
    for (unsigned q = 1; q < 5; ++q) start[q] += start[q - 1] - first;
    std::size_t place[4] = {start[0], start[1], start[2], start[3]};
    for (std::size_t b = first; b < end; ++b) {
      other_[place[cell.quadrant(bodies_[b])]++] = bodies_[b];
    }
    std::copy(other_.begin() + static_cast<std::ptrdiff_t>(first),
              other_.begin() + static_cast<std::ptrdiff_t>(end),
              bodies_.begin() + static_cast<std::ptrdiff_t>(first));
    for (unsigned q = 0; q < 4; ++q) {
      if (start[q] != start[q + 1]) add(start[q], start[q + 1], cell.child(q), depth + 1);
    }
  }

  std::vector<body>& bodies_;
  std::vector<body>& other_;
  std::size_t leaf_bodies_;
  std::vector<tree_node>& nodes_;
};

// The bodies of a part are those of its leaves, which are neighbours.
void find_bodies(const std::vector<tree_node>& nodes, tree_part& part) {
  std::uint32_t end = 0;
  for (std::uint32_t n = part.first_node; n < part.first_node + part.node_count; ++n) {
    if (nodes[n].body_count == 0) continue;
    if (part.body_count == 0) part.first_body = nodes[n].first_body;
    end = nodes[n].first_body + nodes[n].body_count;
    part.body_count = end - part.first_body;
  }
}

// Goes down from the root to the part's first node and notes the cells on the way.
void find_spine(const std::vector<tree_node>& nodes, tree_part& part,
                std::vector<tree_node>& spines) {
  part.first_spine = static_cast<std::uint32_t>(spines.size());
  for (std::uint32_t n = 0; n < part.first_node;) {
    if (nodes[n].next > part.first_node) {
      spines.push_back(nodes[n]);
      ++n;
    } else {
      n = nodes[n].next;
    }
  }
  part.spine_count = static_cast<std::uint32_t>(spines.size()) - part.first_spine;
}

}  // namespace

void build_tree(std::vector<body>& bodies, std::vector<body>& other, unsigned leaf_bodies,
                std::size_t part_count, quad_tree& tree) {
  tree.nodes.clear();
  tree.parts.clear();
  tree.spines.clear();
  if (bodies.empty()) return;
  other.resize(bodies.size());
  builder(bodies, other, leaf_bodies, tree.nodes).add(0, bodies.size(), bounds(bodies), 0);
  const std::size_t nodes = tree.nodes.size();
  const std::size_t parts = std::clamp<std::size_t>(part_count, 1, nodes);
  for (std::size_t p = 0; p < parts; ++p) {
    tree_part part{};
    part.first_node = static_cast<std::uint32_t>(nodes * p / parts);
    part.node_count = static_cast<std::uint32_t>(nodes * (p + 1) / parts) - part.first_node;
    find_bodies(tree.nodes, part);
    find_spine(tree.nodes, part, tree.spines);
    tree.parts.push_back(part);
  }
}

}  // namespace leveret_apps
