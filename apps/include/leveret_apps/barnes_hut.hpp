// Gravity between n bodies in a plane with a quad tree (Barnes and Hut, 1986), as tasks of part of
// the tree by set of bodies.
//
// Paper: Jack Rabbit section 5.2. Forces are softened, m / (r^2 + softening^2)^(3/2) with G = 1, as
// in the CUDA SDK's sample that the paper took its integrator from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>

namespace leveret_apps {

struct body {
  double x, y;
  double vx, vy;  // half a step behind x and y once a step was made (leapfrog)
  double mass;
  std::uint64_t number;  // bodies change places while they move; this stays
};

struct acceleration {
  double x, y;
};

struct barnes_hut_options {
  std::size_t bodies = 10000;
  unsigned steps = 1;
  // A cell is one point when its side is less than theta times its distance; at most 0.7.
  double theta = 0.5;
  double softening = 0.01;  // more than 0
  double step = 0.001;      // of time
  // A cell with more is split. Measured serially with 10000 and 100000 bodies: 8 is best, 4 and 16
  // cost 0 to 8 % more.
  unsigned leaf_bodies = 8;
  // Bodies a force task updates. There are as many parts of the tree as sets. With 512, as in move
  // tasks, one barrier is for 20 tasks of 10000 bodies and 2000 of a million: the paper's numbers.
  unsigned set_bodies = 512;
  unsigned move_bodies = 512;  // bodies a move task updates
  bool dice = true;
  std::uint64_t seed = 1;
  bool check = true;  // compare with the serial reference, and sample forces
};

// barnes_hut_make_bodies() makes a disc of equal masses, together 1, with the density of Plummer's
// model, turning about its centre. Same seed, same bodies.
void barnes_hut_make_bodies(std::size_t count, std::uint64_t seed, body* bodies);

// barnes_hut() moves options.bodies bodies by options.steps steps, from a state in which velocities
// belong to the same time as positions. bodies[i].number must be i. barnes_hut_serial() is the
// reference: the same sums in the same order, so equal bit for bit.
void barnes_hut(lev::runtime& runtime, const barnes_hut_options& options, body* bodies);
void barnes_hut_serial(const barnes_hut_options& options, body* bodies);

// barnes_hut_forces() is one force computation by tree, serially.
void barnes_hut_forces(const barnes_hut_options& options, const body* bodies,
                       acceleration* accelerations);

// barnes_hut_direct() sums the force of every body on body `index`.
acceleration barnes_hut_direct(const barnes_hut_options& options, const body* bodies,
                               std::size_t index);

// barnes_hut_energy() is kinetic plus potential energy, by direct sums in n * n / 2 steps. With
// `half_step` the velocities are first brought from half a step behind to the time of the
// positions.
double barnes_hut_energy(const barnes_hut_options& options, const body* bodies, bool half_step);

struct barnes_hut_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // barnes_hut_serial(), by this computer's clock; 0 when not checked
  double error = 0;  // root mean square relative error of the tree's forces on a sample of bodies
  // Checked: equal to the serial reference bit for bit, and the error is small.
  bool correct = false;
  // Relative, over all steps; 0 when not checked or for more than 20000 bodies.
  double energy_drift = 0;
  std::uint64_t tasks = 0;  // accepted by the runtime, pieces of diced ones included
};

barnes_hut_report run_barnes_hut(lev::runtime& runtime, const barnes_hut_options& options);

}  // namespace leveret_apps
