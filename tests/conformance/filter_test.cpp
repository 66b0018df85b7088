// Conformance: filters. The order in which waiting tasks run, changes of the chain while tasks run,
// and filters that lose tasks.
//
// A few tasks are beyond a filter's reach: those in the ready queue, two for each worker, and where
// workers are processes those that wait in the worker's line, two again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

// In which order tasks ran.
struct diary {
  std::atomic<bool> is_open{false};
  bounded_list<int, 200> numbers;
  void write(int n) {
    while (is_open.exchange(true)) {
    }
    numbers.push_back(n);
    is_open = false;
  }
};

const auto note = define("filter.note", [](ref<diary> d, int n) { d.to->write(n); });
const auto note_too = define("filter.note_too", [](ref<diary> d, int n) { d.to->write(n); });

class filter_test : public machine_test {
 protected:
  // One worker, behind a gate: then the order in which tasks run is the order of the filters.
  runtime& open_single() {
    config c = settings();
    c.workers = 1;
    c.wait = wait_policy::park;
    return open(c);
  }
  static std::size_t beyond_reach() { return is_remote() ? 4 : 2; }

  // Of the tasks within reach: whether they ran in this order, and how often the group changed from
  // one to the next.
  template <class Before = std::less<>>
  static bool is_ordered(const diary& d, Before before = {}) {
    return std::is_sorted(d.numbers.begin() + beyond_reach(), d.numbers.end(), before);
  }
  template <class GroupOf>
  static int changes(const diary& d, GroupOf&& group_of) {
    int n = 0;
    for (auto at = d.numbers.begin() + beyond_reach() + 1; at != d.numbers.end(); ++at) {
      n += group_of(*at) != group_of(*(at - 1));
    }
    return n;
  }
};
LEV_ON_EVERY_MACHINE(filter_test);

status use(runtime& r, std::vector<filter> chain) {
  return r.set_filters(chain.data(), chain.size());
}

LEV_TEST(filter_test, priority_runs_larger_first_and_equals_in_order) {
  runtime& r = open_single();
  ASSERT_EQ(use(r, {filters::priority()}), status::ok);
  random_source random(GetParam().seed);
  std::vector<int> priorities;
  shared<diary> d;
  {
    gate g(r, 1);
    for (int i = 0; i < 100; ++i) {
      priorities.push_back(static_cast<int>(random.below(5)) - 2);
      r.submit(options().priority(priorities.back()), note, ref{&d}, i);
    }
  }
  expect_all_done();
  ASSERT_EQ(d->numbers.size(), 100u);
  const auto runs_before = [&](int a, int b) {
    const int pa = priorities[static_cast<std::size_t>(a)];
    const int pb = priorities[static_cast<std::size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  };
  EXPECT_TRUE(is_ordered(*d, runs_before));
}

LEV_TEST(filter_test, priority_of_a_descriptor_counts_too) {
  runtime& r = open_single();
  ASSERT_EQ(use(r, {filters::priority()}), status::ok);
  shared<diary> d;
  {
    gate g(r, 1);
    for (int i = 0; i < 20; ++i) {
      descriptor t = pack(note, ref{&d}, i);
      t.priority = i;
      r.submit(t);
    }
  }
  expect_all_done();
  EXPECT_TRUE(is_ordered(*d, std::greater<>()));
}

LEV_TEST(filter_test, locality_runs_tasks_on_the_same_data_together) {
  runtime& r = open_single();
  ASSERT_EQ(use(r, {filters::locality()}), status::ok);
  shared<diary> d;
  {
    gate g(r, 1);
    for (int i = 0; i < 80; ++i) {
      r.submit(options().key(1 + static_cast<std::uint32_t>(i % 4)), note, ref{&d}, i);
    }
  }
  expect_all_done();
  EXPECT_EQ(d->numbers.size(), 80u);
  EXPECT_LE(changes(*d, [](int n) { return n % 4; }), 3 + 1);
}

LEV_TEST(filter_test, by_procedure_runs_tasks_of_one_procedure_together) {
  runtime& r = open_single();
  ASSERT_EQ(use(r, {filters::by_procedure()}), status::ok);
  shared<diary> d;
  {
    gate g(r, 1);
    for (int i = 0; i < 60; ++i) r.submit(i % 2 == 0 ? note : note_too, ref{&d}, i);
  }
  expect_all_done();
  EXPECT_EQ(d->numbers.size(), 60u);
  EXPECT_LE(changes(*d, [](int n) { return n % 2; }), 1 + 1);
}

void reverse(waiting_task* tasks, std::size_t count, void* calls) {
  std::sort(tasks, tasks + count,
            [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  ++*static_cast<counter*>(calls);
}

LEV_TEST(filter_test, a_filter_of_ones_own_gets_its_context) {
  runtime& r = open_single();
  counter calls = 0;
  ASSERT_EQ(use(r, {{&reverse, &calls}}), status::ok);
  shared<diary> d;
  {
    gate g(r, 1);
    for (int i = 0; i < 40; ++i) r.submit(note, ref{&d}, i);
  }
  expect_all_done();
  EXPECT_TRUE(is_ordered(*d, std::greater<>()));
  EXPECT_GT(calls, 0);
  ASSERT_EQ(use(r, {}), status::ok);
}

LEV_TEST(filter_test, the_chain_is_applied_in_order) {
  runtime& r = open_single();
  for (const bool priority_last : {false, true}) {
    const filter first = priority_last ? filters::fifo() : filters::priority();
    const filter second = priority_last ? filters::priority() : filters::fifo();
    ASSERT_EQ(use(r, {first, second}), status::ok);
    shared<diary> d;
    {
      gate g(r, 1);
      for (int i = 0; i < 60; ++i) r.submit(options().priority(i), note, ref{&d}, i);
    }
    expect_all_done();
    EXPECT_EQ(is_ordered(*d), !priority_last);
    EXPECT_EQ(is_ordered(*d, std::greater<>()), priority_last);
  }
}

void lose_one(waiting_task* tasks, std::size_t count, void*) {
  if (count >= 2) tasks[0] = tasks[1];
}
void invent_one(waiting_task* tasks, std::size_t count, void*) {
  if (count >= 1) tasks[count - 1].slot ^= 1;
}
void clear_all(waiting_task* tasks, std::size_t count, void*) {
  std::fill(tasks, tasks + count, waiting_task{});
}

LEV_TEST(filter_test, one_that_loses_or_invents_tasks_is_ignored_and_counted) {
  runtime& r = open_single();
  for (const auto bad : {&lose_one, &invent_one, &clear_all}) {
    const std::uint64_t before = r.count().bad_filters;
    ASSERT_EQ(use(r, {{bad, nullptr}}), status::ok);
    shared<diary> d;
    {
      gate g(r, 1);
      for (int i = 0; i < 50; ++i) r.submit(note, ref{&d}, i);
    }
    expect_all_done();
    EXPECT_GT(r.count().bad_filters, before);
    ASSERT_EQ(d->numbers.size(), 50u);
    EXPECT_TRUE(std::is_sorted(d->numbers.begin(), d->numbers.end()));
  }
}

// A task as a filter sees it.
struct seen_tasks {
  std::vector<waiting_task> all;
};
void look(waiting_task* tasks, std::size_t count, void* context) {
  auto& s = *static_cast<seen_tasks*>(context);
  if (count > s.all.size()) s.all.assign(tasks, tasks + count);
}

LEV_TEST(filter_test, sees_procedure_priority_key_and_order_of_arrival) {
  runtime& r = open_single();
  seen_tasks s;
  shared<diary> d;
  {
    gate g(r, 1);
    ASSERT_EQ(use(r, {{&look, &s}}), status::ok);
    for (int i = 0; i < 20; ++i) r.submit(options().priority(7).key(9), note, ref{&d}, i);
  }
  expect_all_done();
  ASSERT_EQ(use(r, {}), status::ok);
  ASSERT_GE(s.all.size(), 10u);
  for (std::size_t i = 0; i < s.all.size(); ++i) {
    EXPECT_EQ(s.all[i].priority, 7);
    EXPECT_EQ(s.all[i].key, 9u);
    EXPECT_EQ(s.all[i].procedure, note.id);
    if (i > 0) {
      EXPECT_GT(s.all[i].sequence, s.all[i - 1].sequence);
    }
  }
}

LEV_TEST(filter_test, the_chain_may_change_while_tasks_run) {
  runtime& r = open();
  const std::vector<std::vector<filter>> chains = {
      {},
      {filters::priority()},
      {filters::locality(), filters::by_procedure()},
      {filters::fifo()},
      {{&lose_one, nullptr}},
  };
  counter n = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 == 0) {
      ASSERT_EQ(use(r, chains[static_cast<std::size_t>(i / 10) % chains.size()]), status::ok);
    }
    r.submit(options().priority(i % 7), count_one, ref{&n});
  }
  expect_all_done();
  EXPECT_EQ(n, 1000);
}

LEV_TEST(filter_test, work_together_with_dicing_bulks_and_dependencies) {
  runtime& r = open();
  ASSERT_EQ(use(r, {filters::priority()}), status::ok);
  std::vector<std::uint64_t> x(1000, 0);
  counter n = 0;
  ticket t = r.submit(options().grain(1), increment, sliced(x));
  for (int i = 0; i < 10; ++i) {
    t = r.submit(after(t).priority(i).grain(1), increment, sliced(x));
    r.submit_bulk(20, [&](std::size_t, descriptor& d) { d = pack(count_one, ref{&n}); });
  }
  expect_ok(t);
  expect_all_done();
  EXPECT_EQ(x, std::vector<std::uint64_t>(1000, 11));
  EXPECT_EQ(n, 200);
}

LEV_TEST(filter_test, bad_chains_are_refused) {
  runtime& r = open();
  std::vector<filter> nine(filter_count_max + 1, filters::fifo());
  EXPECT_EQ(use(r, nine), status::too_big);
  EXPECT_EQ(use(r, {{nullptr, nullptr}}), status::bad_argument);
  EXPECT_EQ(r.set_filters(nullptr, 2), status::bad_argument);
  EXPECT_EQ(r.set_filters(nullptr, 0), status::ok);
  expect_ok(r.submit(nothing));
}

// It runs under the lock that the change needs.
LEV_TEST(filter_test, a_filter_cannot_change_the_filters) {
  struct attempt {
    runtime* r;
    std::atomic<status> answer{status::pending};
  } it{&open()};
  const filter changer{[](waiting_task*, std::size_t, void* of) {
                         attempt& a = *static_cast<attempt*>(of);
                         a.answer = a.r->set_filters(nullptr, 0);
                       },
                       &it};
  ASSERT_EQ(it.r->set_filters(&changer, 1), status::ok);
  for (int i = 0; i < 20; ++i) it.r->post(nothing);
  EXPECT_EQ(it.r->wait_for_completion().code, status::ok);
  EXPECT_EQ(it.answer.load(), status::would_deadlock);
  EXPECT_EQ(it.r->set_filters(nullptr, 0), status::ok);
}

// Nothing of the runtime goes on before a filter or a hook returns. So each wait in it is refused,
// and each look returns.
struct calls_of_a_filter {
  runtime* r = nullptr;
  ticket* held = nullptr;
  std::atomic<bool> is_wanted{false};
  std::atomic<bool> is_over{false};
  bool is_done = false;
  status look{}, one{}, any{}, all{}, completion{}, end{};

  void make() {
    if (!is_wanted.exchange(false)) return;
    is_done = held->done();
    look = held->wait_outcome(0).code;
    r->pass_time(100);
    one = held->wait_outcome(no_timeout).code;
    std::size_t index = 0;
    any = wait_any(held, 1, &index).code;
    all = wait_all(held, 1).code;
    completion = r->wait_for_completion().code;
    end = r->close();
    is_over = true;
  }
};

LEV_TEST(filter_test, a_filter_that_waits_is_told) {
  runtime& r = open_single();
  calls_of_a_filter calls;
  const filter waiter{
      [](waiting_task*, std::size_t, void* of) { static_cast<calls_of_a_filter*>(of)->make(); },
      &calls};
  ASSERT_EQ(r.set_filters(&waiter, 1), status::ok);
  ticket held;
  {
    gate g(r, 1);
    ticket last;
    for (int i = 0; i < 20; ++i) last = r.submit(nothing);
    held = r.submit(after(last), nothing);
    calls.r = &r;
    calls.held = &held;
    calls.is_wanted = true;
  }
  expect_all_done();
  ASSERT_TRUE(calls.is_over);
  EXPECT_FALSE(calls.is_done);
  EXPECT_EQ(calls.look, status::timed_out);
  for (const status s : {calls.one, calls.any, calls.all, calls.completion, calls.end})
    EXPECT_EQ(s, status::would_deadlock) << status_name(s);
  expect_ok(held);
  EXPECT_EQ(r.set_filters(nullptr, 0), status::ok);
}

}  // namespace
}  // namespace lev::test
