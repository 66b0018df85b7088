// The likelihood of a phylogenetic tree: how probable the DNA of some species is if they descend
// from each other as the tree says (Felsenstein's pruning, 1981).
//
// Papers: SLED, section 4: what PBPI (107 species) and RAxML (40 species) offload, a short task
// for each inner node. Written from the published mathematics: the general time-reversible model
// (Tavare, 1986), which with equal rates and frequencies is Jukes and Cantor's (1969), and four
// categories of gamma distributed rates, each the mean of its quarter (Yang, 1994).
#pragma once

#include <cstddef>
#include <cstdint>
#include <leveret/leveret.hpp>
#include <vector>

namespace leveret_apps {

constexpr unsigned rate_categories = 4;

// How DNA changes. States are A, C, G and T, in this order.
struct substitution_model {
  double exchange[6] = {1.2, 3.5, 0.8, 1.1, 4.0, 1.0};  // AC AG AT CG CT GT; more than 0
  double frequency[4] = {0.3, 0.2, 0.2, 0.3};           // more than 0; their sum is 1
  double alpha = 0.5;  // shape of the gamma distribution, 0.02 to 1000: large is "all sites alike"
};

// jukes_cantor() is the model of equal rates and frequencies.
substitution_model jukes_cantor(double alpha);

// An inner node: numbers of its two children, and the expected substitutions of a site on the way
// to each.
struct inner_node {
  std::uint32_t child[2];
  double length[2];  // 0 to 1000
};

// Nodes 0 to species - 1 are the species; then come the inner nodes, children before parents. The
// last one is the root.
struct phylogeny {
  std::uint32_t species = 0;      // 2 to 2^20
  std::vector<inner_node> inner;  // species - 1
};

// The DNA of all species, a row of `sites` sites for each. A site is a set of states, 1 + 2 + 4 + 8
// for A, C, G, T: 1 is A, 5 is A or G, 15 is unknown, or a gap.
struct alignment {
  std::size_t sites = 0;
  std::vector<std::uint8_t> states;  // species * sites
};

// When a node's task may start: when all nodes of lower levels are done, as in a program that waits
// for what it offloads; or when its children are.
enum class likelihood_schedule { phases, dependencies };

struct likelihood_options {
  unsigned species = 107;
  std::size_t sites = 1000;
  substitution_model model;
  unsigned tasks = 1;  // tasks of an inner node: each has its part of the sites
  bool dice = true;
  likelihood_schedule schedule = likelihood_schedule::dependencies;
  unsigned steps = 1;  // trees: each after the first has another length of one branch
  std::uint64_t seed = 1;
  bool check = true;  // compare with likelihood_serial() and likelihood_plain()
};

// likelihood_make() makes a random tree, and lets DNA evolve on it by the model; 1 % of the sites
// is unknown. Same options, same data.
void likelihood_make(const likelihood_options& options, phylogeny* tree, alignment* dna);

// likelihood_step() changes the length of one branch. Same seed and step, same change.
void likelihood_step(std::uint64_t seed, unsigned step, phylogeny* tree);

// A tree's likelihood, again and again: keeps the conditional likelihoods, 128 bytes for each site
// and inner node, in shared memory.
class likelihood_evaluation {
 public:
  // Throws lev::error: bad_argument (a tree, an alignment or a model that makes no sense),
  // out_of_memory.
  likelihood_evaluation(const substitution_model& model, const phylogeny& tree,
                        const alignment& dna);
  ~likelihood_evaluation();
  likelihood_evaluation(likelihood_evaluation&&) = delete;

  // with_tasks() computes the natural logarithm of each site's likelihood, and returns their sum.
  // `tree` has the species and children that the constructor was given, and any lengths. Of the
  // options it takes tasks, dice and schedule. Waits for all tasks. Throws lev::error when the
  // runtime refuses a task: too_big for one that is larger than the local store and not diced.
  double with_tasks(lev::runtime& runtime, const phylogeny& tree,
                    const likelihood_options& options);
  // serially() does the same, bit for bit.
  double serially(const phylogeny& tree);
  // Of the last tree.
  const double* site_logs() const noexcept;

 private:
  struct state;
  struct cutter;
  static void in_phases(lev::runtime& runtime, state& s, const cutter& cut);
  static void by_dependencies(lev::runtime& runtime, state& s, const cutter& cut);
  state* state_;
};

// likelihood_plain() is the reference that knows nothing of conditional likelihoods that are kept,
// scaled or looked up: one site after the other, from the root down, with 64 bits of precision, and
// transition probabilities by a series. For up to 4096 species. Returns the sum; `site_logs` may be
// null.
double likelihood_plain(const substitution_model& model, const phylogeny& tree,
                        const alignment& dna, double* site_logs);

struct likelihood_report {
  double seconds = 0;         // by the machine's clock: virtual on `sim`
  double serial_seconds = 0;  // serially(), by this computer's clock; 0 when not checked
  double error = 0;           // of the last tree's sites against likelihood_plain(), relative
  // Checked: each step equals the serial one bit for bit, and the error is small.
  bool correct = false;
  double log_likelihood = 0;  // of the last tree
  std::uint64_t tasks = 0;    // accepted by the runtime, pieces of diced ones included
};

// run_likelihood() makes data and evaluates options.steps trees. Throws as with_tasks() does, and
// std::bad_alloc.
likelihood_report run_likelihood(lev::runtime& runtime, const likelihood_options& options);

}  // namespace leveret_apps
