// The filters that come with Leveret. All are stable: tasks that compare equal keep their order of
// arrival.
#include "flow/built_in_filters.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <numeric>

namespace lev::filters {

namespace {

constexpr std::size_t few = 8;  // newer tasks are put in one by one; not tuned

// The tasks before the newest ones are in order, as the last pass has left them. Pieces of one task
// compare equal.
template <auto Before>
void sort_in(waiting_task* tasks, std::size_t ordered, std::size_t count) {
  const auto before = [](const waiting_task& a, const waiting_task& b) { return Before(a, b); };
  waiting_task* const end = tasks + count;
  waiting_task* newest =
      std::is_sorted_until(tasks + (ordered == 0 ? 0 : ordered - 1), end, before);
  if (static_cast<std::size_t>(end - newest) > few) {
    std::stable_sort(newest, end, before);
    return std::inplace_merge(tasks, newest, end, before);
  }
  for (; newest != end; ++newest)
    std::rotate(std::upper_bound(tasks, newest, *newest, before), newest, newest + 1);
}
template <auto Before>
void sort(waiting_task* tasks, std::size_t count, void*) {
  sort_in<Before>(tasks, 0, count);
}

bool arrived_before(const waiting_task& a, const waiting_task& b) {
  return a.sequence < b.sequence;
}
bool more_urgent(const waiting_task& a, const waiting_task& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.sequence < b.sequence;
}

// The groups of a line of tasks, by key, in order of their first task. There are places for the
// numbers of groups, more than groups, so that some are free: a power of two; all are 0.
class group_table {
 public:
  group_table(std::uint32_t* places, unsigned place_bits, std::uint32_t* keys)
      : places_(places), place_bits_(place_bits), keys_(keys) {}

  // The group's number.
  std::uint32_t number_of(std::uint32_t key) noexcept {
    const std::uint32_t mask = (1u << place_bits_) - 1;
    std::uint32_t at = (key * 0x9e3779b1u) >> (32 - place_bits_);
    while (places_[at] != 0 && keys_[places_[at] - 1] != key) at = (at + 1) & mask;
    if (places_[at] != 0) return places_[at] - 1;
    keys_[count_] = key;
    places_[at] = ++count_;  // 1 and more: the group's number plus 1
    return count_ - 1;
  }
  std::uint32_t count() const noexcept { return count_; }

 private:
  std::uint32_t* places_;
  unsigned place_bits_;
  std::uint32_t* keys_;
  std::uint32_t count_ = 0;
};

// Moves tasks with equal `Key` together, the groups in order of their first task, by way of a copy.
// Without memory they stay as they are. There may be as many groups as tasks.
template <auto Key>
void group(waiting_task* tasks, std::size_t count, void*) {
  const auto place_bits = static_cast<unsigned>(std::bit_width(2 * count - 1));
  if (count == 0 || place_bits > 31) return;
  const std::size_t places = std::size_t{1} << place_bits;
  const std::unique_ptr<std::uint32_t[]> room(new (std::nothrow)
                                                  std::uint32_t[places + 2 * count]());
  if (room == nullptr) return;
  std::uint32_t* const keys = room.get() + places;
  std::uint32_t* const ends = keys + count;
  group_table groups(room.get(), place_bits, keys);
  std::uint32_t last = 0;
  std::uint32_t runs = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t g = groups.number_of(Key(tasks[i]));
    ++ends[g];
    runs += g != last ? 1 : 0;
    last = g;
  }
  if (runs == groups.count()) return;  // as the last pass has left them
  const std::unique_ptr<waiting_task[]> copy(new (std::nothrow) waiting_task[count]);
  if (copy == nullptr) return;
  std::exclusive_scan(ends, ends + groups.count(), ends, 0u);
  for (std::size_t i = 0; i < count; ++i) copy[ends[groups.number_of(Key(tasks[i]))]++] = tasks[i];
  std::copy(copy.get(), copy.get() + count, tasks);
}

// The same for a line whose first `ordered` tasks are in groups: a few newer ones go behind the
// last task of their group.
template <auto Key>
void group_in(waiting_task* tasks, std::size_t ordered, std::size_t count) {
  if (ordered == 0 || count - ordered > few) return group<Key>(tasks, count, nullptr);
  waiting_task* const end = tasks + count;
  for (waiting_task* newest = tasks + ordered; newest != end; ++newest) {
    waiting_task* after = newest;
    while (after != tasks && Key(after[-1]) != Key(*newest)) --after;
    if (after != tasks) std::rotate(after, newest, newest + 1);
  }
}

std::uint32_t key_of(const waiting_task& t) {
  return t.key;
}
procedure_id procedure_of(const waiting_task& t) {
  return t.procedure;
}

constexpr auto sort_by_arrival = &sort<&arrived_before>;
constexpr auto sort_by_urgency = &sort<&more_urgent>;
constexpr auto group_by_key = &group<&key_of>;
constexpr auto group_by_procedure = &group<&procedure_of>;

}  // namespace

bool is_built_in(const filter& f) noexcept {
  return f.apply == sort_by_arrival || f.apply == sort_by_urgency || f.apply == group_by_key ||
         f.apply == group_by_procedure;
}

void put_in_order(const filter& f, waiting_task* tasks, std::size_t ordered,
                  std::size_t count) noexcept {
  LEV_DCHECK(is_built_in(f) && ordered <= count);
  if (ordered == count) return;
  if (f.apply == sort_by_arrival) return sort_in<&arrived_before>(tasks, ordered, count);
  if (f.apply == sort_by_urgency) return sort_in<&more_urgent>(tasks, ordered, count);
  if (f.apply == group_by_key) return group_in<&key_of>(tasks, ordered, count);
  group_in<&procedure_of>(tasks, ordered, count);
}

filter fifo() noexcept {
  return {sort_by_arrival, nullptr};
}
filter priority() noexcept {
  return {sort_by_urgency, nullptr};
}
filter locality() noexcept {
  return {group_by_key, nullptr};
}
filter by_procedure() noexcept {
  return {group_by_procedure, nullptr};
}

}  // namespace lev::filters
