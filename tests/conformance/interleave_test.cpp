// Conformance: tasks that interleave items of their own, and items that are hosts and tasks like
// any other code: they submit, wait, give way to other tasks and fail.
#include <gtest/gtest.h>
#include <leveret/interleave.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class interleave_in_tasks : public machine_test {
 protected:
  static config with_contexts(std::uint32_t n) {
    config c = settings();
    c.contexts = n;
    return c;
  }
};
LEV_ON_LOCAL_MACHINES(interleave_in_tasks);

const auto square = define("interleave.square",
                           [](std::int64_t x, result<std::int64_t> squared) { squared = x * x; });

// Each item waits for a child: the worker helps, or another of its contexts goes on, which may be
// in the middle of an interleave itself.
const auto sum_of_squares =
    define("interleave.sum_of_squares",
           [](ref<runtime> home, std::int64_t count, result<std::int64_t> sum) {
             std::int64_t total = 0;
             interleave(8, static_cast<std::size_t>(count), [&](std::size_t i, strand& s) {
               std::int64_t own = 0;
               ticket child = home.to->submit(square, static_cast<std::int64_t>(i), own);
               s.yield();
               child.wait();
               s.yield();
               total += own;
             });
             sum = total;
           });

std::int64_t expected_sum(std::int64_t count) {
  return (count - 1) * count * (2 * count - 1) / 6;
}

LEV_TEST(interleave_in_tasks, items_wait_for_children) {
  for (const std::uint32_t n : {1u, 4u, 16u}) {
    runtime& r = open(with_contexts(n));
    std::vector<std::int64_t> sums(20);
    std::vector<ticket> all;
    for (std::size_t i = 0; i < sums.size(); ++i)
      all.push_back(r.submit(sum_of_squares, ref{&r}, static_cast<std::int64_t>(10 + i), sums[i]));
    ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
    for (std::size_t i = 0; i < sums.size(); ++i)
      EXPECT_EQ(sums[i], expected_sum(static_cast<std::int64_t>(10 + i))) << n << " contexts";
  }
}

// Items of the host's own thread are hosts.
LEV_TEST(interleave_in_tasks, items_of_the_host_wait_for_tasks) {
  runtime& r = open();
  std::vector<std::int64_t> squares(100);
  interleave(16, squares.size(), [&](std::size_t i, strand& s) {
    ticket t = r.submit(square, static_cast<std::int64_t>(i), squares[i]);
    s.yield();
    t.wait();
  });
  for (std::size_t i = 0; i < squares.size(); ++i)
    EXPECT_EQ(squares[i], static_cast<std::int64_t>(i * i));
}

// Other tasks of the worker go on in the middle of items that are inside a catch block.
const auto turns_in_catch_blocks =
    define("interleave.turns_in_catch_blocks", [](int seed, result<int> right) {
      int seen = 0;
      interleave(4, 12, [&](std::size_t i, strand& s) {
        const int mine = seed * 100 + static_cast<int>(i);
        try {
          throw mine;
        } catch (const int& caught) {
          this_task().yield();
          s.yield();
          this_task().yield();
          try {
            throw;
          } catch (const int& again) {
            seen += caught == mine && again == mine;
          }
        }
      });
      right = seen;
    });

LEV_TEST(interleave_in_tasks, tasks_give_way_inside_items) {
  runtime& r = open(with_contexts(8));
  std::vector<int> right(40);
  std::vector<ticket> all;
  for (std::size_t i = 0; i < right.size(); ++i)
    all.push_back(r.submit(turns_in_catch_blocks, static_cast<int>(i), right[i]));
  ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(right, std::vector<int>(40, 12));
}

const auto fails = define("interleave.fails", [](std::uint64_t which) {
  interleave(8, 100, [&](std::size_t i, strand& s) {
    s.yield();
    if (i == which) throw std::runtime_error("item " + std::to_string(i));
  });
});

LEV_TEST(interleave_in_tasks, what_an_item_throws_fails_the_task) {
  runtime& r = open();
  ticket t = r.submit(fails, std::uint64_t{42});
  const outcome o = t.wait_outcome(wait_limit_ns());
  ASSERT_EQ(o.code, status::task_failed);
  try {
    std::rethrow_exception(o.exception);
    ADD_FAILURE() << "nothing thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "item 42");
  }
}

const auto asks_in_items = define("interleave.asks_in_items", [](ref<counter> known) {
  task_context task = this_task();
  auto thread = task.spawn([&] {
    if (task.stack_left() == 0) ++*known.to;  // it has a stack of its own, and so has an item
    interleave(4, 4, [&](std::size_t, auto&) {
      if (task.stack_left() != 0) ++*known.to;
    });
  });
  thread.join();
});

LEV_TEST(interleave_in_tasks, an_item_is_not_told_of_the_stack_of_its_task) {
  counter wrong = 0;
  expect_ok(open().submit(asks_in_items, ref{&wrong}));
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lev::test
