// A rank of the tests under MPI (test_mpi.py), which shares the workers of its node.
//
//   rank names           prints the names of pools: of all ranks, of two halves, of all again
//   rank abort TASKS     so many tasks that abort, and as many that do not, of all ranks together
//   rank die WHERE       rank 1 kills itself at WHERE: opened, waiting, in_task
#include <mpi.h>

#include <leveret/leveret.hpp>
#include <leveret/mpi.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

namespace {

const auto nothing = lev::define("nothing", [] {});
const auto double_it = lev::define("double_it", [](int i, bool aborts, lev::result<int> twice) {
  if (aborts) std::abort();
  twice = 2 * i;
});
// Only its worker's end ends it.
const auto never_end = lev::define("never_end", [] { pause(); });
// The host's end, seen from a task of it.
const auto kill_host = lev::define("kill_host", [](int host) { kill(host, SIGKILL); });

lev::config shared(const std::string& pool) {
  lev::config c;
  c.machine = "processes";
  c.processes.pool = pool.c_str();
  c.workers = 2;
  c.processes.max_attempts = 1;
  return c;
}

int names(int rank) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  const std::string all = lev::pool_name(MPI_COMM_WORLD);
  const std::string part = lev::pool_name(half);
  const std::string again = lev::pool_name(MPI_COMM_WORLD);
  MPI_Comm_free(&half);
  std::printf("%s %s %s\n", all.c_str(), part.c_str(), again.c_str());
  try {
    lev::pool_name(MPI_COMM_NULL);
  } catch (const lev::error& e) {
    return e.code() == lev::status::bad_argument ? 0 : 1;
  }
  return 1;
}

// The findings of all ranks: tasks that were named as crashed, and right results of others.
int abort_tasks(int rank, int ranks, int tasks) {
  int found[2] = {};
  int sums[2] = {};
  {
    const std::string pool = lev::pool_name(MPI_COMM_WORLD);
    lev::runtime runtime(shared(pool));
    for (int i = rank; i < 2 * tasks; i += ranks) {
      int twice = -1;
      try {
        runtime.submit(double_it, i, i < tasks, twice).wait();
        found[1] += twice == 2 * i;
      } catch (const lev::error& e) {
        found[0] += e.code() == lev::status::poison && std::strstr(e.what(), "SIGABRT") != nullptr;
      }
    }
  }
  MPI_Allreduce(found, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("rank %d of %d: %d named, %d right\n", rank, ranks, sums[0], sums[1]);
  return sums[0] == tasks && sums[1] == tasks ? 0 : 1;
}

int die(int rank, const std::string& where) {
  const std::string pool = lev::pool_name(MPI_COMM_WORLD);
  lev::runtime runtime(shared(pool));
  runtime.submit(nothing).wait();
  std::printf("pool %s\n", pool.c_str());
  std::fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && where == "opened") raise(SIGKILL);
  if (rank == 1 && where == "in_task") runtime.submit(kill_host, getpid()).wait();
  if (rank == 1 && where == "waiting") {
    runtime.post(never_end);
    runtime.submit(kill_host, getpid()).wait();
  }
  // Other ranks' tasks might be in front of the one that kills, on its worker.
  if (rank % 2 == 0 && where == "opened") runtime.submit(never_end).wait();
  MPI_Barrier(MPI_COMM_WORLD);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  MPI_Init(&count, &words);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string what = words[1];
  int result = 2;
  if (what == "names") result = names(rank);
  if (what == "abort" && count > 2) result = abort_tasks(rank, ranks, std::atoi(words[2]));
  if (what == "die" && count > 2) result = die(rank, words[2]);
  MPI_Finalize();
  return result;
}
