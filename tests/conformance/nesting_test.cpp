// Conformance: tasks that submit tasks and wait for them. One worker is always enough; too much
// depth and waits in a circle are errors, never hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

using nesting_test = machine_test;
LEV_ON_LOCAL_MACHINES(nesting_test);

using fib_procedure = procedure<void(ref<runtime>, int, result<std::int64_t>)>;
const fib_procedure& fib();
void fib_body(ref<runtime> home, int n, result<std::int64_t> value) {
  if (n < 2) {
    value = n;
    return;
  }
  std::int64_t a = 0;
  std::int64_t b = 0;
  ticket both[2];
  try {
    both[0] = home.to->submit(fib(), home, n - 1, a);
    both[1] = home.to->submit(fib(), home, n - 2, b);
  } catch (...) {
    wait_all(both, 2);  // a and b must outlive the tasks
    throw;
  }
  const outcome o = wait_all(both, 2);
  if (o.code != status::ok) throw error(o.code, -1, "a child failed");
  value = a + b;
}
const fib_procedure& fib() {
  static const fib_procedure p = define("nesting.fib", &fib_body);
  return p;
}

LEV_TEST(nesting_test, fib_with_every_wait_policy) {
  for (const wait_policy policy : {wait_policy::help, wait_policy::park, wait_policy::spin}) {
    config c = settings();
    c.wait = policy;
    runtime& r = open(c);
    std::int64_t value = 0;
    r.submit(fib(), ref{&r}, 14, value).wait();
    EXPECT_EQ(value, 377);
  }
}

// Fewer tickets than tasks: those inside must help or be told.
LEV_TEST(nesting_test, fib_with_few_tickets_ends) {
  config c = settings();
  c.tickets = 32;
  runtime& r = open(c);
  std::int64_t value = 0;
  ticket t = r.submit(fib(), ref{&r}, 12, value);
  const outcome o = wait(t);
  if (o.code == status::ok) {
    EXPECT_EQ(value, 144);
  } else {
    EXPECT_EQ(o.code, status::task_failed);
  }
  const status rest = r.wait_for_completion(wait_limit_ns()).code;
  EXPECT_TRUE(rest == status::ok || rest == status::task_failed) << status_name(rest);
}

using chain_procedure = procedure<void(ref<runtime>, int, result<int>)>;
const chain_procedure& chain();
void chain_body(ref<runtime> home, int depth, result<int> reached) {
  int below = 0;
  if (depth > 0) home.to->submit(chain(), home, depth - 1, below).wait();
  reached = below + 1;
}
const chain_procedure& chain() {
  static const chain_procedure p = define("nesting.chain", &chain_body);
  return p;
}

LEV_TEST(nesting_test, a_chain_as_deep_as_the_default_allows) {
  config c = settings();
  runtime& r = open(c);
  const int depth = static_cast<int>(c.nest_max) - 6;
  int reached = 0;
  r.submit(chain(), ref{&r}, depth, reached).wait();
  EXPECT_EQ(reached, depth + 1);
}

// Links without results: one that could not wait for its child leaves it behind.
using loose_procedure = procedure<void(ref<runtime>, int)>;
const loose_procedure& loose_chain() {
  static const loose_procedure p = define("nesting.loose_chain", [](ref<runtime> home, int depth) {
    if (depth > 0) home.to->submit(loose_chain(), home, depth - 1).wait();
  });
  return p;
}

LEV_TEST(nesting_test, more_depth_than_allowed_is_an_error) {
  config c = settings();
  c.nest_max = 4;
  runtime& r = open(c);
  // However it is spread over the contexts of workers and host, one stack would have to be deeper
  // than allowed.
  const int stacks = static_cast<int>(contexts_max * (r.workers() + 1));
  const int depth = 4 * stacks + 8;
  ticket t = r.submit(loose_chain(), ref{&r}, depth);
  const outcome o = wait(t);
  EXPECT_EQ(o.code, status::task_failed);
  ASSERT_TRUE(o.exception);
  try {
    std::rethrow_exception(o.exception);
  } catch (const error& e) {
    EXPECT_TRUE(e.code() == status::too_deep || e.code() == status::would_deadlock) << e.what();
  }
  r.wait_for_completion(wait_limit_ns());
  int reached = 0;
  r.submit(chain(), ref{&r}, 3, reached).wait();
  EXPECT_EQ(reached, 4);
}

// A stack that is as deep as allowed is set aside, and another one goes on.
LEV_TEST(nesting_test, a_chain_goes_on_in_other_contexts) {
  config c = settings();
  c.nest_max = 4;
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  int reached = 0;
  constexpr int depth = 4 * 8;
  r.submit(chain(), ref{&r}, depth, reached).wait();
  EXPECT_EQ(reached, depth + 1);
}

// A task gets its own ticket, by way of the host, and waits for it in every way there is.
struct own_ticket {
  std::uint64_t id = 0;
  std::atomic<bool> is_there{false};
  status one{};
  status any{};
  status all{};
};
const auto wait_for_self =
    define("nesting.wait_for_self", [](ref<runtime> home, ref<own_ticket> o) {
      o.to->is_there.wait(false);
      detail::runtime_state* core = home.to->state();
      std::size_t index = 0;
      ticket me(core, o.to->id);
      o.to->one = me.wait_outcome().code;
      o.to->any = wait_any(&me, 1, &index).code;
      o.to->all = wait_all(&me, 1).code;
      me.forget();
    });

LEV_TEST(nesting_test, a_task_that_waits_for_itself_is_told) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  own_ticket o;
  ticket t = r.submit(wait_for_self, ref{&r}, ref{&o});
  o.id = t.id();
  o.is_there = true;
  o.is_there.notify_all();
  expect_ok(t);
  EXPECT_EQ(o.one, status::would_deadlock);
  EXPECT_EQ(o.any, status::would_deadlock);
  EXPECT_EQ(o.all, status::would_deadlock);
}

// A child that waits for its parent, which waits for the child.
const auto wait_for_parent =
    define("nesting.wait_for_parent", [](ref<runtime> home, ref<own_ticket> o) {
      ticket parent(home.to->state(), o.to->id);
      o.to->one = parent.wait_outcome(50'000'000).code;
      parent.forget();
    });
const auto wait_for_child =
    define("nesting.wait_for_child", [](ref<runtime> home, ref<own_ticket> o) {
      o.to->is_there.wait(false);
      home.to->submit(wait_for_parent, home, o).wait();
    });

LEV_TEST(nesting_test, a_circle_of_waits_does_not_hang) {
  config c = settings();
  c.wait = wait_policy::park;
  runtime& r = open(c);
  own_ticket o;
  ticket t = r.submit(wait_for_child, ref{&r}, ref{&o});
  o.id = t.id();
  o.is_there = true;
  o.is_there.notify_all();
  expect_ok(t);
  EXPECT_TRUE(o.one == status::would_deadlock || o.one == status::timed_out);
  if (r.workers() == 1) {
    EXPECT_EQ(o.one, status::would_deadlock);
  }
}

// Inside a task: wait_all, wait_any, time-outs and bulks.
struct inner_results {
  status all{};
  status any{};
  status late{};
  counter ran{0};
};
const auto waits_of_all_sorts =
    define("nesting.waits_of_all_sorts", [](ref<runtime> home, ref<inner_results> out) {
      std::vector<ticket> t;
      for (int i = 0; i < 20; ++i) t.push_back(home.to->submit(count_one, ref{&out.to->ran}));
      std::size_t index = 0;
      out.to->any = wait_any(t.data(), t.size(), &index).code;
      out.to->all = wait_all(t.data(), t.size()).code;
      ticket last = home.to->submit(nothing);
      outcome o;
      while ((o = last.wait_outcome(1000)).code == status::timed_out) {
      }
      out.to->late = o.code;
    });

LEV_TEST(nesting_test, waits_of_all_sorts_inside_a_task) {
  runtime& r = open();
  for (int i = 0; i < 20; ++i) {
    inner_results out;
    r.submit(waits_of_all_sorts, ref{&r}, ref{&out}).wait();
    ASSERT_EQ(out.any, status::ok);
    ASSERT_EQ(out.all, status::ok);
    ASSERT_EQ(out.late, status::ok);
    ASSERT_EQ(out.ran, 20);
  }
}

// Children of every kind, one behind the other as a number says.
enum class sort_of_child : unsigned { plain, fails, is_cancelled, calls_back, is_let_go, sorts };
struct mixed_family {
  runtime* home;
  std::atomic<int> ran{0};
  std::atomic<int> called{0};
  std::atomic<int> threw{0};
  int with_callback = 0;
  bool is_consumed = true;
  outcome all{};
};
const auto mixed_child = define("nesting.mixed_child", [](ref<mixed_family> f, sort_of_child what) {
  ++f.to->ran;
  if (what != sort_of_child::fails) return;
  ++f.to->threw;
  throw std::runtime_error("a child of the kind that fails");
});
constexpr int mixed_children = 20;
const auto mixed_parent = define("nesting.mixed_parent", [](ref<mixed_family> f, unsigned seed) {
  ticket all[mixed_children];
  for (ticket& t : all) {
    seed = seed * 1103515245 + 12345;
    const auto what =
        static_cast<sort_of_child>((seed >> 16) % static_cast<unsigned>(sort_of_child::sorts));
    t = f.to->home->submit(mixed_child, f, what);
    if (what == sort_of_child::is_cancelled) t.cancel();
    if (what == sort_of_child::is_let_go) t.release();
    if (what != sort_of_child::calls_back) continue;
    ++f.to->with_callback;
    t.then([](void* to) { ++static_cast<mixed_family*>(to)->called; }, f.to);
  }
  f.to->all = wait_all(all, mixed_children);
  for (const ticket& t : all) f.to->is_consumed &= !t;
});

LEV_TEST(nesting_test, children_of_every_kind_are_waited_for_at_once) {
  runtime& r = open();
  for (unsigned seed = 0; seed < 60; ++seed) {
    mixed_family f{&r};
    r.submit(mixed_parent, ref{&f}, seed).wait();
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
    EXPECT_TRUE(f.is_consumed) << seed;
    EXPECT_EQ(f.called, f.with_callback) << seed;
    // Those that did not run were cancelled.
    const int failures = f.threw + mixed_children - f.ran;
    EXPECT_EQ(f.all.failures, static_cast<std::uint32_t>(failures)) << seed;
    EXPECT_EQ(f.all.code == status::ok, failures == 0) << seed;
  }
}

// A ticket that was used up, whose slot is another task's by now, or that was released: nobody
// waits for that task, and it does not run on top of one that names its number.
struct used_up {
  runtime* home;
  bool is_released;
  status code{};
  bool parent_is_done = false;
  bool ran_on_top = false;
};
const auto looks_for_parent = define(
    "nesting.looks_for_parent", [](ref<used_up> u) { u.to->ran_on_top = !u.to->parent_is_done; });
const auto waits_for_used_up = define("nesting.waits_for_used_up", [](ref<used_up> u) {
  ticket child =
      u.to->is_released ? u.to->home->submit(looks_for_parent, u) : u.to->home->submit(nothing);
  ticket copy(u.to->home->state(), child.id());
  if (u.to->is_released) {
    child.release();
  } else {
    child.wait();
    u.to->home->post(looks_for_parent, u);
  }
  u.to->code = copy.wait_outcome().code;
  copy.forget();
  u.to->parent_is_done = true;
});

LEV_TEST(nesting_test, a_ticket_that_was_used_up_runs_nothing_on_top) {
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  for (int round = 0; round < 50; ++round) {
    used_up u{&r, round % 2 != 0};
    r.submit(waits_for_used_up, ref{&u}).wait();
    EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
    EXPECT_EQ(u.code, status::stale_ticket);
    EXPECT_FALSE(u.ran_on_top);
  }
}

// Each child uses up the ticket of the one before, on whatever worker: the parent looks at a ticket
// when the one behind it has ended.
struct chained_children {
  runtime* home;
  ticket tickets[12];
  counter ran{0};
  status all{};
};
const auto waits_for_one_before =
    define("nesting.waits_for_one_before", [](ref<chained_children> c, unsigned index) {
      if (index != 0) c.to->tickets[index - 1].wait();
      ++c.to->ran;
    });
const auto parent_of_chained = define("nesting.parent_of_chained", [](ref<chained_children> c) {
  unsigned index = 0;
  for (ticket& t : c.to->tickets) t = c.to->home->submit(waits_for_one_before, c, index++);
  c.to->all = wait_all(c.to->tickets, std::size(c.to->tickets)).code;
});

LEV_TEST(nesting_test, children_use_up_the_tickets_of_those_before) {
  runtime& r = open();
  for (int round = 0; round < 50; ++round) {
    chained_children c{&r, {}};
    r.submit(parent_of_chained, ref{&c}).wait();
    EXPECT_EQ(c.all, status::ok);
    EXPECT_EQ(c.ran, static_cast<int>(std::size(c.tickets)));
  }
}

// The local store is full of a waiting task's data when its child needs room.
const procedure<void(ref<runtime>, inout<std::uint64_t>, int)>& fills_store();
void fill_store(ref<runtime> home, inout<std::uint64_t> x, int depth) {
  for (std::size_t i = 0; i < x.size(); ++i) ++x[i];
  if (depth == 0) return;
  std::vector<std::uint64_t> mine(x.size(), 0);
  home.to->submit(fills_store(), home, mine, depth - 1).wait();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += mine[i];
}
const procedure<void(ref<runtime>, inout<std::uint64_t>, int)>& fills_store() {
  static const auto p = define("nesting.fills_store", &fill_store);
  return p;
}

LEV_TEST(nesting_test, children_find_room_in_a_full_store) {
  config c = settings();
  c.local_store_bytes = 8192;
  runtime& r = open(c);
  std::vector<std::uint64_t> x(1024, 0);
  r.submit(fills_store(), ref{&r}, x, 12).wait();
  EXPECT_EQ(x, std::vector<std::uint64_t>(1024, 13));
}

// Waits with nothing to help with: the child runs elsewhere, or on virtual time takes long.
const auto slow = define(
    "nesting.slow", [] {}, nullptr, [](const descriptor&) -> std::uint64_t { return 1'000'000; });
const auto waits_for_slow =
    define("nesting.waits_for_slow", [](ref<runtime> home) { home.to->submit(slow).wait(); });

LEV_TEST(nesting_test, a_task_waits_for_a_slow_child) {
  runtime& r = open();
  std::vector<ticket> t;
  for (int i = 0; i < 10; ++i) t.push_back(r.submit(waits_for_slow, ref{&r}));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
}

// Tasks in the middle of an interpreter, which has one stack of calls for each thread: what has
// begun last there must end first, whatever stacks its tasks wait on.
struct interpreter {
  runtime* home = nullptr;
  std::atomic<int> begun{0};
  std::atomic<int> mixed_up{0};
};
thread_local std::vector<const void*> calls;
const auto brief = define("nesting.brief", [] {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
  while (std::chrono::steady_clock::now() < end) {
  }
});

const auto polls_a_little = define("nesting.polls_a_little", [](ref<interpreter> i) {
  const int before = i.to->begun;
  for (int n = 0; n < 10 && i.to->begun == before; ++n) this_task().yield();
});

using interpreted = procedure<void(ref<interpreter>, int)>;
const interpreted& interpret();
void interpret_body(ref<interpreter> i, int depth) {
  const int local = depth;
  ++i.to->begun;
  calls.push_back(&local);
  detail::stay_on_stack();
  std::vector<ticket> children;
  const auto make = [](std::size_t, descriptor& d) { d = pack(brief); };
  children.push_back(i.to->home->submit_bulk(from_any_thread, 4, make));
  children.back().then([](void*) {}, nullptr);
  children.push_back(i.to->home->submit(waits_for_slow, ref{i.to->home}));
  children.push_back(i.to->home->submit(polls_a_little, i));
  if (depth > 0) children.push_back(i.to->home->submit(interpret(), i, depth - 1));
  for (ticket& t : children) t.wait();
  i.to->mixed_up += calls.empty() || calls.back() != &local;
  if (!calls.empty()) calls.pop_back();
}
const interpreted& interpret() {
  static const interpreted p = define("nesting.interpret", &interpret_body);
  return p;
}

LEV_TEST(nesting_test, tasks_in_an_interpreter_end_in_its_order) {
  if (is_sim()) GTEST_SKIP() << "its workers are one thread: the interpreter refuses calls there";
  interpreter i;
  i.home = &open();
  std::vector<ticket> t;
  for (int n = 0; n < 100; ++n) t.push_back(i.home->submit(interpret(), ref{&i}, n % 4));
  EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
  EXPECT_EQ(i.mixed_up, 0);
}

struct kept_worker {
  std::atomic<bool> is_there{false};
  std::atomic<bool> may_wait{false};
  ticket another;
  status code = status::ok;
};
const auto waits_for_another = define("nesting.waits_for_another", [](ref<kept_worker> k) {
  k.to->is_there = true;
  while (!k.to->may_wait) std::this_thread::yield();
  detail::stay_on_stack();
  k.to->code = k.to->another.wait_outcome().code;
});

// The only worker is kept, and what the task waits for comes after one that is no child of it.
LEV_TEST(nesting_test, a_task_in_an_interpreter_that_only_its_worker_could_help_is_refused) {
  if (is_sim()) GTEST_SKIP() << "the interpreter refuses calls there";
  config c = settings();
  c.workers = 1;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  kept_worker k;
  ticket waits = r.submit(waits_for_another, ref{&k});
  while (!k.is_there) std::this_thread::yield();
  ticket before = r.submit(nothing);
  k.another = r.submit(options().after(before), nothing);
  k.may_wait = true;
  EXPECT_EQ(waits.wait_outcome(wait_limit_ns()).code, status::ok);
  EXPECT_EQ(k.code, status::would_deadlock);
  k.another.wait();
}

}  // namespace
}  // namespace lev::test
