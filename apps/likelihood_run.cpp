// The likelihood of a tree: generated trees and DNA, a reference that shares nothing with the
// tasks but the rate matrix and the categories' rates, and a run with its checks.
#include <algorithm>
#include <cmath>
#include <vector>

#include "leveret_apps/likelihood.hpp"
#include "likelihood_model.hpp"
#include "random.hpp"
#include "stopwatch.hpp"

namespace leveret_apps {
namespace {

// Rounding of some thousand sums; sites' logarithms are at least of the order of 1.
constexpr double allowed_error = 1e-9;

// Each species takes two bits of a site's likelihood, at worst, and a long double has 16,000.
constexpr unsigned plain_species_max = 4096;

unsigned draw(random_numbers& random, const double* weights) {
  double left = random.next();
  for (unsigned i = 0; i < 3; ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return 3;
}

struct plain_matrix {
  long double of[4][4];
};

plain_matrix product(const plain_matrix& a, const plain_matrix& b) {
  plain_matrix c;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      c.of[i][j] = 0;
      for (int k = 0; k < 4; ++k) c.of[i][j] += a.of[i][k] * b.of[k][j];
    }
  }
  return c;
}

// exp(Q t): the series for t / 2^n, where it converges at once, squared n times.
plain_matrix exponential(const double q[4][4], long double t) {
  int squarings = 0;
  for (; t > 0.01L; t /= 2) ++squarings;
  plain_matrix step;
  plain_matrix sum = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
  plain_matrix term = sum;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) step.of[i][j] = q[i][j] * t;
  }
  for (int n = 1; n < 12; ++n) {
    term = product(term, step);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) sum.of[i][j] += (term.of[i][j] /= n);
    }
  }
  for (int i = 0; i < squarings; ++i) sum = product(sum, sum);
  return sum;
}

class plain_tree {
 public:
  plain_tree(const substitution_model& model, const phylogeny& tree, const alignment& dna)
      : model_(model), tree_(tree), dna_(dna) {
    double q[4][4];
    double rates[rate_categories];
    rate_matrix(model, q);
    gamma_rates(model.alpha, rates);
    for (const inner_node& node : tree.inner) {
      for (const double length : node.length) {
        for (const double rate : rates) {
          along_.push_back(exponential(q, static_cast<long double>(length) * rate));
        }
      }
    }
  }

  long double site_log(std::size_t site) const {
    const std::size_t root = tree_.species + tree_.inner.size() - 1;
    long double sum = 0;
    for (unsigned c = 0; c < rate_categories; ++c) {
      long double below[4];
      show(root, site, c, below);
      for (int i = 0; i < 4; ++i) sum += model_.frequency[i] * below[i];
    }
    return std::log(sum / rate_categories);
  }

 private:
  // The probability of the data below `node`, for each of its states.
  void show(std::size_t node, std::size_t site, unsigned category, long double shown[4]) const {
    if (node < tree_.species) {
      const unsigned set = dna_.states[node * dna_.sites + site];
      for (int i = 0; i < 4; ++i) shown[i] = set >> i & 1;
      return;
    }
    const std::size_t n = node - tree_.species;
    std::fill(shown, shown + 4, 1.0L);
    for (std::size_t side = 0; side < 2; ++side) {
      long double below[4];
      show(tree_.inner[n].child[side], site, category, below);
      const plain_matrix& p = along_[(2 * n + side) * rate_categories + category];
      for (int i = 0; i < 4; ++i) {
        long double sum = 0;
        for (int j = 0; j < 4; ++j) sum += p.of[i][j] * below[j];
        shown[i] *= sum;
      }
    }
  }

  const substitution_model& model_;
  const phylogeny& tree_;
  const alignment& dna_;
  std::vector<plain_matrix> along_;
};

void evolve(const likelihood_options& options, const phylogeny& tree, random_numbers& random,
            alignment* dna) {
  const transitions along(options.model);
  std::vector<branch> branches;
  for (const inner_node& node : tree.inner) {
    for (const double length : node.length) branches.push_back(along.along(length));
  }
  dna->sites = options.sites;
  dna->states.assign(options.sites * tree.species, 0);
  std::vector<unsigned> shown(tree.species + tree.inner.size());
  for (std::size_t site = 0; site < options.sites; ++site) {
    const auto category = static_cast<unsigned>(random.next() * rate_categories);
    shown.back() = draw(random, options.model.frequency);
    for (std::size_t n = tree.inner.size(); n-- > 0;) {
      for (std::size_t side = 0; side < 2; ++side) {
        double weights[4];
        const unsigned from = shown[tree.species + n];
        for (int j = 0; j < 4; ++j) weights[j] = branches[2 * n + side].of[category][j][from];
        shown[tree.inner[n].child[side]] = draw(random, weights);
      }
    }
    for (std::size_t s = 0; s < tree.species; ++s) {
      const bool is_known = random.next() >= 0.01;
      dna->states[s * options.sites + site] =
          is_known ? static_cast<std::uint8_t>(1u << shown[s]) : std::uint8_t{15};
    }
  }
}

}  // namespace

void likelihood_make(const likelihood_options& options, phylogeny* tree, alignment* dna) {
  if (options.species < 2 || options.species > 1u << 20) {
    throw lev::error(lev::status::bad_argument, -1, "likelihood: species must be 2 to 2^20");
  }
  random_numbers random(options.seed);
  tree->species = options.species;
  tree->inner.clear();
  std::vector<std::uint32_t> roots(options.species);  // of the trees that are not joined yet
  for (std::uint32_t i = 0; i < options.species; ++i) roots[i] = i;
  while (roots.size() > 1) {
    inner_node node;
    for (std::size_t side = 0; side < 2; ++side) {
      std::swap(roots[static_cast<std::size_t>(random.next() * roots.size())], roots.back());
      node.child[side] = roots.back();
      node.length[side] = 0.005 + 0.2 * random.next();
      roots.pop_back();
    }
    roots.push_back(static_cast<std::uint32_t>(options.species + tree->inner.size()));
    tree->inner.push_back(node);
  }
  evolve(options, *tree, random, dna);
}

void likelihood_step(std::uint64_t seed, unsigned step, phylogeny* tree) {
  if (step == 0 || tree->inner.empty()) return;
  random_numbers random(seed * 1000003 + step);
  const auto node = static_cast<std::size_t>(random.next() * tree->inner.size());
  const std::size_t side = random.next() < 0.5 ? 0 : 1;
  tree->inner[node].length[side] = 0.005 + 0.2 * random.next();
}

double likelihood_plain(const substitution_model& model, const phylogeny& tree,
                        const alignment& dna, double* site_logs) {
  const plain_tree plain(model, tree, dna);
  long double sum = 0;
  for (std::size_t site = 0; site < dna.sites; ++site) {
    const long double each = plain.site_log(site);
    if (site_logs != nullptr) site_logs[site] = static_cast<double>(each);
    sum += each;
  }
  return static_cast<double>(sum);
}

likelihood_report run_likelihood(lev::runtime& runtime, const likelihood_options& options) {
  if (options.check && options.species > plain_species_max) {
    throw lev::error(lev::status::bad_argument, -1,
                     "likelihood: species must be at most 4096 to be checked");
  }
  phylogeny tree;
  alignment dna;
  likelihood_make(options, &tree, &dna);
  const phylogeny first = tree;
  likelihood_evaluation evaluation(options.model, tree, dna);
  const unsigned steps = std::max(1u, options.steps);
  likelihood_report report;
  std::vector<double> found;
  const std::uint64_t tasks_before = runtime.count().submitted;
  report.seconds = machine_seconds(runtime, [&] {
    for (unsigned step = 0; step < steps; ++step) {
      likelihood_step(options.seed, step, &tree);
      found.push_back(evaluation.with_tasks(runtime, tree, options));
    }
  });
  report.tasks = runtime.count().submitted - tasks_before;
  report.log_likelihood = found.back();
  if (!options.check) return report;

  const double* logs = evaluation.site_logs();
  const std::vector<double> found_logs(logs, logs + dna.sites);
  tree = first;
  std::vector<double> expected;
  report.serial_seconds = host_seconds([&] {
    for (unsigned step = 0; step < steps; ++step) {
      likelihood_step(options.seed, step, &tree);
      expected.push_back(evaluation.serially(tree));
    }
  });
  std::vector<double> plain(dna.sites);
  likelihood_plain(options.model, tree, dna, plain.data());
  for (std::size_t site = 0; site < dna.sites; ++site) {
    const double difference = std::abs(found_logs[site] - plain[site]);
    report.error = std::max(report.error, difference / std::max(1.0, std::abs(plain[site])));
  }
  report.correct = found == expected && std::equal(found_logs.begin(), found_logs.end(), logs) &&
                   report.error <= allowed_error;
  return report;
}

}  // namespace leveret_apps
