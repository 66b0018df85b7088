// The quad tree of Barnes-Hut in an array, depth first, and the walk over a part of it.
//
// Node 0 is the root; the first child of node i is node i + 1; `next` is the node behind the whole
// subtree of i: where a walk goes on that does not look into i. Bodies are sorted so that those of
// a subtree, too, are neighbours.
//
// Parts: nodes [first, end) of the array, whatever the tree's shape. A walk for a body may have to
// skip the beginning of a part because a cell above it was far enough to count as one point; so
// each part has a *spine*: the ancestors of its first node, root first. With it, parts can be
// visited in any order. (The paper does not say how it does this.)
#pragma once

#include <vector>

#include "leveret_apps/barnes_hut.hpp"

namespace leveret_apps {

struct tree_node {
  double x, y, mass;         // centre of mass
  double side_squared;       // of the cell
  std::uint32_t next;        // the node behind this subtree
  std::uint32_t first_body;  // of a leaf
  std::uint32_t body_count;  // of a leaf; 0 for a cell with children
  std::uint32_t reserved;
};

// A body as others see it.
struct point_mass {
  double x, y, mass;
};

struct tree_part {
  std::uint32_t first_node, node_count;
  std::uint32_t first_body, body_count;  // of the leaves in this part
  std::uint32_t first_spine, spine_count;
};

struct quad_tree {
  std::vector<tree_node> nodes;
  std::vector<tree_part> parts;
  std::vector<tree_node> spines;  // of all parts, one after the other
};

// build_tree() sorts the bodies by cell and builds the tree over them, serially and depth first,
// with leaves of at most `leaf_bodies`. `other` is room for as many bodies. Then the tree is cut
// into `part_count` parts, or fewer if it has fewer nodes.
void build_tree(std::vector<body>& bodies, std::vector<body>& other, unsigned leaf_bodies,
                std::size_t part_count, quad_tree& tree);

// The two numbers of the force law: when a cell counts as a point, and how soft a point is.
struct force_law {
  double theta_squared;
  double softening_squared;
};

inline bool is_far(const force_law& law, const tree_node& node, double x, double y) {
  const double dx = node.x - x;
  const double dy = node.y - y;
  return node.side_squared < law.theta_squared * (dx * dx + dy * dy);
}

// walk_part() calls visit(x, y, mass) for everything in the part that acts on a body at (x, y):
// cells as points, and bodies of near leaves. `nodes`, `bodies` and `spine` are the part's own.
template <class Visit>
void walk_part(const force_law& law, const tree_part& part, const tree_node* nodes,
               const point_mass* bodies, const tree_node* spine, double x, double y, Visit visit) {
  std::uint32_t at = part.first_node;
  for (std::uint32_t s = 0; s < part.spine_count; ++s) {
    if (is_far(law, spine[s], x, y)) {
      at = spine[s].next;
      break;
    }
  }
  const std::uint32_t end = part.first_node + part.node_count;
  while (at < end) {
    const tree_node& node = nodes[at - part.first_node];
    if (is_far(law, node, x, y)) {
      visit(node.x, node.y, node.mass);
      at = node.next;
    } else {
      for (std::uint32_t b = 0; b < node.body_count; ++b) {
        const point_mass& near = bodies[node.first_body - part.first_body + b];
        visit(near.x, near.y, near.mass);
      }
      ++at;
    }
  }
}

}  // namespace leveret_apps
