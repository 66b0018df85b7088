// Barnes-Hut: initial bodies, direct sums that know nothing of trees, and a run with its checks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "leveret_apps/barnes_hut.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

constexpr std::size_t sampled_bodies_max = 100;
constexpr std::size_t energy_bodies_max = 20000;

// Barnes and Hut's criterion errs by about 1 % of the force at theta = 0.5, and faster than
// quadratically above.
double allowed_error(double theta) {
  return 0.1 * theta * theta;
}

double force_error(const barnes_hut_options& options, const std::vector<body>& bodies) {
  std::vector<acceleration> by_tree(bodies.size());
  barnes_hut_forces(options, bodies.data(), by_tree.data());
  const std::size_t samples = std::min(bodies.size(), sampled_bodies_max);
  double difference = 0;
  double size = 0;
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t i = bodies.size() * s / samples;
    const acceleration exact = barnes_hut_direct(options, bodies.data(), i);
    difference += std::pow(by_tree[i].x - exact.x, 2) + std::pow(by_tree[i].y - exact.y, 2);
    size += exact.x * exact.x + exact.y * exact.y;
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace

void barnes_hut_make_bodies(std::size_t count, std::uint64_t seed, body* bodies) {
  constexpr double pi = 3.14159265358979323846;
  random_numbers random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    // Plummer's model has mass m(r) = r^3 / (1 + r^2)^(3/2) within r; the outermost 1 % is left
    // out.
    const double within = 0.99 * random.next() + 1e-9;
    const double r = 1 / std::sqrt(std::pow(within, -2.0 / 3) - 1);
    const double angle = 2 * pi * random.next();
    const double speed = std::sqrt(within / r);
    bodies[i] = {r * std::cos(angle),
                 r * std::sin(angle),
                 -speed * std::sin(angle),
                 speed * std::cos(angle),
                 1.0 / static_cast<double>(count),
                 i};
  }
}

acceleration barnes_hut_direct(const barnes_hut_options& options, const body* bodies,
                               std::size_t index) {
  acceleration sum = {0, 0};
  for (std::size_t j = 0; j < options.bodies; ++j) {
    if (j == index) continue;
    const double dx = bodies[j].x - bodies[index].x;
    const double dy = bodies[j].y - bodies[index].y;
    const double distance = std::sqrt(dx * dx + dy * dy + options.softening * options.softening);
    sum.x += bodies[j].mass * dx / (distance * distance * distance);
    sum.y += bodies[j].mass * dy / (distance * distance * distance);
  }
  return sum;
}

double barnes_hut_energy(const barnes_hut_options& options, const body* bodies, bool half_step) {
  double energy = 0;
  for (std::size_t i = 0; i < options.bodies; ++i) {
    const body& b = bodies[i];
    acceleration a = {0, 0};
    if (half_step) a = barnes_hut_direct(options, bodies, i);
    const double vx = b.vx + a.x * options.step / 2;
    const double vy = b.vy + a.y * options.step / 2;
    energy += b.mass * (vx * vx + vy * vy) / 2;
    for (std::size_t j = 0; j < i; ++j) {
      const double dx = bodies[j].x - b.x;
      const double dy = bodies[j].y - b.y;
      energy -= b.mass * bodies[j].mass /
                std::sqrt(dx * dx + dy * dy + options.softening * options.softening);
    }
  }
  return energy;
}

barnes_hut_report run_barnes_hut(lev::runtime& runtime, const barnes_hut_options& options) {
  std::vector<body> initial(options.bodies);
  barnes_hut_make_bodies(options.bodies, options.seed, initial.data());
  std::vector<body> bodies = initial;
  barnes_hut_report report;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(runtime, [&] { barnes_hut(runtime, options, bodies.data()); });
  report.tasks = runtime.count().submitted - tasks_before;
  if (!options.check) return report;

  std::vector<body> expected = initial;
  report.serial_seconds = host_seconds([&] { barnes_hut_serial(options, expected.data()); });
  report.error = force_error(options, initial);
  report.correct = std::memcmp(expected.data(), bodies.data(), bodies.size() * sizeof(body)) == 0 &&
                   report.error <= allowed_error(options.theta);
  if (options.bodies <= energy_bodies_max && options.bodies > 1) {
    const double before = barnes_hut_energy(options, initial.data(), false);
    const double after = barnes_hut_energy(options, bodies.data(), options.steps > 0);
    report.energy_drift = std::abs((after - before) / before);
  }
  return report;
}

}  // namespace leveret_apps
