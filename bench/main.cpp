// leveret-bench: runs one bench and prints its figures.
//
//   leveret-bench NAME [--json] [--quick]
//   leveret-bench --list
#include "registry.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace {

struct entry {
  const char* name;
  const char* what;
  bench::bench_function run;
};

constexpr entry benches[] = {
    {"null-task", "hot round trip of an empty task, against a cache-line ping-pong",
     bench::null_task},
    {"check-cost", "share of a round trip that checks its arguments", bench::check_cost},
    {"wake", "round trip to a worker that sleeps, against a bare futex", bench::wake},
    {"throughput", "a million empty tasks from one submitter", bench::throughput},
    {"efficiency", "tasks of 0.5 to 50 us: share of the cores' time that is work",
     bench::efficiency},
    {"imbalance", "Mandelbrot in 1 to 256 tasks with dicing, against the ideal", bench::imbalance},
    {"process-null", "an empty task's round trip, processes against threads", bench::process_null},
    {"isolation-cost", "Mandelbrot in 128 tasks, processes against threads", bench::isolation_cost},
    {"kill-storm", "a million tasks on workers that kill themselves", bench::kill_storm},
    {"shared-pool", "hosts with one pool of worker processes, against one for each",
     bench::shared_pool},
    {"recovery", "from kill -9 of a worker to the next result", bench::recovery},
    {"saxpy", "three-argument tasks over a large array, against a plain loop", bench::saxpy},
    {"fork-join", "fib(30) with a task per call", bench::fork_join},
    {"irregular", "queens, quicksort and an unbalanced tree by nested tasks",
     bench::irregular_tasks},
    {"ordered", "a matrix by blocks, and short steps, ordered by the memory they declare",
     bench::ordered_tasks},
    {"loop-step", "four short pieces and a wait, by parallel_for and by a bulk", bench::loop_step},
    {"buffering", "random small blocks: looking four tasks ahead, against none", bench::buffering},
    {"switch", "from one item in flight to the next", bench::switch_cost},
    {"list-ranking", "random linked lists, 16 at a time, against one by one and by hand",
     bench::list_ranking},
    {"nested", "fetching three calls deep, against in the loop itself", bench::nested},
    {"hash-probe", "look-ups in a hash table, 16 to 32 at a time or as is best", bench::hash_probe},
    {"btree", "look-ups in a B+ tree, 16 at a time, against one by one and by hand", bench::btree},
    {"rank-by-tasks", "a list in random memory: 16 contexts, one, by hand, plainly",
     bench::rank_by_tasks},
    {"idle", "CPU time of a runtime without work", bench::idle},
    {"get-compute-put", "random blocks: looking ahead, contexts, buffers by hand",
     bench::get_compute_put},
    {"host-wait", "hosts that share cores offload and wait: by policy", bench::host_wait},
    {"sim-speed", "events of a simulated Cell in a second, 16 and 1024 SPEs", bench::sim_speed},
    {"instructions", "instructions of a task, from submit to collect, on both sides",
     bench::instructions},
    {"include-time", "compile time of the header", bench::include_time},
};

int usage() {
  std::fputs(
      "usage: leveret-bench NAME [--json] [--quick]\n"
      "       leveret-bench --list\n",
      stderr);
  return 2;
}

int list() {
  for (const entry& e : benches) {
    std::printf("%-14s %s%s\n", e.name, e.what, e.run == nullptr ? " (not built)" : "");
  }
  return 0;
}

int run(const entry& e, const bench::settings& how, bool json) {
  if (e.run == nullptr) {
    std::fprintf(stderr, "leveret-bench: %s is not built: configure with LEVERET_APPS=ON\n",
                 e.name);
    return 1;
  }
  bench::report figures(e.name);
  try {
    e.run(how, figures);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "leveret-bench: %s: %s\n", e.name, failure.what());
    return 1;
  }
  json ? figures.print_json(stdout) : figures.print_table(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  bench::settings how;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list") == 0) return list();
    if (std::strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (std::strcmp(argv[i], "--quick") == 0) {
      how.quick = true;
    } else if (argv[i][0] == '-' || !name.empty()) {
      return usage();
    } else {
      name = argv[i];
    }
  }
  for (const entry& e : benches) {
    if (name == e.name) return run(e, how, json);
  }
  if (!name.empty()) std::fprintf(stderr, "leveret-bench: no bench is named %s\n", name.c_str());
  return usage();
}
