// The likelihood of a tree: by hand, by the plain recursion, and tasks against the serial one.
#include <algorithm>
#include <cmath>
#include <leveret_apps/likelihood.hpp>
#include <vector>

#include "app_fixture.hpp"

using leveret_apps::alignment;
using leveret_apps::likelihood_evaluation;
using leveret_apps::likelihood_options;
using leveret_apps::likelihood_schedule;
using leveret_apps::phylogeny;

namespace {

likelihood_options data_of(unsigned species, std::size_t sites) {
  likelihood_options o;
  o.species = species;
  o.sites = sites;
  o.seed = species;
  return o;
}

likelihood_options handed_over(unsigned tasks, bool dice,
                               likelihood_schedule schedule = likelihood_schedule::dependencies) {
  likelihood_options o;
  o.tasks = tasks;
  o.dice = dice;
  o.schedule = schedule;
  return o;
}

std::vector<double> logs_of(const likelihood_evaluation& evaluation, std::size_t sites) {
  return {evaluation.site_logs(), evaluation.site_logs() + sites};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-10 * std::abs(expected[i])) << "site " << i;
  }
}

TEST(likelihood_serial, equals_the_plain_recursion) {
  for (const unsigned species : {2u, 3u, 40u, 107u}) {
    const likelihood_options o = data_of(species, 50);
    phylogeny tree;
    alignment dna;
    leveret_apps::likelihood_make(o, &tree, &dna);
    for (const auto& model : {o.model, leveret_apps::jukes_cantor(3)}) {
      std::vector<double> plain(dna.sites);
      const double sum = likelihood_plain(model, tree, dna, plain.data());
      likelihood_evaluation evaluation(model, tree, dna);
      EXPECT_NEAR(evaluation.serially(tree), sum, 1e-10 * std::abs(sum));
      expect_near(logs_of(evaluation, dna.sites), plain);
    }
  }
}

// Nobody knows anything of a site, so it is certain; nothing happens on branches of length 0.
TEST(likelihood_serial, of_the_unknown_is_one_and_of_the_impossible_zero) {
  const phylogeny tree{2, {{{0, 1}, {0, 0}}}};
  const alignment dna{3, {15, 1, 1, 15, 2, 1}};
  likelihood_evaluation evaluation(leveret_apps::jukes_cantor(1), tree, dna);
  evaluation.serially(tree);
  EXPECT_NEAR(evaluation.site_logs()[0], 0, 1e-15);
  EXPECT_LT(evaluation.site_logs()[1], -30);
  EXPECT_NEAR(evaluation.site_logs()[2], std::log(0.25), 1e-14);
}

TEST(likelihood_serial, of_many_species_does_not_underflow) {
  const likelihood_options o = data_of(3000, 10);
  phylogeny tree;
  alignment dna;
  leveret_apps::likelihood_make(o, &tree, &dna);
  std::vector<double> plain(dna.sites);
  likelihood_plain(o.model, tree, dna, plain.data());
  EXPECT_LT(*std::min_element(plain.begin(), plain.end()), std::log(0x1p-1022));
  likelihood_evaluation evaluation(o.model, tree, dna);
  evaluation.serially(tree);
  expect_near(logs_of(evaluation, dna.sites), plain);
}

using likelihood_test = app_test;
INSTANTIATE_TEST_SUITE_P(machines, likelihood_test, every_case, case_name);

TEST_P(likelihood_test, equals_serial_for_any_number_of_tasks) {
  const likelihood_options o = data_of(40, 97);
  phylogeny tree;
  alignment dna;
  leveret_apps::likelihood_make(o, &tree, &dna);
  likelihood_evaluation evaluation(o.model, tree, dna);
  const double sum = evaluation.serially(tree);
  const std::vector<double> expected = logs_of(evaluation, dna.sites);
  for (const auto schedule : {likelihood_schedule::phases, likelihood_schedule::dependencies}) {
    for (const unsigned tasks : {0u, 1u, 2u, 7u, 97u, 1000u}) {
      const likelihood_options how = handed_over(tasks, dice(), schedule);
      EXPECT_EQ(evaluation.with_tasks(runtime(), tree, how), sum) << tasks << " tasks";
      EXPECT_EQ(logs_of(evaluation, dna.sites), expected) << tasks << " tasks";
    }
  }
}

TEST_P(likelihood_test, follows_the_lengths_of_branches) {
  const likelihood_options o = data_of(20, 30);
  phylogeny tree;
  alignment dna;
  leveret_apps::likelihood_make(o, &tree, &dna);
  likelihood_evaluation evaluation(o.model, tree, dna);
  double last = 0;
  for (unsigned step = 0; step < 4; ++step) {
    leveret_apps::likelihood_step(o.seed, step, &tree);
    const double sum = evaluation.with_tasks(runtime(), tree, handed_over(2, dice()));
    EXPECT_NEAR(sum, likelihood_plain(o.model, tree, dna, nullptr), 1e-9 * std::abs(sum));
    EXPECT_NE(sum, last);
    last = sum;
  }
}

TEST_P(likelihood_test, run_reports_a_correct_result) {
  likelihood_options o = data_of(107, 120);
  o.steps = 3;
  o.tasks = 2;
  o.dice = dice();
  const auto report = run_likelihood(runtime(), o);
  EXPECT_TRUE(report.correct);
  EXPECT_LT(report.error, 1e-10);
  EXPECT_LT(report.log_likelihood, 0);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GT(report.serial_seconds, 0);
  EXPECT_GE(report.tasks, 3u * 2u * 107u);
}

TEST_P(likelihood_test, another_tree_than_before_is_refused) {
  const phylogeny tree{3, {{{0, 1}, {0.1, 0.1}}, {{3, 2}, {0.1, 0.1}}}};
  const phylogeny other{3, {{{0, 2}, {0.1, 0.1}}, {{3, 1}, {0.1, 0.1}}}};
  likelihood_evaluation evaluation(leveret_apps::jukes_cantor(1), tree, {1, {1, 2, 4}});
  const likelihood_options o = handed_over(1, dice());
  EXPECT_THROW(evaluation.with_tasks(runtime(), other, o), lev::error);
  phylogeny longer = tree;
  longer.inner[0].length[0] = -1;
  EXPECT_THROW(evaluation.with_tasks(runtime(), longer, o), lev::error);
}

// 3,000 sites of 128 bytes, for a node and its two children, are more than a store of 256 KiB.
TEST_P(likelihood_test, strip_mines_or_refuses_what_is_larger_than_the_local_store) {
  likelihood_options o = data_of(10, 3000);
  try {
    EXPECT_TRUE((o.dice = dice(), run_likelihood(runtime(), o)).correct);
  } catch (const lev::error& e) {
    EXPECT_EQ(e.code(), lev::status::too_big);
    EXPECT_FALSE(dice());
    EXPECT_STREQ(GetParam().machine, "sim");  // copies all arguments
  }
}

TEST(likelihood_on_processes, is_correct) {
  if (const char* why = lev::machine_unavailable("processes")) GTEST_SKIP() << why;
  lev::config config;
  config.machine = "processes";
  config.workers = 2;
  lev::runtime runtime(config);
  likelihood_options o = data_of(40, 200);
  o.steps = 2;
  EXPECT_TRUE(run_likelihood(runtime, o).correct);
}

// On `sim` equal seeds repeat a run, other seeds other schedules, and none changes a result.
TEST(likelihood_on_sim, is_the_same_for_200_seeds) {
  const likelihood_options o = data_of(12, 40);
  phylogeny tree;
  alignment dna;
  leveret_apps::likelihood_make(o, &tree, &dna);
  likelihood_evaluation evaluation(o.model, tree, dna);
  const double expected = evaluation.serially(tree);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    lev::config config;
    config.machine = "sim";
    config.workers = 3;
    config.seed = seed;
    lev::runtime runtime(config);
    ASSERT_EQ(evaluation.with_tasks(runtime, tree, handed_over(3, true)), expected)
        << "seed " << seed;
  }
}

}  // namespace
