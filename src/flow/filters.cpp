// The filters that come with Leveret. All are stable: tasks that compare equal keep their order of
// arrival.
#include <leveret/filter.hpp>

#include <algorithm>

namespace lev::filters {

namespace {

template <auto Before>
void sort(waiting_task* tasks, std::size_t count, void*) {
  std::sort(tasks, tasks + count,
            [](const waiting_task& a, const waiting_task& b) { return Before(a, b); });
}

bool arrived_before(const waiting_task& a, const waiting_task& b) {
  return a.sequence < b.sequence;
}
bool more_urgent(const waiting_task& a, const waiting_task& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.sequence < b.sequence;
}

// Moves tasks with equal `Key` together, the groups in order of their first task.
template <auto Key>
void group(waiting_task* tasks, std::size_t count, void*) {
  for (std::size_t i = 0; i < count;) {
    const auto key = Key(tasks[i]);
    waiting_task* rest = std::stable_partition(
        tasks + i, tasks + count, [key](const waiting_task& t) { return Key(t) == key; });
    i = static_cast<std::size_t>(rest - tasks);
  }
}

std::uint32_t key_of(const waiting_task& t) {
  return t.key;
}
procedure_id procedure_of(const waiting_task& t) {
  return t.procedure;
}

}  // namespace

filter fifo() noexcept {
  return {&sort<&arrived_before>, nullptr};
}
filter priority() noexcept {
  return {&sort<&more_urgent>, nullptr};
}
filter locality() noexcept {
  return {&group<&key_of>, nullptr};
}
filter by_procedure() noexcept {
  return {&group<&procedure_of>, nullptr};
}

}  // namespace lev::filters
