// Conformance: tasks that poll for each other in their contexts, and workers that share what there
// is.
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/runtime_state.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using polling_test = machine_test;
LEV_ON_LOCAL_MACHINES(polling_test);

using polling_threads_test = machine_test;
LEV_ON_THREADS(polling_threads_test);

using polling_sim_test = machine_test;
LEV_ON_SIM(polling_sim_test);

// Tasks that meet several times: all of them must be under way at once.
struct meeting {
  int members;
  std::atomic<int> arrived{0};
};
const auto meets = define("polling.meets", [](ref<meeting> m, int times) {
  auto task = this_task();
  for (int i = 1; i <= times; ++i) {
    m.to->arrived.fetch_add(1);
    task.wait_until([&] { return m.to->arrived.load() >= i * m.to->members; });
  }
});

LEV_TEST(polling_test, tasks_meet_if_the_workers_have_contexts_for_all) {
  for (const int workers : {1, 2, 3}) {
    for (const wait_policy how : {wait_policy::park, wait_policy::help}) {
      config c = settings();
      c.workers = workers;
      c.wait = how;
      runtime& r = open(c);
      const int most = static_cast<int>(contexts_max) * workers;
      for (const int members : {2, most - 12, most}) {
        meeting m{members};
        std::vector<ticket> all;
        for (int i = 0; i < members; ++i) all.push_back(r.submit(meets, ref{&m}, 3));
        ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok)
            << members << " tasks, " << workers << " workers";
      }
    }
  }
}

// One context for each worker: what one polls for, another one does.
const auto polls_for = define("polling.polls_for", [](ref<std::atomic<bool>> flag) {
  this_task().wait_until([&] { return flag.to->load(); });
});
const auto sets = define("polling.sets", [](ref<std::atomic<bool>> flag) { *flag.to = true; });

LEV_TEST(polling_test, time_passes_for_a_task_that_polls_alone) {
  config c = settings();
  c.workers = 2;
  c.contexts = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> flag{false};
    ticket both[2] = {r.submit(polls_for, ref{&flag}), r.submit(sets, ref{&flag})};
    ASSERT_EQ(wait_all(both, 2, wait_limit_ns()).code, status::ok);
  }
}

// The host's time-out is kept while a worker polls for ever.
LEV_TEST(polling_test, a_time_out_comes_while_a_task_polls) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  std::atomic<bool> flag{false};
  ticket t = r.submit(polls_for, ref{&flag});
  EXPECT_EQ(t.wait_outcome(1'000'000).code, status::timed_out);
  flag = true;
  expect_ok(t);
}

// Whoever wakes a worker takes it for awake at once, and it takes 50 us to wake: a letter sent
// meanwhile would wait for it, where a task in the queue is run by the host that waits for it.
LEV_TEST(polling_threads_test, a_worker_that_sleeps_gets_no_letter_when_it_has_been_woken) {
  config c = settings();
  c.workers = 1;
  runtime& r = open(c);
  counter n = 0;
  r.submit(count_one, ref{&n}).wait();
  auto& core = *r.state();
  const auto is_asleep = [&] {
    return core.doorbell.sleeps(0) &&
           core.participants[0].is_mailbox_open.load(memory_order_relaxed) == 0;
  };
  const std::uint64_t end_ns = r.now_ns() + static_cast<std::uint64_t>(wait_limit_ns());
  while (!is_asleep() && r.now_ns() < end_ns) std::this_thread::yield();
  EXPECT_TRUE(is_asleep());
}

// As many equal tasks as workers take as long as one, however far ahead a worker looks.
const auto takes_long = define(
    "polling.takes_long", [](inout<std::uint64_t> x) { ++x[0]; }, nullptr,
    [](const descriptor&) -> std::uint64_t { return 1'000'000; });

LEV_TEST(polling_sim_test, nobody_stages_what_an_idle_worker_could_run) {
  for (const std::uint32_t depth : {1u, 2u, 4u}) {
    for (const int workers : {2, 4, 8}) {
      config c = settings();
      c.depth = depth;
      c.workers = workers;
      c.wait = wait_policy::park;
      runtime& r = open(c);
      std::vector<std::vector<std::uint64_t>> data(static_cast<std::size_t>(workers),
                                                   std::vector<std::uint64_t>(16));
      const std::uint64_t begin_ns = r.now_ns();
      std::vector<ticket> all;
      for (auto& x : data) all.push_back(r.submit(takes_long, x));
      ASSERT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
      EXPECT_LT(r.now_ns() - begin_ns, 1'500'000u) << depth << " ahead, " << workers << " workers";
    }
  }
}

int count_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}
const auto note_cores =
    define("polling.note_cores", [](ref<int> cores) { *cores.to = count_cores(); });

// Its waker keeps it off its own core while it wakes it.
LEV_TEST(polling_threads_test, a_worker_that_was_woken_may_run_where_it_did) {
  config c = settings();
  c.workers = 1;
  c.spin_ns = 0;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  for (int i = 0; i < 200; ++i) {
    while (!r.state()->doorbell.someone_sleeps()) std::this_thread::yield();
    int cores = 0;
    r.submit(note_cores, ref{&cores}).wait();
    ASSERT_EQ(cores, count_cores());
  }
}

// Its context stays, and so the data of what it waits for is awaited there.
LEV_TEST(polling_test, a_task_in_an_interpreter_waits_for_data_beside_others) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  struct place {
    runtime* home = nullptr;
    std::atomic<bool> is_over{false};
  };
  static const auto polls = define("polling.polls_beside", [](ref<place> p) {
    this_task().wait_until([&] { return p.to->is_over.load(); });
  });
  static const auto waits = define("polling.waits_for_data", [](ref<place> p) {
    detail::stay_on_stack();
    std::vector<std::uint64_t> x(4096, 1);
    p.to->home->submit(increment, x).wait();
    p.to->is_over = x[4095] == 2;
  });
  place p;
  p.home = &open(c);
  ticket first = p.home->submit(polls, ref{&p});
  expect_ok(p.home->submit(waits, ref{&p}));
  expect_ok(std::move(first));
}

// A task awaits its own thread, which awaits a task of another worker: theirs sleeps with both.
struct held_task {
  ticket task;
  std::atomic<bool> has_begun{false}, is_awaited{false}, is_open{false};
};
const auto hold_on = define("polling.hold_on", [](ref<held_task> held) {
  held.to->has_begun = true;
  while (!held.to->is_open) std::this_thread::yield();
});
const auto await_own_thread = define("polling.await_own_thread", [](ref<held_task> held) {
  auto thread = this_task().spawn([held] {
    held.to->is_awaited = true;
    held.to->task.wait();
  });
  thread.join();
});

LEV_TEST(polling_threads_test, a_worker_sleeps_whose_task_awaits_a_thread_that_waits) {
  config c = settings();
  c.workers = 2;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  held_task held;
  held.task = r.submit(hold_on, ref{&held});
  while (!held.has_begun) std::this_thread::yield();
  ticket t = r.submit(await_own_thread, ref{&held});
  const auto is_one_asleep = [&] {
    for (unsigned i = 0; i < r.workers(); ++i) {
      if (r.state()->participants[i].park.is_asleep()) return true;
    }
    return false;
  };
  while (!held.is_awaited || !is_one_asleep()) std::this_thread::yield();
  held.is_open = true;
  expect_ok(t);
}

}  // namespace
}  // namespace lev::test
