// Conformance: what ends together is told one by one, and the callback of each may wait for any of
// the others: as a participant tells of one, it keeps none of them to itself.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class ends_together_test : public machine_test {
 protected:
  static config parked(int workers) {
    config c = settings();
    c.wait = wait_policy::park;
    c.workers = workers;
    return c;
  }
};
LEV_ON_PROCESSES(ends_together_test);

// The callback of each task waits for the one `step` further on, and so round.
class circle {
 public:
  circle(std::vector<ticket>& tickets, std::int64_t limit_ns, std::size_t step = 1)
      : step_(step), members_(tickets.size()) {
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      members_[i].limit_ns = limit_ns;
      members_[i].other = &tickets[(i + step) % tickets.size()];
      if (tickets[i].done()) {  // its callback would run here and now
        members_[i].code = status::ok;
        continue;
      }
      EXPECT_EQ(tickets[i].then(&call, &members_[i]), status::ok);
    }
  }
  void await() const {
    for (const member& m : members_) {
      m.code.wait(status::pending);
      EXPECT_NE(m.code, status::timed_out);
      EXPECT_NE(m.code, status::would_deadlock);
    }
  }
  status code_of(std::size_t of) const {
    return members_[(of + members_.size() - step_) % members_.size()].code;
  }

 private:
  struct member {
    ticket* other = nullptr;
    std::int64_t limit_ns = 0;
    std::atomic<status> code{status::pending};
  };
  static void call(void* context) {
    auto& m = *static_cast<member*>(context);
    m.code = m.other->wait_outcome(m.limit_ns).code;
    m.code.notify_one();
  }
  const std::size_t step_;
  std::vector<member> members_;
};

// Keeps the service where it tells of a worker's death, and in the meantime does something else.
struct wake {
  std::atomic<bool> has_come{false};
  std::atomic<bool> may_end{false};
  static void hold(void* context, int, int) {
    auto& w = *static_cast<wake*>(context);
    w.has_come = true;
    w.has_come.notify_one();
    w.may_end.wait(false);
  }
  void await() const { has_come.wait(false); }
  void end() {
    may_end = true;
    may_end.notify_one();
  }
};

const auto dies_when_told = define("together.dies_when_told", [](ref<gate_state> g) {
  g.to->started.fetch_add(1);
  while (!g.to->is_open) std::this_thread::yield();
  raise(SIGKILL);
});

// Tasks in the line of a worker that dies, and in that of another one, are all to end by the time
// the service looks: those behind the one that died, and those behind one that runs.
LEV_TEST(ends_together_test, tasks_that_were_to_end) {
  for (const int workers : {1, 2}) {
    shared_array<char> place(sizeof(gate_state));
    gate_state& state = *new (place.data()) gate_state;
    wake w;
    config c = parked(workers);
    c.depth = 8;
    c.processes.max_attempts = 1;
    c.host_threads = 1;  // this one: the thread that ends tasks is none, and takes none back
    c.processes.on_death = {&wake::hold, &w};
    runtime& r = open(c);
    std::vector<ticket> t;
    t.push_back(r.submit(dies_when_told, ref{&state}));
    for (int i = 1; i < workers; ++i) t.push_back(r.submit(gate_procedure, ref{&state}));
    while (state.started < workers) std::this_thread::yield();
    while (t.size() < 12) t.push_back(r.submit(nothing));
    circle calls(t, wait_limit_ns());
    state.is_open = true;
    w.await();
    std::thread([&] {
      for (std::size_t i = static_cast<std::size_t>(workers); i < t.size(); ++i) t[i].end();
    }).join();
    w.end();
    calls.await();
    EXPECT_EQ(calls.code_of(0), status::poison);
    expect_all_done();
  }
}

// The holder of a mutex lets go of it as it ends, and its end is told; the callback of another task
// that has ended by then does not come between the two.
const auto sets_flag = define("together.sets_flag", [](ref<gate_state> g) { g.to->started = 10; });

LEV_TEST(ends_together_test, a_mutex_and_the_end_of_its_holder) {
  shared_array<char> place(sizeof(gate_state));
  gate_state& state = *new (place.data()) gate_state;
  wake w;
  config c = parked(2);
  c.processes.max_attempts = 1;
  c.processes.on_death = {&wake::hold, &w};
  runtime& r = open(c);
  mutex_id m;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  std::vector<ticket> t;
  t.push_back(r.submit(options().locks(m), dies_when_told, ref{&state}));
  while (state.started < 1) std::this_thread::yield();
  t.push_back(r.submit(gate_procedure, ref{&state}));
  while (state.started < 2) std::this_thread::yield();
  t.push_back(r.submit(options().locks(m), nothing));
  t.push_back(r.submit(options().after(t[0]), nothing));
  t.push_back(r.submit(options().after(t[0]), nothing));
  circle calls(t, wait_limit_ns());
  state.is_open = true;
  w.await();
  // The end of the task beside it is in its worker's lane by now, or soon.
  for (int turn = 0; turn < 3'000'000; ++turn) asm volatile("");
  w.end();
  calls.await();
  EXPECT_EQ(calls.code_of(0), status::poison);
  EXPECT_EQ(calls.code_of(2), status::ok);
  EXPECT_EQ(calls.code_of(3), status::dependency_failed);
  expect_all_done();
}

// Ends that a worker had written are told before its successor gets anything.
const auto dies = define("together.dies", [] { raise(SIGKILL); });

LEV_TEST(ends_together_test, what_dead_workers_had_finished) {
  config c = parked(1);
  c.depth = 16;
  c.processes.max_attempts = 1;
  c.processes.restarts_max = 1'000'000;
  runtime& r = open(c);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<ticket> t;
    {
      gate g(r, 1);
      for (int i = 0; i < 60; ++i) t.push_back(i % 9 == 8 ? r.submit(dies) : r.submit(nothing));
      circle calls(t, wait_limit_ns());
      g.open();
      calls.await();
      for (std::size_t i = 0; i < t.size(); ++i)
        EXPECT_EQ(calls.code_of(i), i % 9 == 8 ? status::poison : status::ok) << i;
    }
    expect_all_done();
  }
}

// The callback of a task takes long, and what it has submitted runs meanwhile: it is the callback
// that waits for it, with its thread.
struct awaits_body {
  runtime* home;
  gate_state* state;
  std::atomic<bool> has_ended{false};
};
void submit_and_block(void* context) {
  auto& a = *static_cast<awaits_body*>(context);
  a.home->post(sets_flag, ref{a.state});
  while (a.state->started != 10) std::this_thread::yield();
  a.has_ended = true;
}

LEV_TEST(ends_together_test, what_a_callback_submits_runs_while_it_goes_on) {
  runtime& r = open(parked(1));
  for (int turn = 0; turn < 20; ++turn) {
    shared_array<char> place(sizeof(gate_state));
    awaits_body a{&r, new (place.data()) gate_state};
    ticket t;
    {
      gate g(r, 1);
      t = r.submit(nothing);
      EXPECT_EQ(t.then(&submit_and_block, &a), status::ok);
    }
    // By a host, and by the service.
    if (turn % 2 == 0) expect_ok(t);
    while (!a.has_ended) std::this_thread::yield();
    expect_all_done();
  }
}

// The pieces of a bulk are told together, when the task behind them is in hand already: it is begun
// before any other one is taken.
using in_hand_test = ends_together_test;
LEV_ON_LOCAL_MACHINES(in_hand_test);

struct order_seen {
  std::atomic<bool> has_called{false};
  std::atomic<bool> has_begun{false};
  bool was_first = false;
};
const auto begins = define("together.begins", [](ref<order_seen> o) { o.to->has_begun = true; });
const auto looks =
    define("together.looks", [](ref<order_seen> o) { o.to->was_first = o.to->has_begun.load(); });

LEV_TEST(in_hand_test, is_begun_before_another_task_is_taken) {
  runtime& r = open(parked(1));
  for (int turn = 0; turn < 20; ++turn) {
    order_seen o;
    ticket bulk;
    {
      gate g(r, 1);
      bulk = r.submit_bulk(5, [](std::size_t, descriptor& d) { d = pack(nothing); });
      r.post(begins, ref{&o});
      r.post(looks, ref{&o});
      EXPECT_EQ(
          bulk.then([](void* c) { *static_cast<std::atomic<bool>*>(c) = true; }, &o.has_called),
          status::ok);
    }
    expect_ok(bulk);
    expect_all_done();
    EXPECT_TRUE(o.has_called);
    EXPECT_TRUE(o.was_first);
  }
}

LEV_TEST(in_hand_test, is_waited_for_by_what_fails_with_the_bulk_before_it) {
  runtime& r = open(parked(1));
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<ticket> t;
    gate g(r, 1);
    t.push_back(r.submit_bulk(5, [](std::size_t, descriptor& d) { d = pack(throw_error, 1); }));
    t.push_back(r.submit(nothing));
    t.push_back(r.submit(options().after(t[0]), nothing));
    circle calls(t, wait_limit_ns(), 2);
    g.open();
    EXPECT_NE(r.wait_for_completion(wait_limit_ns()).code, status::timed_out);
    calls.await();
    EXPECT_EQ(calls.code_of(0), status::task_failed);
    EXPECT_EQ(calls.code_of(1), status::ok);
    EXPECT_EQ(calls.code_of(2), status::dependency_failed);
  }
}

// Its worker takes the child that a task waits for, and which has a mutex; the pieces before it are
// told of first, and the callback waits for the mutex.
struct locked_family {
  runtime* home;
  mutex_id m;
  std::int64_t limit_ns;
  std::atomic<status> code{status::pending};
  std::atomic<bool> is_attaching{false};
};
void wait_for_mutex(void* context) {
  auto& f = *static_cast<locked_family*>(context);
  if (f.is_attaching) {
    f.code = status::ok;
    return;
  }
  ticket t = f.home->submit(options().locks(f.m), nothing);
  f.code = t.wait_outcome(f.limit_ns).code;
}
const auto has_locked_child = define("together.has_locked_child", [](ref<locked_family> f) {
  runtime& home = *f.to->home;
  ticket bulk = home.submit_bulk(12, [](std::size_t, descriptor& d) { d = pack(nothing); });
  bulk.then(&wait_for_mutex, f.to);
  const auto wait_for_child = [&] {
    home.post(nothing);
    home.submit(options().locks(f.to->m), nothing).wait();
  };
  try {
    task_context task = this_task();
    auto thread = task.spawn(wait_for_child);
  } catch (const error& e) {
    if (e.code() != status::too_many_contexts) throw;
    wait_for_child();  // a callback has the other context already
  }
  bulk.wait();
});

// The task itself has the mutex, and waits for its pieces: they are told on another stack than its
// own. (If they have ended when the callback is attached, it is called there and then, by the task:
// to wait for the mutex would be the program's mistake.)
const auto has_mutex_and_pieces = define("together.has_mutex_and_pieces", [](ref<locked_family> f) {
  runtime& home = *f.to->home;
  for (int i = 0; i < 3; ++i) {
    ticket bulk = home.submit_bulk(4, [](std::size_t, descriptor& d) { d = pack(nothing); });
    f.to->is_attaching = i == 0;
    if (i == 0) bulk.then(&wait_for_mutex, f.to);
    f.to->is_attaching = false;
    ticket other = home.submit(nothing);
    if (i != 1) other.wait();
    bulk.wait();
  }
});

LEV_TEST(in_hand_test, or_waits_has_a_mutex_that_a_callback_waits_for) {
  for (const int workers : {1, 2}) {
    runtime& r = open(parked(workers));
    mutex_id m = 0;
    ASSERT_EQ(r.make_mutex(&m), status::ok);
    for (int turn = 0; turn < 30; ++turn) {
      locked_family f{&r, m, wait_limit_ns()};
      ticket t = r.submit(options().locks(m), has_mutex_and_pieces, ref{&f});
      expect_ok(t);
      expect_all_done();
      ASSERT_EQ(f.code, status::ok);
    }
  }
}

LEV_TEST(in_hand_test, has_a_mutex_that_a_callback_waits_for) {
  config c = parked(1);
  c.wait = wait_policy::help;
  c.contexts = 2;
  runtime& r = open(c);
  mutex_id m = 0;
  ASSERT_EQ(r.make_mutex(&m), status::ok);
  for (int turn = 0; turn < 30; ++turn) {
    locked_family f{&r, m, wait_limit_ns()};
    ticket t = r.submit(has_locked_child, ref{&f});
    expect_ok(t);
    expect_all_done();
    ASSERT_EQ(f.code, status::ok);
  }
}

// Too big for the store, and not to be cut: a pass of the scheduler finds several of them.
const auto uncut = define(
    "together.uncut", [](inout<std::uint64_t>) {},
    [](const descriptor&, descriptor*, unsigned) { return 0u; });

class small_store_test : public ends_together_test {
 protected:
  runtime& open_small() {
    config c = parked(static_cast<int>(settings().workers));
    c.staging = staging::copy;
    c.local_store_bytes = 4096;
    c.depth = 4;
    runtime& r = open(c);
    const filter order = filters::fifo();
    EXPECT_EQ(r.set_filters(&order, 1), status::ok);
    return r;
  }
  std::vector<std::uint64_t> big_ = std::vector<std::uint64_t>(2000, 1);
};
LEV_ON_LOCAL_MACHINES(small_store_test);

LEV_TEST(small_store_test, tasks_that_one_pass_finds_to_be_too_big) {
  runtime& r = open_small();
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<ticket> t;
    gate g(r, r.workers());
    for (unsigned i = 0; i < 8 * r.workers(); ++i) t.push_back(r.submit(nothing));
    for (int i = 0; i < 3; ++i) t.push_back(r.submit(uncut, big_));
    for (int i = 0; i < 3; ++i) t.push_back(r.submit(nothing));
    circle calls(t, wait_limit_ns(), turn % 2 == 0 ? 1 : t.size() - 1);
    g.open();
    expect_all_done();
    calls.await();
  }
}

// One that submits comes upon them: its own end is what a callback may wait for.
const auto submits_more = define("together.submits_more", [](ref<runtime> r) {
  for (int i = 0; i < 4; ++i) r.to->post(nothing);
});

LEV_TEST(small_store_test, a_task_that_submits_finds_one_that_is_too_big) {
  runtime& r = open_small();
  for (unsigned fillers = 0; fillers < 12; ++fillers) {
    std::vector<ticket> t;
    gate g(r, r.workers());
    t.push_back(r.submit(submits_more, ref{&r}));
    for (unsigned i = 0; i < fillers; ++i) r.post(nothing);
    for (int i = 0; i < 3; ++i) t.push_back(r.submit(uncut, big_));
    circle calls(t, wait_limit_ns(), t.size() - 1);
    g.open();
    // Without a callback there is nobody but this to report a failure.
    EXPECT_NE(r.wait_for_completion(wait_limit_ns()).code, status::timed_out);
    calls.await();
    EXPECT_EQ(calls.code_of(0), status::ok);
  }
}

}  // namespace
}  // namespace lev::test
