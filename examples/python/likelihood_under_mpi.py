"""MPI ranks that share their node's workers: trees whose evaluation crashes count as impossible.

mpirun -n 4 python likelihood_under_mpi.py

Needs mpi4py and a C compiler. Each rank proposes trees, and hands their evaluation to the workers.
"""

import math
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from mpi4py import MPI

import leveret

LIBRARY = r"""
/* The likelihood of a tree by Felsenstein's pruning, with Jukes and Cantor's model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { nodes_max = 64 };

/* children, lengths: two for each of n inner nodes; bases: 0 to 3 for each site and species.
   Species are nodes 0 to n, inner nodes follow, children before parents; the last is the root. */
void evaluate(size_t two_n, const int* children, const double* lengths, size_t count,
              const unsigned char* bases, double* sum) {
  const size_t n = two_n / 2, sites = count / (n + 1);
  double all = 0;
  for (size_t site = 0; site < sites; ++site) {
    double shown[nodes_max][4];
    memset(shown, 0, sizeof shown);
    for (size_t s = 0; s <= n; ++s) shown[s][bases[site * (n + 1) + s]] = 1;
    for (size_t i = 0; i < n; ++i) {
      for (int base = 0; base < 4; ++base) {
        double node = 1;
        for (int side = 0; side < 2; ++side) {
          const double* child = shown[children[2 * i + side]];
          const double other = (1 - exp(-4 * lengths[2 * i + side] / 3)) / 4;
          node *= other * (child[0] + child[1] + child[2] + child[3]) +
                  (1 - 4 * other) * child[base];
        }
        shown[n + 1 + i][base] = node;
      }
    }
    const double* root = shown[2 * n];
    all += log((root[0] + root[1] + root[2] + root[3]) / 4);
  }
  if (isnan(all)) abort(); /* stands for the bug of a large program */
  *sum = all;
}
"""

SIGNATURE = "count(1), in i4, in f8[count(1)], count(4), in u1, result f8"
SPECIES, SITES, TREES = 8, 400, 100


def build(folder: Path) -> str:
    """Compiles the library; a real program has one that is installed."""
    source, library = folder / "likelihood.c", folder / "likelihood.so"
    source.write_text(LIBRARY)
    compiler = shutil.which("cc") or "gcc"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    return str(library)


def search(runtime: leveret.Runtime, library: str, rank: int, ranks: int) -> tuple[float, int]:
    """The best of this rank's trees, and how many crashed."""
    evaluate = leveret.load(library, "evaluate", SIGNATURE)
    bases = np.random.default_rng(1).integers(0, 4, SITES * SPECIES, np.uint8)
    children = np.arange(2 * (SPECIES - 1), dtype=np.int32)  # each node joins the next two
    best, crashed = -math.inf, 0
    for i in range(rank, TREES, ranks):
        lengths = np.random.default_rng(i).random(children.size)
        if i % 10 == 9:
            lengths[0] = math.nan
        try:
            value = runtime.submit(evaluate, children, lengths, bases).result()
        except leveret.Poison:
            value, crashed = -math.inf, crashed + 1
        best = max(best, value)
    return best, crashed


comm = MPI.COMM_WORLD
pool = leveret.mpi.pool_name(comm)
with tempfile.TemporaryDirectory() as folder:
    library = build(Path(folder))
    with leveret.Runtime("processes", workers=2, pool=pool, max_attempts=1) as runtime:
        best, crashed = search(runtime, library, comm.rank, comm.size)
best, crashed = comm.allreduce(best, op=MPI.MAX), comm.allreduce(crashed)
if comm.rank == 0:
    print(f"{comm.size} ranks, {TREES} trees, {crashed} crashed, the best: {best:.1f}")
assert crashed == TREES // 10 and math.isfinite(best)
