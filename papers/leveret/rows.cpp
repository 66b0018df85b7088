// Which rows Leveret's pipeline answers on the simulated Cell, and why it does not the others.
#include <leveret_papers/expected.hpp>
#include <leveret_papers/world.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace leveret_papers {

namespace {

constexpr double apart_most = 0.25;

// Rows that nothing is run for, by how their names begin.
struct refusal {
  const char* rows;
  const char* why_not;
  bool is_unpriced = false;
};
constexpr const char* of_no_run = "arithmetic or a constant: nothing runs";
constexpr const char* of_transfers = "transfers by hand, without tasks";
constexpr const char* of_null_tasks = "a task that does nothing is the runtime's own work";
constexpr const char* of_short_tasks = "tasks of under 5 us: the runtime's own work decides";
constexpr const char* of_small_blocks =
    "blocks of under 1 KiB that a task gets itself: the runtime's own work decides";
constexpr const char* of_processes = "six processes share a PPE: the machine sim has one host";
constexpr const char* of_the_twin = "about the twin";
constexpr std::array refusals{
    refusal{"T1.4", of_short_tasks, true},
    refusal{"T1.5 1k", of_short_tasks, true},
    refusal{"T2.4", of_no_run},
    refusal{"T3.4 one", "without dicer its one task writes more than a local store holds"},
    refusal{"T3.5", of_no_run},
    refusal{"T3.6", "the paper's dicer, not Leveret's"},
    refusal{"T4.1", of_transfers},
    refusal{"T4.2", of_transfers},
    refusal{"T4.4", of_small_blocks, true},
    refusal{"T4.5", of_small_blocks, true},
    refusal{"T4.6 end", of_small_blocks, true},
    refusal{"T4.7 small", of_small_blocks, true},
    refusal{"T4.8", of_small_blocks, true},
    refusal{"T4.9", of_small_blocks, true},
    refusal{"T4.13", of_small_blocks, true},
    refusal{"T4.15", of_no_run},
    refusal{"T4.16", of_no_run},
    refusal{"T5.1", of_null_tasks, true},
    refusal{"T5.2", of_null_tasks, true},
    refusal{"T5.3", of_null_tasks, true},
    refusal{"T5.4", of_no_run},
    refusal{"T5.5", of_no_run},
    refusal{"T5.6", of_null_tasks, true},
    refusal{"T5.7", of_null_tasks, true},
    refusal{"T5.8", of_short_tasks, true},
    refusal{"T5.9", of_short_tasks, true},
    refusal{"T5.10", of_short_tasks, true},
    refusal{"T5.11", of_short_tasks, true},
    refusal{"T5.12", of_short_tasks, true},
    refusal{"T5.13 16x16", of_short_tasks, true},
    refusal{"T5.14", of_short_tasks, true},
    refusal{"T5.15 4M", of_no_run},
    refusal{"T5.19", of_short_tasks, true},
    refusal{"T6.8", of_no_run},
    refusal{"T6.9", of_no_run},
    refusal{"T6", of_processes},
    refusal{"T7.0", of_short_tasks, true},
    refusal{"T7.4", "its workers have no such choice: they sleep until they are woken"},
    refusal{"T7.5", of_no_run},
    refusal{"T7.6", of_transfers},
    refusal{"T8.1", of_no_run},
    refusal{"T8.3", of_the_twin},
    refusal{"T8.4", of_null_tasks, true},
};

// "T5.1" is T5.1 and "T5.1 eight", but not T5.10; "T4" is all of its table.
bool is_of(const std::string& id, const char* rows) {
  const std::size_t length = std::strlen(rows);
  if (std::strncmp(id.c_str(), rows, length) != 0) return false;
  return id.size() == length || id[length] == ' ' ||
         (id[length] == '.' && std::strchr(rows, '.') == nullptr);
}

double run(const row& r, double own_work) {
  world w;
  w.take_leveret(own_work);
  return r.simulate(w);
}

bool is_apart(double value, double other) {
  return std::fabs(other - value) > apart_most * std::fabs(value);
}

}  // namespace

leveret_answer answer_by_leveret(const std::string& id) {
  leveret_answer a;
  const row& r = row_of(id);
  const auto found = std::find_if(refusals.begin(), refusals.end(),
                                  [&](const refusal& each) { return is_of(id, each.rows); });
  if (found != refusals.end()) {
    a.why_not = found->why_not;
    a.is_unpriced = found->is_unpriced;
    return a;
  }
  a.value = run(r, 1);
  a.free = run(r, 0);
  a.dear = run(r, 2);
  a.is_unpriced = is_apart(a.value, a.free) || is_apart(a.value, a.dear);
  if (a.is_unpriced) a.why_not = "the runtime's own work decides";
  return a;
}

}  // namespace leveret_papers
