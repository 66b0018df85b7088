// A search for the best tree, as MPI ranks that share their node's worker processes. Evaluating
// some trees crashes: such a tree counts as impossible, and no rank is lost.
//
//   mpicxx -std=c++20 mpi_likelihood.cpp -lleveret -lpthread && mpirun -n 4 ./a.out
#include <mpi.h>

#include <leveret/leveret.hpp>
#include <leveret/mpi.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

constexpr int species = 8;
constexpr int sites = 400;

// Node i joins two nodes with smaller numbers; 0 to 7 are the species, 14 is the root.
struct inner_node {
  int child[2];
  double length[2];
};

// Felsenstein's pruning with Jukes and Cantor's model: for one site, the probability of the data
// below each node, for each base it may have had.
static double site_log(lev::in<inner_node> tree, const unsigned char* bases) {
  double shown[2 * species - 1][4] = {};
  for (int s = 0; s < species; ++s) shown[s][bases[s]] = 1;
  for (std::size_t n = 0; n < tree.size(); ++n) {
    for (int base = 0; base < 4; ++base) {
      shown[species + n][base] = 1;
      for (int side = 0; side < 2; ++side) {
        const double* child = shown[tree[n].child[side]];
        const double other = (1 - std::exp(-4 * tree[n].length[side] / 3)) / 4;
        const double all = child[0] + child[1] + child[2] + child[3];
        shown[species + n][base] *= other * all + (1 - 4 * other) * child[base];
      }
    }
  }
  const double* root = shown[2 * species - 2];
  return std::log((root[0] + root[1] + root[2] + root[3]) / 4);
}

static const auto evaluate = lev::define(
    "evaluate", [](lev::in<inner_node> tree, lev::in<unsigned char> dna, lev::result<double> sum) {
      double all = 0;
      for (std::size_t s = 0; s < dna.size() / species; ++s) {
        all += site_log(tree, &dna[s * species]);
      }
      if (std::isnan(all)) std::abort();  // stands for the bug of a large program
      sum = all;
    });

// The i-th tree of the search; every tenth has a length that is no number.
static std::vector<inner_node> proposal(int i) {
  std::mt19937 random(static_cast<unsigned>(i));
  std::vector<inner_node> tree;
  for (int n = 0; n < species - 1; ++n) {
    const double length = static_cast<double>(random()) / random.max();
    tree.push_back({{2 * n, 2 * n + 1}, {length, i % 10 == 9 ? std::nan("") : 1 - length}});
  }
  return tree;
}

// The best of this rank's part of the trees. `crashed` counts those that ended their worker.
static double search(const std::string& pool, int rank, int ranks, int* crashed) {
  std::mt19937 random(1);
  std::vector<unsigned char> dna(sites * species);
  for (unsigned char& base : dna) base = random() % 4;
  lev::config c;
  c.machine = "processes";
  c.processes.pool = pool.c_str();
  c.workers = 2;
  lev::runtime runtime(c);
  double best = -INFINITY;
  for (int i = rank; i < 100; i += ranks) {
    const std::vector<inner_node> tree = proposal(i);
    double log_likelihood = 0;
    try {
      runtime.submit(evaluate, tree, dna, log_likelihood).wait();
    } catch (const lev::error& e) {
      if (e.code() != lev::status::poison) throw;
      log_likelihood = -INFINITY;
      ++*crashed;
    }
    best = std::max(best, log_likelihood);
  }
  return best;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0, ranks = 0, crashed = 0, all_crashed = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double best_of_all = 0;
  const double best = search(lev::pool_name(MPI_COMM_WORLD), rank, ranks, &crashed);
  MPI_Allreduce(&best, &best_of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&crashed, &all_crashed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%d ranks, 100 trees, %d crashed, the best has a logarithm of %.1f\n", ranks,
                all_crashed, best_of_all);
  }
  const bool right = all_crashed == 10 && std::isfinite(best_of_all);
  MPI_Finalize();
  return right ? 0 : 1;
}
