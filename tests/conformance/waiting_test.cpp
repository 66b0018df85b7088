// Conformance: what may run on top of a task that waits, and that every wait ends that can: depth
// follows the program's own recursion and never the length of a queue.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "support/machine_test.hpp"
#include "support/procedures.hpp"

namespace lev::test {
namespace {

class waiting_test : public machine_test {
 protected:
  static config parked() {
    config c = settings();
    c.wait = wait_policy::park;
    return c;
  }
};
LEV_ON_LOCAL_MACHINES(waiting_test);

using waiting_threads_test = waiting_test;
LEV_ON_THREADS(waiting_threads_test);

// The tasks that wait on this thread, each with the address of its frame. A body that starts less
// than a stack below one of them runs on top of it, and must descend from it.
struct lineage {
  const lineage* parent = nullptr;
  const char* frame = nullptr;
  bool has_ancestor(const lineage* other) const {
    for (const lineage* l = parent; l != nullptr; l = l->parent) {
      if (l == other) return true;
    }
    return false;
  }
};
struct watch {
  runtime* home = nullptr;
  std::atomic<int> strangers{0};
  std::atomic<int> failures{0};
  std::atomic<int> ran{0};
};
thread_local std::vector<const lineage*> waiting_here;

class body_frame {
 public:
  body_frame(watch& w, const lineage* parent) : own_{parent, current_frame()} {
    constexpr std::ptrdiff_t near_bytes = 256 << 10;
    for (const lineage* below : waiting_here) {
      const std::ptrdiff_t distance = below->frame - own_.frame;
      if (distance > 0 && distance < near_bytes && !own_.has_ancestor(below)) ++w.strangers;
    }
    ++w.ran;
  }
  // Runs what waits.
  template <class Wait>
  void waits(Wait&& wait) {
    waiting_here.push_back(&own_);
    wait();
    std::erase(waiting_here, &own_);
  }
  const lineage* get() const { return &own_; }

 private:
  [[gnu::noinline]] static const char* current_frame() {
    return static_cast<const char*>(__builtin_frame_address(0));
  }
  lineage own_;
};

// A tree of tasks: children by single submits, in bulk, by a loop, and some that nobody waits for.
using tree_procedure = procedure<void(ref<watch>, ref<const lineage>, int, std::uint64_t)>;
const tree_procedure& tree();

void wait_for_children(watch& w, const lineage* own, int depth, std::uint64_t seed) {
  const unsigned children = 2 + seed % 2;
  if (seed % 3 == 0) {
    w.home
        ->submit_bulk(children,
                      [&](std::size_t i, descriptor& d) {
                        d = pack(tree(), ref{&w}, ref{own}, depth - 1, seed * 7 + i);
                      })
        .wait();
    return;
  }
  std::vector<ticket> t;
  for (unsigned i = 0; i < children; ++i)
    t.push_back(w.home->submit(tree(), ref{&w}, ref{own}, depth - 1, seed * 5 + i));
  std::size_t index = 0;
  if (seed % 3 == 1 && wait_any(t.data(), t.size(), &index).code != status::ok) ++w.failures;
  if (wait_all(t.data(), t.size()).code != status::ok) ++w.failures;
}

void tree_body(ref<watch> w, ref<const lineage> parent, int depth, std::uint64_t seed) {
  body_frame frame(*w.to, parent.to);
  if (depth == 0) return;
  frame.waits([&] {
    if (seed % 4 == 0) {
      std::atomic<int> sum{0};
      w.to->home->parallel_for(
          range{0, 12},
          [&](range r) {
            body_frame piece(*w.to, frame.get());
            sum += static_cast<int>(r.end - r.begin);
          },
          3);
      if (sum != 12) ++w.to->failures;
    }
    wait_for_children(*w.to, frame.get(), depth, seed);
  });
}
const tree_procedure& tree() {
  static const tree_procedure p = define("waiting.tree", &tree_body);
  return p;
}

LEV_TEST(waiting_test, nothing_unrelated_runs_on_top_of_a_task_that_waits) {
  for (const std::uint32_t contexts : {0u, 1u, 3u}) {
    config c = settings();
    c.contexts = contexts;
    runtime& r = open(c);
    watch w;
    w.home = &r;
    const lineage root;
    std::vector<ticket> t;
    for (std::uint64_t i = 0; i < 40; ++i)
      t.push_back(r.submit(tree(), ref{&w}, ref{&root}, 4, base_seed() + i));
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok);
    expect_all_done();
    EXPECT_EQ(w.strangers, 0);
    EXPECT_EQ(w.failures, 0);
    EXPECT_GT(w.ran, 40 * 31);
  }
}

// Each of many tasks in the queue runs a loop, whose body must outlive its pieces.
struct loop_sums {
  std::atomic<int> right{0};
  std::atomic<int> dead{0};
};
const auto runs_loop = define("waiting.runs_loop", [](ref<runtime> home, ref<loop_sums> sums) {
  struct body {
    std::atomic<int> sum{0};
    std::atomic<std::uint32_t> is_alive{0xa11fe};
    ~body() { is_alive = 0; }
  } b;
  home.to->parallel_for(
      range{0, 64},
      [&](range r) {
        if (b.is_alive != 0xa11fe) ++sums.to->dead;
        b.sum += static_cast<int>(r.end - r.begin);
      },
      8);
  sums.to->right += b.sum == 64;
});

LEV_TEST(waiting_test, loops_of_queued_tasks_end_before_their_bodies) {
  for (const std::uint32_t nest_max : {1u, 2u, 256u}) {
    config c = settings();
    c.nest_max = nest_max;
    runtime& r = open(c);
    loop_sums sums;
    for (int i = 0; i < 700; ++i) r.post(runs_loop, ref{&r}, ref{&sums});
    expect_all_done();
    EXPECT_EQ(sums.right, 700);
    EXPECT_EQ(sums.dead, 0);
  }
}

using nodes_procedure = procedure<void(ref<runtime>, int, result<long>)>;
const nodes_procedure& nodes_by_bulk();
void count_nodes(ref<runtime> home, int depth, result<long> nodes) {
  std::array<long, 2> below{};
  if (depth > 0) {
    home.to
        ->submit_bulk(2,
                      [&](std::size_t i, descriptor& d) {
                        d = pack(nodes_by_bulk(), home, depth - 1, below[i]);
                      })
        .wait();
  }
  nodes = 1 + below[0] + below[1];
}
const nodes_procedure& nodes_by_bulk() {
  static const nodes_procedure p = define("waiting.nodes", &count_nodes);
  return p;
}

LEV_TEST(waiting_test, a_tree_of_bulks_is_as_deep_as_the_program_makes_it) {
  config c = settings();
  c.nest_max = 16;
  runtime& r = open(c);
  long nodes = 0;
  r.submit(nodes_by_bulk(), ref{&r}, 12, nodes).wait();
  EXPECT_EQ(nodes, (1 << 13) - 1);
}

using chain_procedure = procedure<void(ref<runtime>, int, result<int>)>;
const chain_procedure& link();
void link_body(ref<runtime> home, int depth, result<int> length) {
  int below = 0;
  if (depth > 1) home.to->submit(link(), home, depth - 1, below).wait();
  length = below + 1;
}
const chain_procedure& link() {
  static const chain_procedure p = define("waiting.link", &link_body);
  return p;
}
const auto many_chains =
    define("waiting.chains", [](ref<runtime> home, int chains, int depth, result<int> sum) {
      std::vector<int> lengths(static_cast<std::size_t>(chains));
      std::vector<ticket> t;
      for (int& length : lengths) t.push_back(home.to->submit(link(), home, depth, length));
      int total = wait_all(t.data(), t.size()).code == status::ok ? 0 : -1'000'000;
      for (const int length : lengths) total += length;
      sum = total;
    });

LEV_TEST(waiting_test, chains_beside_each_other_are_not_deeper_than_one) {
  config c = settings();
  c.nest_max = 64;
  runtime& r = open(c);
  for (int round = 0; round < 5; ++round) {
    int sum = 0;
    r.submit(many_chains, ref{&r}, 100, 60, sum).wait();
    ASSERT_EQ(sum, 100 * 60);
  }
}

// More tasks than tickets, each of which needs one for its child.
const auto has_child = define("waiting.with_child", [](ref<runtime> home, ref<std::atomic<int>> n) {
  home.to->submit(nothing).wait();
  ++*n.to;
});

LEV_TEST(waiting_test, tasks_with_children_outnumber_the_tickets) {
  for (const std::uint32_t tickets : {2u, 8u, 64u}) {
    config c = settings();
    c.tickets = tickets;
    runtime& r = open(c);
    std::atomic<int> n{0};
    for (int i = 0; i < 600; ++i) r.post(has_child, ref{&r}, ref{&n});
    expect_all_done();
    ASSERT_EQ(n, 600) << tickets;
  }
}

// P holds a mutex and waits for its child, which another worker runs until T has begun; T waits for
// a child of its own that wants the mutex.
struct held_mutex {
  runtime* home = nullptr;
  mutex_id mutex = 0;
  std::atomic<bool> child_runs{false};
  std::atomic<bool> t_runs{false};
};
const auto runs_until_t = define("waiting.runs_until_t", [](ref<held_mutex> h) {
  h.to->child_runs = true;
  while (!h.to->t_runs) std::this_thread::yield();
});
const auto holds_mutex = define("waiting.holds_mutex", [](ref<held_mutex> h) {
  ticket child = h.to->home->submit(runs_until_t, h);
  while (!h.to->child_runs) std::this_thread::yield();
  child.wait();
});
const auto child_wants_mutex = define("waiting.child_wants_mutex", [](ref<held_mutex> h) {
  h.to->t_runs = true;
  h.to->home->submit(locks(h.to->mutex), nothing).wait();
});

LEV_TEST(waiting_threads_test, a_task_that_holds_a_mutex_waits_for_its_child) {
  for (int round = 0; round < 20; ++round) {
    config c = parked();
    c.workers = larger(c.workers, 2);
    runtime& r = open(c);
    held_mutex h;
    h.home = &r;
    ASSERT_EQ(r.make_mutex(&h.mutex), status::ok);
    ticket p = r.submit(locks(h.mutex), holds_mutex, ref{&h});
    while (!h.child_runs) std::this_thread::yield();
    expect_ok(r.submit(child_wants_mutex, ref{&h}));
    expect_ok(p);
  }
}

// P posts C and waits for D, which another worker runs until C has begun; C waits for what comes
// after P. So C must not run on top of P.
struct posted_child {
  runtime* home = nullptr;
  std::uint64_t x = 0;
  std::atomic<bool> x_is_there{false};
  std::atomic<bool> d_runs{false};
  std::atomic<bool> c_runs{false};
  std::atomic<status> code{status::pending};
};
const auto runs_until_c = define("waiting.runs_until_c", [](ref<posted_child> p) {
  p.to->d_runs = true;
  while (!p.to->c_runs) std::this_thread::yield();
});
const auto waits_for_x = define("waiting.waits_for_x", [](ref<posted_child> p) {
  p.to->c_runs = true;
  ticket x(p.to->home->state(), p.to->x);
  p.to->code = x.wait_outcome(20'000'000'000).code;
});
const auto posts_and_waits = define("waiting.posts_and_waits", [](ref<posted_child> p) {
  while (!p.to->x_is_there) std::this_thread::yield();
  ticket d = p.to->home->submit(runs_until_c, p);
  while (!p.to->d_runs) std::this_thread::yield();
  p.to->home->post(waits_for_x, p);
  d.wait();
});

LEV_TEST(waiting_threads_test,
         a_child_that_nobody_waits_for_may_wait_for_what_is_after_its_parent) {
  config c = parked();
  c.workers = larger(c.workers, 2);
  runtime& r = open(c);
  posted_child p;
  p.home = &r;
  ticket parent = r.submit(posts_and_waits, ref{&p});
  ticket x = r.submit(after(parent), nothing);
  p.x = x.id();
  x.forget();
  p.x_is_there = true;
  expect_ok(parent);
  expect_all_done();
  EXPECT_EQ(p.code, status::ok);
}

// A wait at the deepest level is refused, unless what it waits for is done.
const auto waits_for_done =
    define("waiting.waits_for_done", [](ref<runtime> home, result<int> code) {
      ticket t = home.to->submit(nothing);
      while (!t.done()) std::this_thread::yield();
      code = static_cast<int>(t.wait_outcome().code);
    });

LEV_TEST(waiting_threads_test, a_wait_for_what_is_done_never_fails) {
  config c = parked();
  c.workers = larger(c.workers, 2);
  c.nest_max = 1;
  runtime& r = open(c);
  for (int i = 0; i < 50; ++i) {
    int code = -1;
    r.submit(waits_for_done, ref{&r}, code).wait();
    ASSERT_EQ(code, static_cast<int>(status::ok));
  }
}

// A task that the host submits while all workers sleep: the host that waits for it runs it.
LEV_TEST(waiting_threads_test, a_host_runs_what_it_waits_for_when_all_workers_sleep) {
  config c = settings();
  c.spin_ns = 0;
  runtime& r = open(c);
  // Where all cores are busy the worker that was woken may be quicker, many times.
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_limit_ns());
  while (r.count().helped == 0 && std::chrono::steady_clock::now() < end) {
    while (r.state()->doorbell.sleeper_count() != r.workers()) std::this_thread::yield();
    r.submit(nothing).wait();
  }
  EXPECT_GT(r.count().helped, 0u);
}

// More tasks wait than one worker has contexts, for tasks behind one that stands at the end of the
// queue and is no descendant of theirs.
struct late_ids {
  detail::runtime_state* core = nullptr;
  std::array<std::uint64_t, 24> ids{};
  std::atomic<bool> is_there{false};
  std::atomic<int> told{0};
};
const auto waits_for_id = define("waiting.waits_for_id", [](ref<late_ids> l, unsigned i) {
  while (!l.to->is_there) std::this_thread::yield();
  ticket t(l.to->core, l.to->ids[i]);
  const outcome o = t.wait_outcome();
  if (o.code == status::would_deadlock) {
    ++l.to->told;
    t.release();
  }
});

const auto waits_in_steps = define("waiting.waits_in_steps", [](ref<late_ids> l, unsigned i) {
  while (!l.to->is_there) this_task().yield();
  ticket t(l.to->core, l.to->ids[i]);
  while (t.wait_outcome(1).code == status::timed_out) {
  }
});

// However short a wait is, it lets others go first: those in other contexts, and those that are
// queued.
LEV_TEST(waiting_threads_test, short_waits_keep_nobody_from_running) {
  for (const unsigned count : {2u, 15u, 24u}) {
    config c = parked();
    c.workers = 1;
    runtime& r = open(c);
    late_ids l;
    l.core = r.state();
    std::vector<ticket> t;
    for (unsigned i = 0; i < count; ++i) t.push_back(r.submit(waits_in_steps, ref{&l}, i));
    for (unsigned i = 0; i < count; ++i) {
      ticket late = r.submit(nothing);
      l.ids[i] = late.id();
      late.forget();
    }
    l.is_there = true;
    EXPECT_EQ(wait_all(t.data(), t.size(), wait_limit_ns()).code, status::ok) << count;
  }
}

LEV_TEST(waiting_threads_test, more_waits_than_contexts_are_told) {
  config c = parked();
  c.workers = 1;
  runtime& r = open(c);
  late_ids l;
  l.core = r.state();
  std::vector<ticket> t;
  for (unsigned i = 0; i < l.ids.size(); ++i) t.push_back(r.submit(waits_for_id, ref{&l}, i));
  ticket last = r.submit(nothing);
  for (std::uint64_t& id : l.ids) {
    ticket late = r.submit(after(last), nothing);
    id = late.id();
    late.forget();
  }
  l.is_there = true;
  EXPECT_EQ(wait_all(t.data(), t.size()).code, status::ok);
  expect_ok(last);
  EXPECT_GT(l.told, 0);
  EXPECT_LE(l.told, 24 - 15);
}

// A tree whose inner tasks post their children in loops.
struct tree_of_loops {
  runtime* home = nullptr;
  std::atomic<std::uint32_t> ran{0};
};
void post_in_loop(ref<tree_of_loops> t, std::uint32_t depth);
const auto loop_that_posts = define("waiting.loop_that_posts", post_in_loop);
void post_in_loop(ref<tree_of_loops> t, std::uint32_t depth) {
  ++t.to->ran;
  if (depth == 0) return;
  const auto post_some = [&](range r) {
    for (std::uint64_t i = r.begin; i < r.end; ++i) t.to->home->post(loop_that_posts, t, depth - 1);
  };
  t.to->home->parallel_for({0, 8}, post_some, 1);
}

// Loops wait in all contexts. Their pieces lie behind the filters, and the ready queue is full of
// tasks for which there is no context.
LEV_TEST(waiting_test, loops_find_their_pieces_behind_filters) {
  for (const std::uint32_t tickets : {4u, 1024u}) {
    config c = settings();
    c.tickets = tickets;
    tree_of_loops t;
    t.home = &open(c);
    const filter chain[] = {filters::fifo()};
    ASSERT_EQ(t.home->set_filters(chain, 1), status::ok);
    t.home->post(loop_that_posts, ref{&t}, 4u);
    EXPECT_EQ(t.home->wait_for_completion().code, status::ok);
    EXPECT_EQ(t.ran, 1u + 8 + 64 + 512 + 4096);
  }
}

const auto submits_until_refused =
    define("waiting.submits_until_refused", [](ref<runtime> home, ref<std::atomic<int>> refused) {
      std::vector<ticket> held;
      refusal why;
      const descriptor d = pack(nothing);
      while (ticket t = home.to->try_submit(d, nullptr, &why)) held.push_back(std::move(t));
      EXPECT_EQ(why.code, status::would_block);
      ++*refused.to;
    });

// A thread that has been woken in vain, and is in its own program or has ended since, runs nothing.
LEV_TEST(waiting_threads_test, a_wake_up_that_is_left_over_is_no_work) {
  config c = settings();
  c.tickets = 4;
  c.wait = wait_policy::park;
  runtime& r = open(c);
  expect_ok(r.submit(nothing));
  std::thread([&r] { r.submit(nothing).wait(); }).join();
  detail::runtime_state& s = *r.state();
  for (std::uint32_t i = s.first_host; i < s.participant_count; ++i)
    s.participants[i].park.unpark(*s.machine);
  std::atomic<int> refused{0};
  for (int i = 0; i < 3; ++i) r.post(submits_until_refused, ref{&r}, ref{&refused});
  EXPECT_EQ(r.wait_for_completion(wait_limit_ns()).code, status::ok);
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace lev::test
