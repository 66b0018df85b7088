// Tests of the filters that come with Leveret, on random lines of waiting tasks against the obvious
// stable sorts.
#include <gtest/gtest.h>
#include <leveret/filter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "flow/built_in_filters.hpp"

namespace lev {
namespace {

using line = std::vector<waiting_task>;

// Random tasks in order of arrival, or, if `shuffled`, as another filter may have left them.
line random_line(random_source& random, std::size_t count, bool shuffled) {
  line tasks(count);
  for (std::size_t i = 0; i < count; ++i) {
    tasks[i].sequence = i;
    tasks[i].slot = static_cast<std::uint32_t>(i);
    tasks[i].key = random.below(5);
    tasks[i].priority = static_cast<std::int32_t>(random.below(7)) - 3;
    tasks[i].procedure = static_cast<procedure_id>(1 + random.below(4));
  }
  for (std::size_t i = count; shuffled && i > 1; --i) {
    std::swap(tasks[i - 1], tasks[random.below(static_cast<std::uint32_t>(i))]);
  }
  return tasks;
}

std::vector<std::uint32_t> slots_of(const line& tasks) {
  std::vector<std::uint32_t> slots;
  for (const waiting_task& t : tasks) slots.push_back(t.slot);
  return slots;
}

// The line as a pass left it, with some newer tasks behind.
line line_of_two_passes(random_source& random, filter f, std::uint32_t groups) {
  line tasks = random_line(random, 300 + random.below(1500), true);
  for (waiting_task& t : tasks) t.key = random.below(groups);
  const std::size_t newer = tasks.size() - random.below(30);
  f.apply(tasks.data(), newer, f.context);
  return tasks;
}

template <class Check>
void for_random_lines(filter f, Check&& check) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    const line before = line_of_two_passes(random, f, seed % 3 == 0 ? 1000 : 100);
    line after = before;
    f.apply(after.data(), after.size(), f.context);
    check(before, after);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    const line before = random_line(random, random.below(40), seed % 2 == 0);
    line after = before;
    f.apply(after.data(), after.size(), f.context);
    check(before, after);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A pass orders a line again and again, while tasks leave it at the front and newer ones come: it
// sees what the filter would make of the whole line.
TEST(filters, a_line_that_was_in_order_needs_only_the_newest_put_in) {
  const filter all[] = {filters::fifo(), filters::priority(), filters::locality(),
                        filters::by_procedure()};
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    const filter f = all[seed % 4];
    ASSERT_TRUE(filters::is_built_in(f));
    line tasks;
    std::size_t arrived = 0;
    for (int pass = 0; pass < 30; ++pass) {
      const std::size_t ordered = tasks.size();
      const line more = random_line(random, random.below(pass % 5 == 0 ? 200 : 12), false);
      for (waiting_task t : more) {
        t.sequence = t.slot = static_cast<std::uint32_t>(arrived++);
        tasks.push_back(t);
      }
      line expected = tasks;
      f.apply(expected.data(), expected.size(), f.context);
      filters::put_in_order(f, tasks.data(), ordered, tasks.size());
      ASSERT_EQ(slots_of(tasks), slots_of(expected)) << "pass " << pass;
      tasks.erase(tasks.begin(),
                  tasks.begin() + random.below(1 + static_cast<std::uint32_t>(tasks.size() / 3)));
    }
  }
}

TEST(filters, fifo_restores_the_order_of_arrival) {
  for_random_lines(filters::fifo(), [](const line& before, const line& after) {
    line expected = before;
    std::sort(expected.begin(), expected.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    ASSERT_EQ(slots_of(after), slots_of(expected));
  });
}

TEST(filters, priority_puts_larger_first_then_arrival) {
  for_random_lines(filters::priority(), [](const line& before, const line& after) {
    line expected = before;
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.sequence < b.sequence;
    });
    ASSERT_EQ(slots_of(after), slots_of(expected));
  });
}

// Groups of equal `Key` in order of their first task, each in the order it had.
template <class Key>
line grouped(const line& before, Key&& key) {
  std::map<std::uint64_t, std::size_t> group_of;
  std::vector<line> groups;
  for (const waiting_task& t : before) {
    const auto [found, is_new] = group_of.try_emplace(key(t), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(t);
  }
  line out;
  for (const line& group : groups) out.insert(out.end(), group.begin(), group.end());
  return out;
}

TEST(filters, locality_keeps_tasks_on_the_same_data_together) {
  for_random_lines(filters::locality(), [](const line& before, const line& after) {
    const line expected = grouped(before, [](const waiting_task& t) { return t.key; });
    ASSERT_EQ(slots_of(after), slots_of(expected));
  });
}

TEST(filters, locality_groups_more_keys_than_have_room_on_the_stack) {
  for (const std::uint32_t keys : {511u, 512u, 513u, 3000u}) {
    line tasks(4000);
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      tasks[i].slot = tasks[i].sequence = i;
      tasks[i].key = i * 7919 % keys + 1;
    }
    const line expected = grouped(tasks, [](const waiting_task& t) { return t.key; });
    const filter f = filters::locality();
    for (int pass = 0; pass < 2; ++pass) {
      f.apply(tasks.data(), tasks.size(), f.context);
      EXPECT_EQ(slots_of(tasks), slots_of(expected)) << keys;
    }
  }
}

TEST(filters, by_procedure_keeps_tasks_of_one_procedure_together) {
  for_random_lines(filters::by_procedure(), [](const line& before, const line& after) {
    const line expected = grouped(before, [](const waiting_task& t) { return t.procedure; });
    ASSERT_EQ(slots_of(after), slots_of(expected));
  });
}

TEST(filters, extremes_of_priority_are_compared_without_overflow) {
  line tasks(3);
  for (std::uint32_t i = 0; i < 3; ++i) tasks[i].slot = i;
  tasks[0].priority = INT32_MIN;
  tasks[1].priority = INT32_MAX;
  tasks[2].priority = 0;
  const filter f = filters::priority();
  f.apply(tasks.data(), tasks.size(), f.context);
  EXPECT_EQ(slots_of(tasks), (std::vector<std::uint32_t>{1, 2, 0}));
}

}  // namespace
}  // namespace lev
