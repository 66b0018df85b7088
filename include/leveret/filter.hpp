// Filters: functions that choose the order in which waiting tasks run.
//
// Tasks that have already gone to the workers, two per worker, are not reordered.
//
// A runtime keeps an ordered chain of filters; each may permute the tasks that wait in the reorder
// buffer before they go to the workers. The chain may be changed while tasks run. With no filter,
// tasks pass straight to the workers in order.
//
// Papers: Sol MT / Jack Rabbit, filter chain and reorder buffer (thesis sections 3 and 4.2);
// locality is JR section 7.
#ifndef LEVERET_FILTER_HPP
#define LEVERET_FILTER_HPP

#include <leveret/task.hpp>

#include <cstddef>
#include <cstdint>

namespace lev {

// A waiting task as a filter sees it.
struct waiting_task {
  std::uint64_t sequence;  // order of arrival
  std::uint32_t key;  // data key: descriptor::key, or made from the first memory argument's page
  std::int32_t priority;
  std::uint32_t slot;  // the task of this entry: permute entries whole, never edit this
  procedure_id procedure;
  std::uint32_t items;  // rows, elements or indices that dicing may cut between; 0: not diceable
};

// A filter permutes `tasks[0 .. count)` in place. It runs under the scheduler's lock: a wait or a
// submit for the same runtime is refused (would_deadlock). A filter that loses or repeats a task,
// or throws, is ignored for that pass and counted (counters::bad_filters); the others of its chain
// are applied. It is applied when tasks go on to the workers, not at each submit.
struct filter {
  void (*apply)(waiting_task* tasks, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
};

constexpr std::size_t filter_count_max = 8;

namespace filters {
filter fifo() noexcept;          // by order of arrival
filter priority() noexcept;      // larger priority first, then arrival
filter locality() noexcept;      // tasks on the same data together, groups by first arrival
filter by_procedure() noexcept;  // tasks of the same procedure together: fewer code loads
}  // namespace filters

}  // namespace lev

#endif
