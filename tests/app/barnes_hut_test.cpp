// Barnes-Hut: the serial reference against direct sums, and tasks against the serial reference.
#include <cmath>
#include <cstring>
#include <leveret_apps/barnes_hut.hpp>
#include <vector>

#include "app_fixture.hpp"

using namespace leveret_apps;

namespace {

barnes_hut_options small_options() {
  barnes_hut_options options;
  options.bodies = 700;
  options.steps = 2;
  options.set_bodies = 100;
  options.move_bodies = 64;
  options.leaf_bodies = 4;
  return options;
}

std::vector<body> make_bodies(const barnes_hut_options& options) {
  std::vector<body> bodies(options.bodies);
  barnes_hut_make_bodies(options.bodies, options.seed, bodies.data());
  return bodies;
}

// Of the worst body, as a part of the average force.
double force_error(const barnes_hut_options& options, const std::vector<body>& bodies) {
  std::vector<acceleration> by_tree(bodies.size());
  barnes_hut_forces(options, bodies.data(), by_tree.data());
  double worst = 0;
  double sum = 0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const acceleration exact = barnes_hut_direct(options, bodies.data(), i);
    worst = std::max(worst, std::hypot(by_tree[i].x - exact.x, by_tree[i].y - exact.y));
    sum += std::hypot(exact.x, exact.y);
  }
  return worst * static_cast<double>(bodies.size()) / sum;
}

TEST(barnes_hut_serial, sums_every_pair_when_theta_is_zero) {
  auto options = small_options();
  options.theta = 0;
  const auto bodies = make_bodies(options);
  for (const unsigned set_bodies : {700u, 350u, 100u, 33u, 1u}) {
    options.set_bodies = set_bodies;
    EXPECT_LT(force_error(options, bodies), 1e-11) << set_bodies;
  }
}

TEST(barnes_hut_serial, is_the_same_interaction_list_however_the_tree_is_cut) {
  auto options = small_options();
  const auto bodies = make_bodies(options);
  options.set_bodies = 700;
  std::vector<acceleration> whole(bodies.size());
  barnes_hut_forces(options, bodies.data(), whole.data());
  for (const unsigned set_bodies : {350u, 100u, 9u, 1u}) {
    options.set_bodies = set_bodies;
    std::vector<acceleration> cut(bodies.size());
    barnes_hut_forces(options, bodies.data(), cut.data());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      EXPECT_NEAR(cut[i].x, whole[i].x, 1e-12 * (1 + std::abs(whole[i].x)));
      EXPECT_NEAR(cut[i].y, whole[i].y, 1e-12 * (1 + std::abs(whole[i].y)));
    }
  }
}

TEST(barnes_hut_serial, errs_little_at_the_default_theta) {
  const auto options = small_options();
  EXPECT_LT(force_error(options, make_bodies(options)), 0.2);
}

TEST(barnes_hut_serial, builds_a_tree_over_bodies_in_one_place) {
  auto options = small_options();
  options.bodies = 20;
  std::vector<body> bodies(20);
  for (std::size_t i = 0; i < 20; ++i) bodies[i] = {1, 2, 0, 0, 0.05, i};
  barnes_hut_serial(options, bodies.data());
  for (const body& b : bodies) EXPECT_EQ(b.x, 1) << b.number;
}

TEST(barnes_hut_serial, conserves_energy_to_second_order) {
  auto options = small_options();
  options.bodies = 100;
  options.softening = 0.1;
  options.theta = 0;
  const auto initial = make_bodies(options);
  double drift[2];
  for (const unsigned i : {0u, 1u}) {
    options.step = i == 0 ? 0.02 : 0.01;
    options.steps = i == 0 ? 50 : 100;
    auto bodies = initial;
    const double before = barnes_hut_energy(options, bodies.data(), false);
    barnes_hut_serial(options, bodies.data());
    drift[i] = std::abs(barnes_hut_energy(options, bodies.data(), true) / before - 1);
  }
  EXPECT_LT(drift[0], 1e-3);
  EXPECT_LT(drift[1], drift[0] / 3);
}

using barnes_hut_test = app_test;
INSTANTIATE_TEST_SUITE_P(machines, barnes_hut_test, every_case, case_name);

TEST_P(barnes_hut_test, equals_serial) {
  auto options = small_options();
  options.dice = dice();
  const auto initial = make_bodies(options);
  for (const unsigned set_bodies : {700u, 350u, 100u, 60u}) {
    options.set_bodies = set_bodies;
    auto expected = initial;
    barnes_hut_serial(options, expected.data());
    auto bodies = initial;
    barnes_hut(runtime(), options, bodies.data());
    EXPECT_EQ(std::memcmp(bodies.data(), expected.data(), bodies.size() * sizeof(body)), 0)
        << set_bodies;
  }
}

TEST_P(barnes_hut_test, moves_one_two_and_three_bodies) {
  for (const std::size_t count : {1u, 2u, 3u}) {
    auto options = small_options();
    options.bodies = count;
    options.dice = dice();
    options.set_bodies = 1;
    options.leaf_bodies = 1;
    auto expected = make_bodies(options);
    auto bodies = expected;
    barnes_hut_serial(options, expected.data());
    barnes_hut(runtime(), options, bodies.data());
    EXPECT_EQ(std::memcmp(bodies.data(), expected.data(), count * sizeof(body)), 0) << count;
  }
}

TEST_P(barnes_hut_test, run_reports_a_correct_result) {
  auto options = small_options();
  options.dice = dice();
  const auto report = run_barnes_hut(runtime(), options);
  EXPECT_TRUE(report.correct);
  EXPECT_LT(report.error, 0.025);
  EXPECT_LT(report.energy_drift, 0.01);
  EXPECT_GT(report.seconds, 0);
  // At least: 2 steps of 7 rotations of 7 tasks and 11 moves.
  EXPECT_GE(report.tasks, 2u * (7 * 7 + 11));
}

}  // namespace
