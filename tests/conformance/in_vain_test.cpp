// Conformance: waits in vain beside a wait in another runtime. Its task may go on there as long as
// anything does: they are told when nothing goes on in any runtime.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/runtime_state.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using in_vain_test = machine_test;
LEV_ON_THREADS(in_vain_test);

// Waits fill all contexts of the only worker, and below one of them lies a wait in another runtime,
// whose task has ended: they are told that they wait in vain.
struct full_house {
  runtime* home;
  runtime* away;
  std::uint64_t last = 0;
  std::atomic<bool> is_held{false};
  std::atomic<bool> may_begin{false};
  std::atomic<bool> child_began{false};
  std::atomic<int> told{0};
};
const auto holds_worker = define("in_vain.holds_worker", [](ref<full_house> h) {
  h.to->is_held = true;
  while (!h.to->may_begin) std::this_thread::yield();
});
void wait_for_last(full_house& h) {
  ticket last(h.home->state(), h.last);
  h.told += last.wait_outcome().code == status::would_deadlock;
  last.forget();
}
const auto waits_for_last =
    define("in_vain.waits_for_last", [](ref<full_house> h) { wait_for_last(*h.to); });
const auto child_of_first = define("in_vain.child_of_first", [](ref<full_house> h) {
  h.to->child_began = true;
  wait_for_last(*h.to);
});
const auto waits_for_child = define("in_vain.waits_for_child", [](ref<full_house> h) {
  while (!h.to->child_began) std::this_thread::yield();
});
const auto first_of_house = define("in_vain.first_of_house", [](ref<full_house> h) {
  ticket child = h.to->home->submit(child_of_first, h);
  h.to->away->submit(waits_for_child, h).wait();  // the child runs on top
  child.wait();
});

void expect_told(config own) {
  own.workers = 1;
  own.wait = wait_policy::park;
  config other;
  other.workers = 1;
  runtime away(other);
  runtime home(own);
  full_house h{&home, &away};
  h.home->post(holds_worker, ref{&h});
  // A worker that still polls would be sent `before`, and run it first.
  while (!h.is_held) std::this_thread::yield();
  h.home->post(first_of_house, ref{&h});
  for (unsigned i = 0; i < 20; ++i) h.home->post(waits_for_last, ref{&h});
  ticket before = h.home->submit(nothing);
  ticket last = h.home->submit(after(before), nothing);
  h.last = last.id();
  last.forget();
  h.may_begin = true;
  // Without a time-out: a host that will go on could still do something about it.
  EXPECT_EQ(h.home->wait_for_completion().code, status::ok);
  EXPECT_NE(h.told, 0);
}

LEV_TEST(in_vain_test, waits_above_a_guest_are_told) {
  expect_told(settings());
}

// A runtime whose worker is another process.
config elsewhere() {
  config c;
  c.machine = "processes";
  c.workers = 1;
  return c;
}
bool has_processes() {
  return !processes_only().empty() && machine_unavailable("processes") == nullptr;
}

// An idle worker in another process will not go on by itself.
LEV_TEST(in_vain_test, waits_are_told_beside_worker_processes) {
  if (!has_processes()) GTEST_SKIP() << "there are no worker processes here";
  const runtime idle(elsewhere());
  expect_told(settings());
}

// Hosts that poll for a ticket, of which none is left: none of them keeps the token of a wake-up in
// vain, and counts as one who is about to work.
LEV_TEST(in_vain_test, waits_are_told_beside_hosts_that_poll) {
  if (!has_processes()) GTEST_SKIP() << "there are no worker processes here";
  constexpr std::uint32_t pollers = 2;
  config c = elsewhere();
  c.tickets = 1;
  c.full = when_full::wait;
  c.wait = wait_policy::spin;
  runtime remote(c);
  std::vector<ticket> held;
  std::thread([&] {  // it ends: a bound thread in its own program might give some back
    refusal why;
    while (ticket t = remote.try_submit(pack(nothing), nullptr, &why)) held.push_back(std::move(t));
  })
      .join();
  std::atomic<std::uint32_t> bound{0};
  std::vector<std::thread> hosts;
  for (std::uint32_t i = 0; i < pollers; ++i) {
    hosts.emplace_back([&] {
      EXPECT_EQ(remote.wait_for_completion().code, status::ok);
      ++bound;
      while (bound != pollers) std::this_thread::yield();
      remote.submit(nothing).wait();
    });
  }
  detail::runtime_state& s = *remote.state();
  for (std::uint32_t i = 0; i < pollers; ++i) {
    participant& p = s.participants[s.first_host + i];
    while (bound != pollers || p.doing != activity::waits) std::this_thread::yield();
    p.park.unpark(*s.machine);
  }
  expect_told(settings());
  held.clear();
  for (std::thread& host : hosts) host.join();
}

}  // namespace
}  // namespace lev::test
