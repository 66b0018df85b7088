// Conformance: what a filter or a hook of the program calls. Its runtime stands still until it
// returns, so it submits nothing there, and is in no task: it is told so, and all goes on. Waits
// are in filter_test.cpp and dice_hook_test.cpp.
#include <gtest/gtest.h>

#include <leveret/ordered.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

template <class Call>
status status_of(Call&& call) {
  try {
    call();
    return status::ok;
  } catch (const error& e) {
    return e.code();
  }
}

const auto takes_row = define("hook_calls.takes_row", [](in<int>) {});
const auto takes_value = define("hook_calls.takes_value", [](int) {});

// Calls of the hook that comes first after `is_wanted` was set.
struct calls_of_hook {
  runtime* r = nullptr;
  std::atomic<bool> is_wanted{false};
  std::atomic<bool> is_over{false};
  std::vector<status> submits;
  std::uint64_t looped = 0;
  status loop{}, task{};
  bool came_at_once = true;

  void try_all() {
    const descriptor one = pack(nothing);
    const auto make = [&](std::size_t, descriptor& d) { d = one; };
    const auto note = [&](auto&& call) { submits.push_back(status_of(call)); };
    const options urgent = options().priority(1);
    const int values[3] = {};
    refusal why;
    note([&] { r->submit(nothing); });
    note([&] { r->submit(urgent, nothing); });
    note([&] { r->submit(one); });
    note([&] { r->submit(takes_row, values); });
    note([&] { r->post(nothing); });
    note([&] { r->post(urgent, nothing); });
    note([&] { r->submit_bulk(3, make); });
    note([&] { r->submit_bulk(from_any_thread, 3, make); });
    note([&] { r->submit_bulk(3, takes_value, each(values)); });
    note([&] {
      ordered scope(*r);
      scope.submit(takes_row, values);
    });
    EXPECT_FALSE(r->try_submit(one, nullptr, &why));
    submits.push_back(why.code);
    EXPECT_FALSE(r->submit_within(one, nullptr, &why, 1000));
    submits.push_back(why.code);
    came_at_once &= !r->submit_at_once(one.procedure, one.arguments, 0);
    const auto add = [&](range piece) { looped += piece.size(); };
    loop = status_of([&] { r->parallel_for(range{0, 100}, add); });
    task = status_of([] { this_task(); });
  }
  void make() {
    if (!is_wanted.exchange(false)) return;
    try_all();
    try_all();  // the thread has called in before
    is_over = true;
  }
};
calls_of_hook told_calls;

class hook_calls_test : public machine_test {
 protected:
  static void expect_told() {
    ASSERT_TRUE(told_calls.is_over);
    for (std::size_t i = 0; i < told_calls.submits.size(); ++i)
      EXPECT_EQ(told_calls.submits[i], status::would_deadlock)
          << i << ": " << status_name(told_calls.submits[i]);
    EXPECT_TRUE(told_calls.came_at_once);
    EXPECT_EQ(told_calls.task, status::not_in_task);
    EXPECT_EQ(told_calls.loop, is_remote() ? status::not_supported : status::ok);
    EXPECT_EQ(told_calls.looped, is_remote() ? 0u : 200u);
  }
  static void begin(runtime& r) {
    told_calls.r = &r;
    told_calls.submits.clear();
    told_calls.looped = 0;
    told_calls.came_at_once = true;
    told_calls.is_over = false;
    told_calls.is_wanted = true;
  }
};
LEV_ON_EVERY_MACHINE(hook_calls_test);

LEV_TEST(hook_calls_test, of_a_filter_are_refused) {
  runtime& r = open();
  const filter caller{[](waiting_task*, std::size_t, void*) { told_calls.make(); }, nullptr};
  ASSERT_EQ(r.set_filters(&caller, 1), status::ok);
  begin(r);
  for (int i = 0; i < 100; ++i) r.post(nothing);
  expect_all_done();
  expect_told();
  EXPECT_EQ(r.set_filters(nullptr, 0), status::ok);
}

const auto with_dice_hook = define(
    "hook_calls.with_dice_hook", [](range) {},
    [](const descriptor&, descriptor*, unsigned) {
      told_calls.make();
      return 1u;
    });

LEV_TEST(hook_calls_test, of_a_dice_hook_are_refused) {
  runtime& r = open();
  const filter in_order = filters::fifo();  // the task comes to where it is cut
  ASSERT_EQ(r.set_filters(&in_order, 1), status::ok);
  begin(r);
  r.submit(with_dice_hook, range{0, 1000}).wait();
  expect_told();
}

// Tasks of a parent that waits for one with a dice hook.
struct hooked_tasks {
  runtime* r = nullptr;
  runtime* other = nullptr;
  ticket child;
  std::atomic<bool> is_in_hook{false};
  std::atomic<bool> came_meanwhile{false};
  status of_wait = status::ok;
};
hooked_tasks hooked;

// The child finds its task, submits, and waits for a child of its own, also on top of a hook.
const auto hooked_child = define("hook_calls.child", [] {
  if (hooked.is_in_hook) hooked.came_meanwhile = true;
  this_task();
  hooked.r->submit(nothing).wait();
});
const auto until_child_came = define("hook_calls.until_child_came", [] {
  while (!hooked.came_meanwhile) std::this_thread::yield();
});
const auto waits_elsewhere_in_hook = define(
    "hook_calls.waits_elsewhere", [](range) {},
    [](const descriptor&, descriptor*, unsigned) {
      hooked.is_in_hook = true;
      hooked.other->submit(until_child_came).wait();
      hooked.is_in_hook = false;
      return 1u;
    });
const auto has_children_and_hook = define("hook_calls.has_children_and_hook", [] {
  std::vector<ticket> children;
  for (int i = 0; i < 10; ++i) children.push_back(hooked.r->submit(hooked_child));
  hooked.r->submit(waits_elsewhere_in_hook, range{0, 1000}).wait();
  for (ticket& each : children) each.wait();
});

using task_on_hook_test = hook_calls_test;
LEV_ON_THREADS(task_on_hook_test);

// The only worker is in the hook, and nobody else runs tasks.
LEV_TEST(task_on_hook_test, is_a_task_like_others) {
  hooked.is_in_hook = hooked.came_meanwhile = false;
  config c = settings();
  c.workers = 1;
  c.contexts = 1;
  c.wait = wait_policy::park;
  runtime other(c);
  hooked.other = &other;
  hooked.r = &open(c);
  hooked.r->submit(has_children_and_hook).wait();
  EXPECT_TRUE(hooked.came_meanwhile);
}

const auto waits_for_child_in_hook = define(
    "hook_calls.waits_for_child", [](range) {},
    [](const descriptor&, descriptor*, unsigned) {
      if (hooked.child) hooked.of_wait = hooked.child.wait_outcome().code;
      return 1u;
    });
const auto has_child_and_hook = define("hook_calls.has_child_and_hook", [] {
  hooked.child = hooked.r->submit(hooked_child);
  hooked.r->submit(waits_for_child_in_hook, range{0, 1000}).wait();
  hooked.child.wait();
});

using child_of_hook_test = hook_calls_test;
LEV_ON_LOCAL_MACHINES(child_of_hook_test);

LEV_TEST(child_of_hook_test, is_not_waited_for_there) {
  hooked.child = ticket();
  hooked.of_wait = status::pending;
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  hooked.r = &open(c);
  hooked.r->submit(has_child_and_hook).wait();
  EXPECT_EQ(hooked.of_wait, status::would_deadlock) << status_name(hooked.of_wait);
}

using cost_hook_test = hook_calls_test;
LEV_ON_SIM(cost_hook_test);

const auto with_cost_hook = define(
    "hook_calls.with_cost_hook", [] {}, nullptr,
    [](const descriptor&) {
      told_calls.make();
      return std::uint64_t{1};
    });

LEV_TEST(cost_hook_test, its_calls_are_refused) {
  runtime& r = open();
  begin(r);
  r.submit(with_cost_hook).wait();
  expect_told();
}

// A task keeps its context where a hook finds it.
struct kept_context {
  runtime* r = nullptr;
  task_context* of_task = nullptr;
  std::uint64_t passed_ns = 0;
};
kept_context kept;
const auto passes_time_in_hook = define(
    "hook_calls.passes_time_in_hook", [] {}, nullptr,
    [](const descriptor&) {
      const std::uint64_t before_ns = kept.r->now_ns();
      kept.of_task->pass_time(1'000'000);
      kept.passed_ns = kept.r->now_ns() - before_ns;
      return std::uint64_t{1};
    });
const auto keeps_context = define("hook_calls.keeps_context", [] {
  task_context own = this_task();
  kept.of_task = &own;
  kept.r->submit(passes_time_in_hook).wait();
});

LEV_TEST(cost_hook_test, no_time_passes_in_it) {
  kept = {&open(), nullptr, 1};
  kept.r->submit(keeps_context).wait();
  EXPECT_EQ(kept.passed_ns, 0u);
}

}  // namespace
}  // namespace lev::test
