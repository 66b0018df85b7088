// Barnes-Hut steps as tasks (Jack Rabbit section 5.2), and the same serially.
//
// A step: 1. Build the tree and cut it into as many parts as there are sets of bodies. 2. Rotation
// r: one task per part p, which adds what part p does to the bodies of set p - r; wait. So task j
// has in each rotation the set that task j - 1 had before, and after as many rotations as sets
// every set has met every part. 3. Move tasks.
//
// The integrator is leapfrog Verlet: velocities are half a step behind positions. The first step
// makes half a step of velocity. In every schedule a set meets the parts in the same order, so all
// sums are the same.
#include "leveret_apps/barnes_hut.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "barnes_hut_tree.hpp"
#include "drained.hpp"

namespace leveret_apps {
namespace {

// Some 20 operations and a square root, at the pace of scalar code on an SPE: an assumption, as
// Table 5.2 does not say how many interactions its runs had.
constexpr std::uint64_t cycles_per_interaction = 40;
constexpr std::uint64_t cycles_per_move = 20;

// Bodies of the smallest piece: some 5 us of work, for which bench tasks shows an efficiency of
// 0.98. 10,000 bodies take 60 to 90 ns per body and part, and 10 ns per move. Dicing further, down
// to single bodies, ran slower than the serial program.
constexpr std::uint32_t force_grain = 64;
constexpr std::uint32_t move_grain = 512;

// Adds to `sums` what a part does to `count` bodies. The one kernel: tasks and the serial reference
// call it.
void add_forces(const force_law& law, const tree_part& part, const tree_node* nodes,
                const point_mass* bodies, const tree_node* spine, const point_mass* set,
                std::size_t count, acceleration* sums) {
  for (std::size_t i = 0; i < count; ++i) {
    const double x = set[i].x;
    const double y = set[i].y;
    double ax = 0;
    double ay = 0;
    walk_part(law, part, nodes, bodies, spine, x, y, [&](double fx, double fy, double mass) {
      const double dx = fx - x;
      const double dy = fy - y;
      const double r2 = dx * dx + dy * dy + law.softening_squared;
      const double scale = mass / (r2 * std::sqrt(r2));
      ax += scale * dx;
      ay += scale * dy;
    });
    sums[i].x += ax;
    sums[i].y += ay;
  }
}

void move(double kick, double drift, const acceleration* accelerations, std::size_t count,
          body* bodies) {
  for (std::size_t i = 0; i < count; ++i) {
    bodies[i].vx += kick * accelerations[i].x;
    bodies[i].vy += kick * accelerations[i].y;
    bodies[i].x += drift * bodies[i].vx;
    bodies[i].y += drift * bodies[i].vy;
  }
}

void force_task(force_law law, lev::in<tree_part> part, lev::in<tree_node> nodes,
                lev::in<point_mass> bodies, lev::in<tree_node> spine, lev::in<point_mass> set,
                lev::inout<acceleration> sums) {
  add_forces(law, part[0], nodes.data(), bodies.data(), spine.data(), set.data(), set.size(),
             sums.data());
}

// Exact, by walking the tree: only a machine with virtual time asks.
std::uint64_t force_cycles(const lev::descriptor& task) {
  const auto pointer = [&](unsigned i) {
    return static_cast<std::uintptr_t>(task.arguments[i].address);
  };
  force_law law;
  std::memcpy(&law.theta_squared, &task.arguments[0].address, sizeof(double));
  std::memcpy(&law.softening_squared, &task.arguments[0].row_bytes, sizeof(double));
  const auto* set = reinterpret_cast<const point_mass*>(pointer(5));
  std::uint64_t interactions = 0;
  for (std::size_t i = 0; i < task.arguments[5].row_bytes / sizeof(point_mass); ++i) {
    walk_part(law, *reinterpret_cast<const tree_part*>(pointer(1)),
              reinterpret_cast<const tree_node*>(pointer(2)),
              reinterpret_cast<const point_mass*>(pointer(3)),
              reinterpret_cast<const tree_node*>(pointer(4)), set[i].x, set[i].y,
              [&](double, double, double) { ++interactions; });
  }
  return interactions * cycles_per_interaction;
}

void move_task(double kick, double drift, lev::in<acceleration> accelerations,
               lev::inout<body> bodies) {
  move(kick, drift, accelerations.data(), bodies.size(), bodies.data());
}

std::uint64_t move_cycles(const lev::descriptor& task) {
  return task.arguments[3].row_bytes / sizeof(body) * cycles_per_move;
}

const auto force_procedure = lev::define("barnes_hut_forces", &force_task, nullptr, &force_cycles);
const auto move_procedure = lev::define("barnes_hut_move", &move_task, nullptr, &move_cycles);

// The state of a simulation, and what a step consists of.
class simulation {
 public:
  simulation(const barnes_hut_options& options, const body* bodies)
      : options_(options),
        law_{options.theta * options.theta, options.softening * options.softening},
        bodies_(bodies, bodies + options.bodies),
        sums_(options.bodies) {}

  void step_with_tasks(lev::runtime& runtime, double kick, double drift) {
    build();
    for (std::size_t rotation = 0; rotation < sets(); ++rotation) {
      const auto make_force = [&](std::size_t part, lev::descriptor& task) {
        task = force_descriptor(tree_.parts[part], (part + sets() - rotation) % sets());
      };
      runtime.submit_bulk(sets(), make_force).wait();
    }
    const std::size_t count = bodies_.size();
    const std::size_t size = std::max(1u, options_.move_bodies);
    const auto make_move = [&](std::size_t i, lev::descriptor& task) {
      auto moved = lev::view(&bodies_[i * size], std::min(size, count - i * size));
      auto sums = lev::view(&sums_[i * size], moved.row_size);
      moved.is_sliced = sums.is_sliced = options_.dice;
      task = lev::pack(move_procedure, kick, drift, sums, moved);
      task.grain = move_grain;
    };
    runtime.submit_bulk((count + size - 1) / size, make_move).wait();
  }

  void step_serially(double kick, double drift) {
    sum_forces_serially();
    move(kick, drift, sums_.data(), bodies_.size(), bodies_.data());
  }

  void sum_forces_serially() {
    build();
    for (std::size_t rotation = 0; rotation < sets(); ++rotation) {
      for (std::size_t p = 0; p < sets(); ++p) {
        const tree_part& part = tree_.parts[p];
        const std::size_t set = (p + sets() - rotation) % sets();
        add_forces(law_, part, &tree_.nodes[part.first_node], &points_[part.first_body],
                   tree_.spines.data() + part.first_spine, &points_[set_begin(set)],
                   set_begin(set + 1) - set_begin(set), &sums_[set_begin(set)]);
      }
    }
  }

  void copy_bodies(body* bodies) const {
    for (const body& b : bodies_) bodies[b.number] = b;
  }
  void copy_sums(acceleration* sums) const {
    for (std::size_t i = 0; i < bodies_.size(); ++i) sums[bodies_[i].number] = sums_[i];
  }

 private:
  std::size_t sets() const { return tree_.parts.size(); }
  std::size_t set_begin(std::size_t set) const { return bodies_.size() * set / sets(); }

  void build() {
    const std::size_t size = std::max(1u, options_.set_bodies);
    build_tree(bodies_, other_, options_.leaf_bodies, (bodies_.size() + size - 1) / size, tree_);
    points_.clear();
    for (const body& b : bodies_) points_.push_back({b.x, b.y, b.mass});
    std::fill(sums_.begin(), sums_.end(), acceleration{0, 0});
  }

  lev::descriptor force_descriptor(const tree_part& part, std::size_t set) {
    auto points = lev::view(&points_[set_begin(set)], set_begin(set + 1) - set_begin(set));
    auto sums = lev::view(&sums_[set_begin(set)], points.row_size);
    points.is_sliced = sums.is_sliced = options_.dice;
    lev::descriptor task = lev::pack(
        force_procedure, law_, lev::view(&part, 1),
        lev::view(&tree_.nodes[part.first_node], part.node_count),
        lev::view(&points_[part.first_body], part.body_count),
        lev::view(tree_.spines.data() + part.first_spine, part.spine_count), points, sums);
    task.grain = force_grain;
    return task;
  }

  const barnes_hut_options& options_;
  force_law law_;
  std::vector<body> bodies_;
  std::vector<body> other_;
  std::vector<point_mass> points_;
  std::vector<acceleration> sums_;
  quad_tree tree_;
};

}  // namespace

void barnes_hut(lev::runtime& runtime, const barnes_hut_options& options, body* bodies) {
  if (options.bodies == 0) return;
  simulation world(options, bodies);
  drained(runtime, [&] {
    for (unsigned s = 0; s < options.steps; ++s) {
      world.step_with_tasks(runtime, s == 0 ? options.step / 2 : options.step, options.step);
    }
  });
  world.copy_bodies(bodies);
}

void barnes_hut_serial(const barnes_hut_options& options, body* bodies) {
  if (options.bodies == 0) return;
  simulation world(options, bodies);
  for (unsigned s = 0; s < options.steps; ++s) {
    world.step_serially(s == 0 ? options.step / 2 : options.step, options.step);
  }
  world.copy_bodies(bodies);
}

void barnes_hut_forces(const barnes_hut_options& options, const body* bodies,
                       acceleration* accelerations) {
  if (options.bodies == 0) return;
  simulation world(options, bodies);
  world.sum_forces_serially();
  world.copy_sums(accelerations);
}

}  // namespace leveret_apps
