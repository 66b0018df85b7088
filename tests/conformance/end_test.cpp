// Conformance: ending single tasks, also those that run, and time limits of single tasks. A worker
// process is killed for it; nobody else's task may show that it was.
#include <gtest/gtest.h>

#include <poll.h>

#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"
#include "support/refused.hpp"

namespace lev::test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

void spin(std::uint32_t turns) {
  for (std::uint32_t i = 0; i < turns; ++i) asm volatile("");
}

// Counts, and then takes a time that no clock of the host's tells.
const auto count_and_spin = define("end.count_and_spin", [](ref<counter> n, std::uint32_t turns) {
  ++*n.to;
  spin(turns);
});
const auto endless = define("end.endless", [](ref<counter> begun) {
  ++*begun.to;
  for (volatile bool goes_on = true; goes_on;) {
  }
});
const auto bad_piece = define("end.piece", [](range r, ref<counter> begun, std::uint64_t bad) {
  for (std::uint64_t i = r.begin; i < r.end; ++i) {
    if (i < bad) continue;
    ++*begun.to;
    for (volatile bool goes_on = true; goes_on;) {
    }
  }
});

// Must not be run twice: a death that is blamed on it ends it.
procedure<void(ref<counter>)> once_only() {
  static const auto p = [] {
    static const kind kinds[] = {kind::value};
    procedure_info info;
    info.name = "end.once_only";
    info.run = [](const call& c) {
      ++*detail::parameter<ref<counter>>::unpack(c.arguments[0]).to;
      return 0;
    };
    info.kinds = kinds;
    info.kind_count = 1;
    info.may_rerun = false;
    procedure_id id = 0;
    register_procedure(info, &id);
    return procedure<void(ref<counter>)>{id};
  }();
  return p;
}

void await(const counter& n, int value) {
  while (n.load() < value) std::this_thread::yield();
}

class end_test : public machine_test {
 protected:
  runtime& open_parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return open(c);
  }
  // The answer of end() for a task without an outcome.
  static status asked() { return is_remote() ? status::ok : status::not_supported; }
};
LEV_ON_EVERY_MACHINE(end_test);

LEV_TEST(end_test, waiting_tasks_do_not_run) {
  runtime& r = open_parked();
  counter n = 0;
  std::vector<ticket> t;
  {
    gate g(r, r.workers());
    for (int i = 0; i < 100; ++i) t.push_back(r.submit(count_one, ref{&n}));
    for (std::size_t i = 0; i < 100; i += 2) EXPECT_EQ(t[i].end(), asked());
    const status again = t[0].end();
    EXPECT_TRUE(again == asked() || again == status::too_late) << status_name(again);
  }
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_EQ(wait(t[i]).code, i % 2 == 0 ? status::cancelled : status::ok) << i;
  EXPECT_EQ(n, 50);
}

LEV_TEST(end_test, a_completed_task_says_so) {
  runtime& r = open();
  ticket good = r.submit(nothing);
  ticket bad = r.submit(throw_error, 1);
  expect_all_done();
  EXPECT_EQ(good.end(), status::too_late);
  EXPECT_EQ(bad.end(), status::too_late);
  const std::uint64_t id = good.id();
  EXPECT_EQ(wait(good).code, status::ok);
  EXPECT_EQ(wait(bad).code, status::task_failed);
  EXPECT_EQ(detail::end(r.state(), id), status::stale_ticket);
  EXPECT_EQ(detail::end(r.state(), ~std::uint64_t{0}), status::bad_ticket);
  EXPECT_EQ(detail::end(nullptr, id), status::bad_ticket);
}

LEV_TEST(end_test, a_running_task_of_this_process_goes_on) {
  if (is_sim() || is_remote()) GTEST_SKIP() << "nobody looks on, or it is ended";
  runtime& r = open_parked();
  shared_array<char> place(sizeof(gate_state));
  gate_state& state = *new (place.data()) gate_state;
  ticket t = r.submit(gate_procedure, ref{&state});
  while (state.started == 0) std::this_thread::yield();
  EXPECT_EQ(t.end(), status::not_supported);
  state.is_open = true;
  EXPECT_EQ(wait(t).code, status::ok);
}

LEV_TEST(end_test, a_child_that_waits_is_ended_and_its_parent_goes_on) {
  LEV_SKIP_IF_REMOTE();
  runtime& r = open();
  status of_child = status::pending;
  int after = 0;
  r.submit(define("end.parent",
                  [](ref<runtime> home, ref<status> code, ref<int> n) {
                    ticket child = home.to->submit(nothing);
                    const status asked = child.end();  // too_late: another worker was quicker
                    EXPECT_TRUE(asked == status::not_supported || asked == status::too_late);
                    *code.to = child.wait_outcome().code;
                    *n.to = 1;
                  }),
           ref{&r}, ref{&of_child}, ref{&after})
      .wait();
  EXPECT_TRUE(of_child == status::cancelled || of_child == status::ok) << status_name(of_child);
  EXPECT_EQ(after, 1);
}

LEV_TEST(end_test, a_time_limit_needs_worker_processes) {
  runtime& r = open();
  counter n = 0;
  const options o = options().task_ns_max(60'000 * ms);
  if (is_remote()) {
    ticket t = r.submit(o, count_one, ref{&n});
    EXPECT_EQ(wait(t).code, status::ok);
  } else {
    expect_refused(status::not_supported, "task_ns_max", [&] { r.submit(o, count_one, ref{&n}); });
  }
  ticket t = r.submit(options().task_ns_max(no_time_limit).max_attempts(1), count_one, ref{&n});
  EXPECT_EQ(wait(t).code, status::ok);
  EXPECT_THROW(r.submit(options().max_attempts(1001), count_one, ref{&n}), error);
  EXPECT_EQ(n, is_remote() ? 2 : 1);
}

using end_running_test = end_test;
LEV_ON_PROCESSES(end_running_test);

LEV_TEST(end_running_test, a_running_task_is_cancelled) {
  runtime& r = open_parked();
  for (int i = 0; i < rounds(20); ++i) {
    counter begun = 0;
    ticket t = r.submit(endless, ref{&begun});
    await(begun, 1);
    EXPECT_EQ(t.end(), status::ok);
    ASSERT_EQ(wait(t).code, status::cancelled);
    EXPECT_EQ(begun, 1) << "it was run again";
  }
  EXPECT_EQ(r.count().reruns, 0u);
}

LEV_TEST(end_running_test, nobody_needs_to_wait_for_it) {
  runtime& r = open_parked();
  counter begun = 0;
  ticket t = r.submit(endless, ref{&begun});
  await(begun, 1);
  EXPECT_EQ(t.end(), status::ok);
  while (!t.done()) std::this_thread::yield();
  EXPECT_EQ(wait(t).code, status::cancelled);
}

LEV_TEST(end_running_test, tasks_behind_it_are_done_once) {
  runtime& r = open_parked();
  counter begun = 0;
  counter done = 0;
  std::vector<ticket> bad;
  for (unsigned i = 0; i < r.workers(); ++i) bad.push_back(r.submit(endless, ref{&begun}));
  await(begun, static_cast<int>(r.workers()));
  std::vector<ticket> t;
  for (int i = 0; i < 100; ++i) t.push_back(r.submit(count_one, ref{&done}));
  for (ticket& each : bad) EXPECT_EQ(each.end(), status::ok);
  for (ticket& each : t) ASSERT_EQ(wait(each).code, status::ok);
  for (ticket& each : bad) ASSERT_EQ(wait(each).code, status::cancelled);
  EXPECT_EQ(done, 100);
  EXPECT_EQ(r.count().reruns, 0u);
}

// At a random moment: before its begin, in its body, at its end, and when the worker has begun the
// next task, which must not be blamed: it must not be run twice, and has one attempt.
LEV_TEST(end_running_test, racing_with_its_end_hurts_no_other_task) {
  config c = settings();
  c.processes.max_attempts = 1;
  runtime& r = open(c);
  random_source random(c.seed);
  int cancelled = 0;
  for (int i = 0; i < rounds(300); ++i) {
    counter n = 0;
    counter others = 0;
    std::vector<ticket> behind;
    ticket t = r.submit(count_and_spin, ref{&n}, random.below(60'000));
    for (int k = 0; k < 6; ++k) behind.push_back(r.submit(once_only(), ref{&others}));
    spin(random.below(40'000));
    const status said = t.end();
    ASSERT_TRUE(said == status::ok || said == status::too_late) << status_name(said);
    const status code = wait(t).code;
    ASSERT_TRUE(code == status::ok || code == status::cancelled) << status_name(code);
    ASSERT_FALSE(said == status::too_late && code != status::ok);
    ASSERT_LE(n, 1);
    ASSERT_FALSE(code == status::ok && n != 1);
    for (ticket& each : behind) ASSERT_EQ(wait(each).code, status::ok) << "round " << i;
    ASSERT_EQ(others, 6);
    cancelled += code == status::cancelled;
  }
  EXPECT_EQ(r.count().reruns, 0u);
  RecordProperty("cancelled", cancelled);
}

LEV_TEST(end_running_test, what_comes_after_it_does_not_run) {
  runtime& r = open_parked();
  counter begun = 0;
  counter n = 0;
  ticket first = r.submit(endless, ref{&begun});
  ticket second = r.submit(after(first), count_one, ref{&n});
  ticket third = r.submit(after(second), count_one, ref{&n});
  await(begun, 1);
  EXPECT_EQ(first.end(), status::ok);
  EXPECT_EQ(wait(third).code, status::dependency_failed);
  EXPECT_EQ(wait(second).code, status::dependency_failed);
  EXPECT_EQ(wait(first).code, status::cancelled);
  EXPECT_EQ(n, 0);
}

LEV_TEST(end_running_test, a_mutex_that_it_held_goes_to_the_next) {
  runtime& r = open_parked();
  mutex_id m;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  counter begun = 0;
  counter n = 0;
  ticket first = r.submit(locks(m), endless, ref{&begun});
  ticket second = r.submit(locks(m), count_one, ref{&n});
  await(begun, 1);
  EXPECT_EQ(first.end(), status::ok);
  EXPECT_EQ(wait(second).code, status::ok);
  EXPECT_EQ(wait(first).code, status::cancelled);
}

LEV_TEST(end_running_test, a_bulk_ends_with_all_its_tasks) {
  runtime& r = open_parked();
  counter begun = 0;
  ticket t = r.submit_bulk(40, [&](std::size_t, descriptor& d) { d = pack(endless, ref{&begun}); });
  await(begun, static_cast<int>(r.workers()));
  EXPECT_EQ(t.end(), status::ok);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::cancelled);
  EXPECT_EQ(o.failures, 40u);
}

LEV_TEST(end_running_test, a_diced_task_ends_with_its_pieces) {
  runtime& r = open_parked();
  counter begun = 0;
  ticket t = r.submit(options().grain(1), bad_piece, range{0, 64}, ref{&begun}, std::uint64_t{8});
  await(begun, 1);
  EXPECT_EQ(t.end(), status::ok);
  EXPECT_EQ(wait(t).code, status::cancelled);
}

LEV_TEST(end_running_test, outputs_stay_as_they_were) {
  static const auto writes = define("end.writes", [](inout<std::uint64_t> x, ref<counter> begun) {
    for (std::uint64_t& v : x) v = 666;
    ++*begun.to;
    for (volatile bool goes_on = true; goes_on;) {
    }
  });
  runtime& r = open_parked();
  counter begun = 0;
  std::vector<std::uint64_t> x(100, 5);
  ticket t = r.submit(writes, x, ref{&begun});
  await(begun, 1);
  EXPECT_EQ(t.end(), status::ok);
  EXPECT_EQ(wait(t).code, status::cancelled);
  EXPECT_EQ(x, std::vector<std::uint64_t>(100, 5));
}

LEV_TEST(end_running_test, before_close) {
  for (const bool cancels : {false, true}) {
    runtime& r = open(settings());
    counter begun = 0;
    counter n = 0;
    ticket t = r.submit(endless, ref{&begun});
    await(begun, 1);
    for (int i = 0; i < 20; ++i) r.post(count_one, ref{&n});
    EXPECT_EQ(t.end(), status::ok);
    EXPECT_EQ(r.close(wait_limit_ns(), cancels), status::ok);
    EXPECT_EQ(wait(t).code, status::cancelled);
    if (!cancels) {
      EXPECT_EQ(n, 20);
    }
  }
}

LEV_TEST(end_running_test, of_a_runtime_that_is_closing) {
  runtime& r = open(settings());
  counter begun = 0;
  ticket t = r.submit(endless, ref{&begun});
  await(begun, 1);
  EXPECT_EQ(r.close(1), status::timed_out);
  EXPECT_EQ(t.end(), status::ok);
  EXPECT_EQ(r.close(wait_limit_ns()), status::ok);
  EXPECT_EQ(wait(t).code, status::cancelled);
}

LEV_TEST(end_running_test, by_many_threads_at_once) {
  runtime& r = open_parked();
  for (int i = 0; i < rounds(10); ++i) {
    counter begun = 0;
    ticket t = r.submit(endless, ref{&begun});
    await(begun, 1);
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) threads.emplace_back([&] { detail::end(r.state(), t.id()); });
    for (std::thread& each : threads) each.join();
    ASSERT_EQ(wait(t).code, status::cancelled);
  }
}

// Far more than restarts_max: none of them counts as a worker that dies without having worked.
LEV_TEST(end_running_test, does_not_wear_the_pool_out) {
  config c = settings();
  c.processes.restarts_max = 1;
  runtime& r = open(c);
  std::uint64_t x = 0;
  for (int i = 0; i < rounds(40); ++i) {
    counter begun = 0;
    ticket t = r.submit(endless, ref{&begun});
    if (i % 2 == 0) await(begun, 1);
    EXPECT_EQ(t.end(), status::ok);
    ASSERT_EQ(wait(t).code, status::cancelled);
  }
  r.submit(increment, std::span(&x, 1)).wait();
  EXPECT_EQ(x, 1u);
}

LEV_TEST(end_running_test, each_task_has_its_own_time) {
  config c = settings();
  c.wait = wait_policy::park;
  c.processes.task_ns_max = 60'000 * ms;
  runtime& r = open(c);
  counter begun = 0;
  counter n = 0;
  ticket slow = r.submit(options().task_ns_max(30 * ms), endless, ref{&begun});
  ticket other = r.submit(options().task_ns_max(no_time_limit), count_one, ref{&n});
  EXPECT_EQ(wait(slow).code, status::overran);
  EXPECT_EQ(wait(other).code, status::ok);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(n, 1);
}

// The one behind is timed from its own begin, and one without a limit is not timed at all.
LEV_TEST(end_running_test, time_limits_begin_with_the_body) {
  static const auto naps = define("end.naps", [](int body_ms) { poll(nullptr, 0, body_ms); });
  runtime& r = open_parked();
  std::vector<ticket> t;
  for (int i = 0; i < 8; ++i) t.push_back(r.submit(options().task_ns_max(900 * ms), naps, 250));
  t.push_back(r.submit(naps, 1000));
  for (ticket& each : t) EXPECT_EQ(wait(each).code, status::ok);
}

LEV_TEST(end_running_test, a_time_limit_goes_with_the_pieces) {
  runtime& r = open_parked();
  counter begun = 0;
  const options o = options().grain(1).task_ns_max(300 * ms);
  ticket t = r.submit(o, bad_piece, range{0, 16}, ref{&begun}, std::uint64_t{14});
  const outcome out = wait(t);
  EXPECT_EQ(out.code, status::overran);
  EXPECT_LE(out.failures, 2u);
}

LEV_TEST(end_running_test, attempts_of_one_task) {
  static const auto dies = define("end.dies", [](ref<counter> n) {
    ++*n.to;
    raise(SIGKILL);
  });
  runtime& r = open_parked();
  for (const int most : {1, 2, 5}) {
    counter n = 0;
    ticket t = r.submit(options().max_attempts(static_cast<std::uint32_t>(most)), dies, ref{&n});
    EXPECT_EQ(wait(t).code, status::poison);
    EXPECT_EQ(n, most);
  }
}

}  // namespace
}  // namespace lev::test
