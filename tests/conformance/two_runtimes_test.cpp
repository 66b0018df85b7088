// Conformance: tasks of several runtimes that wait for each other's tasks. A wait in another
// runtime is one like any other: its worker goes on with something else meanwhile, and no stack of
// one runtime is switched under the feet of another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using two_runtimes_test = machine_test;
LEV_ON_THREADS(two_runtimes_test);

using two_virtual_runtimes_test = machine_test;
LEV_ON_SIM(two_virtual_runtimes_test);

// The deeds of a tree of tasks over several runtimes, all drawn from a task's own number: how many
// children, in which runtimes, and how it waits for them.
struct forest {
  std::vector<runtime*> homes;
  unsigned width = 3;
  std::atomic<long> ran{0};
  std::atomic<int> strangers{0};  // tasks that another one than themselves came back to
  std::atomic<int> refused{0};
};
using tree_node = procedure<void(ref<forest>, std::uint32_t, int)>;
const tree_node& node();

runtime& choose(forest& f, std::mt19937& draw) {
  return *f.homes[draw() % f.homes.size()];
}

// Each way to wait for children, and to do something in between.
void wait_somehow(forest& f, std::mt19937& draw, std::vector<ticket>& children) {
  if (draw() % 3 == 0) this_task().yield();
  const auto count_loop = [&f](range r) { f.ran.fetch_add(static_cast<long>(r.end - r.begin)); };
  if (draw() % 4 == 0) choose(f, draw).parallel_for({0, 16}, count_loop);
  switch (draw() % 3) {
    case 0:
      for (ticket& t : children) t.wait();
      break;
    case 1:
      for (ticket& t : children) {
        while (t.wait_outcome(20'000).code == status::timed_out) {
        }
      }
      break;
    default:
      EXPECT_EQ(wait_all(children.data(), children.size()).code, status::ok);
  }
}

void node_body(ref<forest> place, std::uint32_t number, int depth) {
  forest& f = *place.to;
  std::mt19937 draw(number);
  f.ran.fetch_add(1);
  if (depth == 0) return;
  const volatile std::uint32_t own = number;  // on this stack
  std::vector<ticket> children;
  for (unsigned i = 0; i < f.width; ++i)
    children.push_back(
        choose(f, draw).submit(node(), place, static_cast<std::uint32_t>(draw()), depth - 1));
  wait_somehow(f, draw, children);
  if (own != number) f.strangers.fetch_add(1);
}
const tree_node& node() {
  static const tree_node p = define("two_runtimes.node", &node_body);
  return p;
}

void grow(forest& f, std::uint32_t seed) {
  std::mt19937 draw(seed);
  std::vector<ticket> roots;
  for (unsigned i = 0; i < 2 * f.homes.size(); ++i)
    roots.push_back(choose(f, draw).submit(node(), ref{&f}, static_cast<std::uint32_t>(draw()), 3));
  for (ticket& t : roots) EXPECT_EQ(t.wait_outcome().code, status::ok);
  EXPECT_EQ(f.strangers, 0);
}

LEV_TEST(two_runtimes_test, trees_over_several_runtimes_end) {
  const std::uint32_t seed = static_cast<std::uint32_t>(base_seed());
  for (std::uint32_t i = 0; i < 12; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed + i));
    std::mt19937 draw(seed + i);
    config c = settings();
    c.tickets = draw() % 2 == 0 ? 8 : 1024;  // at most 6 are for the roots
    c.wait = draw() % 2 == 0 ? wait_policy::help : wait_policy::park;
    runtime a(c);
    c.workers = 1 + static_cast<int>(draw() % 3);
    runtime b(c);
    c.wait = wait_policy::help;
    runtime third(c);
    forest f;
    f.homes = {&a, &b, &third};
    f.homes.resize(2 + draw() % 2);
    grow(f, seed + i);
  }
}

using yes_or_no = std::atomic<bool>;
const auto await_open = define("two_runtimes.await_open", [](ref<yes_or_no> is_open) {
  while (!*is_open.to) std::this_thread::yield();
});
const auto opens = define("two_runtimes.opens", [](ref<yes_or_no> is_open) { *is_open.to = true; });
const auto waits_there =
    define("two_runtimes.waits_there", [](ref<runtime> there, ref<yes_or_no> is_open) {
      there.to->submit(await_open, is_open).wait();
    });

// One worker each: it must not stand still while its task waits elsewhere.
LEV_TEST(two_runtimes_test, a_worker_goes_on_while_its_task_waits_elsewhere) {
  config c = settings();
  c.wait = wait_policy::park;
  c.workers = 1;
  runtime& near = open(c);
  runtime far(c);
  yes_or_no is_open{false};
  ticket first = near.submit(waits_there, ref{&far}, ref{&is_open});
  ticket second = near.submit(opens, ref{&is_open});
  EXPECT_EQ(wait(second).code, status::ok);
  EXPECT_EQ(wait(first).code, status::ok);
}

const auto nothing = define("two_runtimes.nothing", [] {});
const auto waits_for_nothing =
    define("two_runtimes.waits_for_nothing", [](ref<runtime> there, ref<yes_or_no> is_done) {
      there.to->submit(nothing).wait();
      *is_done.to = true;
    });

// Longer than nothing may go on until a wait is called a deadlock.
const auto works_long =
    define("two_runtimes.works_long", [] { spend(std::chrono::milliseconds(25)); });
const auto waits_for_long_work = define("two_runtimes.waits_for_long_work", [](ref<runtime> there) {
  there.to->submit(works_long).wait();
});

// As long as a task waits elsewhere, its own runtime cannot know that nothing goes on. The worker
// there still polls for letters when the first long task comes.
LEV_TEST(two_runtimes_test, a_long_task_elsewhere_is_no_deadlock) {
  config c = settings();
  c.wait = wait_policy::park;
  c.spin_ns = 50'000'000;
  runtime& near = open(c);
  runtime far(c);
  yes_or_no is_done{false};
  near.submit(waits_for_nothing, ref{&far}, ref{&is_done}).wait();
  std::vector<ticket> all;
  for (int i = 0; i < 20; ++i) all.push_back(near.submit(waits_for_long_work, ref{&far}));
  EXPECT_EQ(wait_all(all.data(), all.size()).code, status::ok);
}

// Tasks that post into the other runtime, whose tasks post back.
struct ping_pong {
  runtime* homes[2];
  std::atomic<std::uint32_t> ran{0};
  std::atomic<int> refused{0};
};
void post_across(ref<ping_pong> p, std::uint32_t home, std::uint32_t depth);
const auto across = define("two_runtimes.across", post_across);
void post_across(ref<ping_pong> p, std::uint32_t home, std::uint32_t depth) {
  ++p.to->ran;
  for (int i = 0; depth != 0 && i < 12; ++i) {
    try {
      p.to->homes[1 - home]->post(across, p, 1 - home, depth - 1);
    } catch (const error&) {
      ++p.to->refused;
    }
  }
}

// Each of the two has all its contexts in tasks that wait for slots of the other one, unless what
// they post is put off.
LEV_TEST(two_runtimes_test, tasks_that_post_into_each_others_runtime_end) {
  config c = settings();
  c.tickets = 1;
  runtime& near = open(c);
  runtime far(c);
  ping_pong p{{&near, &far}};
  near.post(across, ref{&p}, 0u, 4u);
  const auto is_done = [](const runtime& r) {
    const counters n = r.count();
    return n.submitted == n.completed;
  };
  do {
    EXPECT_EQ(near.wait_for_completion().code, status::ok);
    EXPECT_EQ(far.wait_for_completion().code, status::ok);
  } while (!is_done(near) || !is_done(far));
  EXPECT_EQ(p.refused, 0);
  EXPECT_EQ(p.ran, 1u + 12 + 144 + 1728 + 20736);
}

const auto back = define("two_runtimes.back", [](ref<runtime> home, ref<std::atomic<int>> refused) {
  try {
    home.to->submit(nothing).wait();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), status::would_block);
    EXPECT_NE(std::string(e.what()).find("in one of its tasks already"), std::string::npos);
    refused.to->fetch_add(1);
  }
});
const auto there_and_back =
    define("two_runtimes.there_and_back",
           [](ref<runtime> home, ref<runtime> other, ref<std::atomic<int>> refused) {
             other.to->submit(back, home, refused).wait();
           });

// In virtual time one flow of control is in one place: a task that would come back to a runtime
// that is below it is told so.
LEV_TEST(two_virtual_runtimes_test, who_comes_back_is_told) {
  runtime& a = open();
  runtime b(settings());
  std::atomic<int> refused{0};
  for (int i = 0; i < 8; ++i) {
    ticket t = a.submit(there_and_back, ref{&a}, ref{&b}, ref{&refused});
    while (i % 2 == 0 && !t.done()) {
    }
    EXPECT_EQ(wait(t).code, status::ok);
  }
  EXPECT_EQ(refused, 8);
}

struct ring_of_homes {
  runtime* helped;
  runtime* far;
  yes_or_no is_done{false};
};
const auto helps_there = define("two_runtimes.helps_there", [](ref<ring_of_homes> homes) {
  ref<yes_or_no> is_done{&homes.to->is_done};
  homes.to->helped->submit(waits_for_nothing, ref{homes.to->far}, is_done).wait();
});
const auto goes_through_virtual_time =
    define("two_runtimes.goes_through_virtual_time", [](ref<ring_of_homes> homes) {
      config c;
      c.machine = "sim";
      c.workers = 1;
      runtime virtual_one(c);
      virtual_one.submit(helps_there, homes).wait();
    });

// A thread that waits as a guest in one context, and comes back in another one by way of virtual
// time and of a runtime whose task it runs: that is a guest of somebody else.
LEV_TEST(two_runtimes_test, a_guest_that_comes_back_by_another_way_is_somebody_else) {
  config c = settings();
  c.wait = wait_policy::help;
  c.workers = 1;
  runtime helped(c);
  runtime near(c);
  c.workers = 2;
  runtime far(c);
  yes_or_no is_open{false};
  ring_of_homes homes{&helped, &far};
  // The one worker of `helped` has something to do.
  helped.post(await_open, ref{&homes.is_done});
  ticket first = near.submit(waits_there, ref{&far}, ref{&is_open});
  ticket second = near.submit(goes_through_virtual_time, ref{&homes});
  EXPECT_EQ(second.wait_outcome(no_timeout, wait_policy::park).code, status::ok);
  is_open = true;
  EXPECT_EQ(first.wait_outcome(no_timeout, wait_policy::park).code, status::ok);
}

const auto submits_back =
    define("two_runtimes.submits_back", [](ref<runtime> home) { home.to->submit(nothing).wait(); });
const auto comes_back = define("two_runtimes.comes_back", [](ref<runtime> home) {
  config c;
  c.machine = "sim";
  c.workers = 1;
  runtime virtual_one(c);
  virtual_one.submit(submits_back, home).wait();
});

// The one worker is below a task in virtual time, which cannot step aside.
LEV_TEST(two_runtimes_test, who_is_in_virtual_time_does_the_work_of_the_worker_below) {
  config c = settings();
  c.wait = wait_policy::park;
  c.workers = 1;
  runtime& home = open(c);
  ticket t = home.submit(comes_back, ref{&home});
  EXPECT_EQ(wait(t).code, status::ok);
}

// As many tasks as a worker has contexts wait for tasks of another runtime, each of which posts one
// back and polls for it: when all tickets are in use, the posted ones get slots, and run on top.
struct returning {
  runtime* home = nullptr;
  runtime* away = nullptr;
  std::atomic<int> begun{0};
  std::atomic<bool> is_back[contexts_max]{};
};
const auto come_back =
    define("two.come_back", [](ref<returning> r, int i) { r.to->is_back[i] = true; });
const auto send_back = define("two.send_back", [](ref<returning> r, int i) {
  task_context task = this_task();
  task.wait_until([&] { return r.to->begun.load() == static_cast<int>(contexts_max); });
  r.to->home->post(come_back, r, i);
  task.wait_until([&] { return r.to->is_back[i].load(); });
});
const auto go_away = define("two.go_away", [](ref<returning> r, int i) {
  ++r.to->begun;
  r.to->away->submit(send_back, r, i).wait();
});

LEV_TEST(two_runtimes_test, posts_from_another_one_find_slots_when_no_context_is_left) {
  config c = settings();
  c.workers = 1;
  c.tickets = contexts_max;
  c.wait = wait_policy::park;
  config other;
  other.workers = 2;
  other.wait = wait_policy::park;
  runtime away(other);
  returning r;
  r.home = &open(c);
  r.away = &away;
  std::vector<ticket> all;
  for (int i = 0; i < static_cast<int>(contexts_max); ++i)
    all.push_back(r.home->submit(go_away, ref{&r}, i));
  EXPECT_EQ(wait_all(all.data(), all.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(r.home->wait_for_completion(wait_limit_ns()).code, status::ok);
}

// What a host waited for is there, and it has a task in another context that needs one of the
// queued tasks; all contexts of the only worker are in tasks that poll.
struct crowd {
  runtime* home = nullptr;
  runtime* away = nullptr;  // null: the task of the host polls itself
  std::atomic<bool> keeps_worker{false};
  std::atomic<bool> is_in_host{false};
  std::atomic<int> begun{0};
  std::atomic<bool> is_over{false};
};
const auto keep_worker = define("two.keep_worker", [](ref<crowd> c) {
  c.to->keeps_worker = true;
  while (!c.to->is_in_host) std::this_thread::yield();
});
const auto poll_in_crowd = define("two.poll_in_crowd", [](ref<crowd> c) {
  ++c.to->begun;
  this_task().wait_until([&] { return c.to->is_over.load(); });
});
const auto end_crowd = define("two.end_crowd", [](ref<crowd> c) { c.to->is_over = true; });
void gather_crowd(ref<crowd> c) {
  spend(std::chrono::milliseconds(20));  // the host leaves meanwhile
  for (std::uint32_t i = 0; i < contexts_max; ++i) c.to->home->post(poll_in_crowd, c);
  while (c.to->begun != static_cast<int>(contexts_max)) std::this_thread::yield();
}
const auto need_home = define("two.need_home", [](ref<crowd> c) {
  gather_crowd(c);
  c.to->home->submit(end_crowd, c).wait();
});
const auto need_another = define("two.need_another", [](ref<crowd> c) {
  c.to->is_in_host = true;
  if (c.to->away != nullptr) return c.to->away->submit(need_home, c).wait();
  std::thread elsewhere([c] {
    gather_crowd(c);
    c.to->home->post(end_crowd, c);
  });
  this_task().wait_until([&] { return c.to->is_over.load(); });
  elsewhere.join();
});
// Below the other one in the host's stacks: the host gets back to its program.
const auto be_below = define("two.be_below", [](ref<crowd> c) {
  c.to->home->post(need_another, c);
  this_task().wait_until([&] { return c.to->is_in_host.load(); });
});

void wait_for_crowd(crowd& c) {
  ticket first = c.home->submit(keep_worker, ref{&c});
  while (!c.keeps_worker) std::this_thread::yield();
  ticket second = c.home->submit(be_below, ref{&c});
  first.wait();
  EXPECT_TRUE(c.is_over);
  second.wait();
  EXPECT_EQ(c.home->wait_for_completion().code, status::ok);
}

LEV_TEST(two_runtimes_test, a_leaving_host_runs_what_its_task_needs) {
  config own = settings();
  own.workers = 1;
  own.contexts = contexts_max;
  own.wait = wait_policy::help;
  config other;
  other.workers = 1;
  other.wait = wait_policy::park;
  runtime away(other);
  crowd c;
  c.home = &open(own);
  wait_for_crowd(c);
  c.away = &away;
  c.keeps_worker = c.is_in_host = c.is_over = false;
  c.begun = 0;
  wait_for_crowd(c);
}

const auto submits_a_bulk_to = define("two.submits_a_bulk_to", [](ref<runtime> home) {
  home.to->submit_bulk(1, [](std::size_t, descriptor& d) { d = pack(nothing); }).wait();
});

// Bulks take half of the tickets at most, but the one that is in a task of another runtime.
LEV_TEST(two_runtimes_test, a_bulk_waits_for_one_of_a_task_elsewhere) {
  config c = settings();
  c.tickets = 2;
  runtime& home = open(c);
  config other = settings();
  other.wait = wait_policy::park;
  runtime elsewhere(other);
  expect_ok(home.submit_bulk(2, [&](std::size_t i, descriptor& d) {
    if (i == 1) elsewhere.submit(submits_a_bulk_to, ref{&home}).wait();
    d = pack(nothing);
  }));
}

// A filter that waits, once, for a task of another runtime.
struct waiting_hook {
  ticket of_another;
  std::atomic<bool> is_wanted{false}, has_begun{false}, has_ended{false}, may_end{false};

  static void run(waiting_task*, std::size_t, void* of) {
    auto& hook = *static_cast<waiting_hook*>(of);
    if (!hook.is_wanted.exchange(false)) return;
    hook.has_begun = true;
    EXPECT_EQ(hook.of_another.wait_outcome(no_timeout).code, status::ok);
    hook.has_ended = true;
  }
};
const auto let_hook_end = define("two.let_hook_end", [](ref<waiting_hook> hook) {
  while (!hook.to->may_end) std::this_thread::yield();
});

// The runtimes of a worker that has a hook in one context, and a task in another one.
struct hooks_of_worker {
  runtime* home = nullptr;
  runtime* other = nullptr;
  waiting_hook own, others;
};
const auto beside_hook = define("two.beside_hook", [](ref<hooks_of_worker> all) {
  auto& [home, other, own, others] = *all.to;
  this_task().wait_until([&] { return own.has_begun.load(); });
  ticket child = home->submit(nothing);
  own.may_end = true;
  child.wait();
});
const auto in_later_hook = define("two.in_later_hook", [](ref<hooks_of_worker> all) {
  auto& [home, other, own, others] = *all.to;
  this_task().wait_until([&] { return own.has_begun.load(); });
  others.is_wanted = true;
  other->submit(nothing).wait();
  EXPECT_TRUE(others.has_ended && own.has_ended);
  home->submit(nothing).wait();
});
const auto end_hooks_in_turn = define("two.end_hooks_in_turn", [](ref<hooks_of_worker> all) {
  auto& [home, other, own, others] = *all.to;
  while (!others.has_begun) std::this_thread::yield();
  own.may_end = true;
  while (!own.has_ended) std::this_thread::yield();
  others.may_end = true;
});
const auto in_hook = define("two.in_hook", [](ref<hooks_of_worker> all, bool has_later) {
  auto& [home, other, own, others] = *all.to;
  ticket beside = home->submit(has_later ? in_later_hook : beside_hook, all);
  own.is_wanted = true;
  home->submit(nothing).wait();
  beside.wait();
});

// A hook that waits elsewhere is in its own context only.
LEV_TEST(two_runtimes_test, a_hook_refuses_nothing_to_tasks_beside_it) {
  for (const bool has_later : {false, true}) {
    config c = settings();
    c.workers = 1;
    c.contexts = contexts_max;
    c.wait = wait_policy::park;
    hooks_of_worker all;
    runtime home(c), other(c), third(c), fourth(c), last(c);
    all.home = &home;
    all.other = &other;
    all.own.of_another = third.submit(let_hook_end, ref{&all.own});
    if (has_later) all.others.of_another = fourth.submit(let_hook_end, ref{&all.others});
    const filter of_home{&waiting_hook::run, &all.own}, of_other{&waiting_hook::run, &all.others};
    ASSERT_EQ(home.set_filters(&of_home, 1), status::ok);
    ASSERT_EQ(other.set_filters(&of_other, 1), status::ok);
    ticket in_turn = has_later ? last.submit(end_hooks_in_turn, ref{&all}) : ticket{};
    expect_ok(home.submit(in_hook, ref{&all}, has_later));
    if (has_later) expect_ok(in_turn);
    EXPECT_TRUE(all.own.has_ended);
  }
}

}  // namespace
}  // namespace lev::test
