// The benches: one function each, in the file of micro/ that bears its name. main.cpp lists them.
#pragma once

#include "report.hpp"

#include <cstddef>

namespace bench {

// How much to measure. `quick` is for seeing that a bench works: its figures are not to be quoted.
struct settings {
  bool quick = false;
  int rounds() const noexcept { return quick ? 3 : 7; }
  // scaled() is `full`, or a tenth of it for a quick run.
  std::size_t scaled(std::size_t full) const noexcept { return quick ? full / 10 : full; }
};

// A bench measures and adds its figures. Throws std::exception when an answer is wrong or it cannot
// run here.
using bench_function = void (*)(const settings&, report&);

void null_task(const settings&, report&);
void check_cost(const settings&, report&);
void wake(const settings&, report&);
void throughput(const settings&, report&);
void efficiency(const settings&, report&);
void saxpy(const settings&, report&);
void fork_join(const settings&, report&);
void irregular_tasks(const settings&, report&);
void ordered_tasks(const settings&, report&);
void loop_step(const settings&, report&);
void buffering(const settings&, report&);
void idle(const settings&, report&);
void get_compute_put(const settings&, report&);
void host_wait(const settings&, report&);
void include_time(const settings&, report&);
void switch_cost(const settings&, report&);
void list_ranking(const settings&, report&);
void nested(const settings&, report&);
void hash_probe(const settings&, report&);
void btree(const settings&, report&);
void sim_speed(const settings&, report&);
void process_null(const settings&, report&);
void kill_storm(const settings&, report&);
void recovery(const settings&, report&);
void shared_pool(const settings&, report&);
void instructions(const settings&, report&);

// Null when the applications are not built.
[[gnu::weak]] void imbalance(const settings&, report&);
[[gnu::weak]] void isolation_cost(const settings&, report&);
[[gnu::weak]] void rank_by_tasks(const settings&, report&);

}  // namespace bench
