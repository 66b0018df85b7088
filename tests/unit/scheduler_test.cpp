// Tests of the scheduler by one thread: which tasks of the line a search takes out of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "flow/scheduler.hpp"

namespace lev {
namespace {

// A scheduler under a filter, which keeps all tasks but two in its line.
struct line_fixture {
  static constexpr std::uint32_t count = 64;
  static constexpr std::uint32_t ready = 2;
  static constexpr std::uint32_t kept = 2;         // slots of each other kind
  static constexpr std::uint32_t own = 2 * count;  // their tasks are in no queue
  static constexpr std::uint32_t all = count + 2 * kept + own;
  static constexpr std::uint32_t queued = 2 * count;  // cells for all others, a power of two
  line_fixture()
      : slots(new slot[all]),
        rests(new slot_rest[all]),
        extras(new slot_extra[all]),
        cells(new index_ring<>::cell[count + 2 * kept + 2 * queued]),
        tasks(new waiting_task[2 * queued]) {
    index_ring<>::cell* const others = cells.get() + count;
    pool.open({slots.get(), rests.get(), extras.get(), cells.get(), others, others + kept},
              {count, kept, kept, own});
    index_ring<>::cell* const queues = others + 2 * kept;
    line.open(&pool, {queues, queues + queued, tasks.get(), tasks.get() + queued, queued, 1}, {});
    const filter chain[] = {filters::fifo()};
    line.set_filters(chain, 1, cache, report);
  }
  std::uint32_t post() {
    const std::uint32_t task = pool.try_take(cache);
    pool.write(task, {}, 0, nullptr);
    line.post(task);
    return task;
  }
  template <class Wanted>
  std::vector<std::uint32_t> take(const Wanted& is_wanted, std::uint32_t most) {
    std::vector<std::uint32_t> taken(most);
    taken.resize(line.take_if(is_wanted, cache, report, taken.data(), most));
    return taken;
  }
  std::vector<std::uint32_t> take_all_ready() {
    std::vector<std::uint32_t> taken;
    for (std::uint32_t task = 0; line.ready().first().try_pop(&task);) {
      taken.push_back(task);
      line.pass(cache, report);
    }
    return taken;
  }

  std::unique_ptr<slot[]> slots;
  std::unique_ptr<slot_rest[]> rests;
  std::unique_ptr<slot_extra[]> extras;
  std::unique_ptr<index_ring<>::cell[]> cells;
  std::unique_ptr<waiting_task[]> tasks;
  slot_pool pool;
  index_cache cache;
  owned_counter submitted;
  pass_report report{submitted};
  scheduler line;
};

// A task that waits for many children behind many others must not go through the line for each.
TEST(scheduler, one_search_takes_the_first_that_are_wanted_and_leaves_the_others_in_order) {
  line_fixture f;
  std::vector<std::uint32_t> posted;
  for (std::uint32_t i = 0; i < 50; ++i) posted.push_back(f.post());
  f.line.pass(f.cache, f.report);
  EXPECT_EQ(f.take([](std::uint32_t) { return false; }, 16), std::vector<std::uint32_t>());

  std::uint32_t looks = 0;
  const auto is_wanted = [&](std::uint32_t task) {
    ++looks;
    return task % 3 == 0;
  };
  std::vector<std::uint32_t> wanted;
  std::vector<std::uint32_t> others;
  for (std::uint32_t i = 0; i < posted.size(); ++i) {
    const bool is_in_line = i >= f.ready;
    const bool is_taken = is_in_line && posted[i] % 3 == 0 && wanted.size() < 8;
    (is_taken ? wanted : others).push_back(posted[i]);
  }
  EXPECT_EQ(f.take(is_wanted, 8), wanted);
  EXPECT_LE(looks, posted.size());
  EXPECT_EQ(f.take_all_ready(), others);
  EXPECT_TRUE(f.line.looks_empty());
}

}  // namespace
}  // namespace lev
