// Deeds of one host of a pool, and the end of the pool's own process, are not charged to another
// host, nor to a task that has nothing to do with them.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "fault/hostile.hpp"
#include "fault/pool_hosts.hpp"
#include "share/faults.hpp"
#include "share/socket_name.hpp"

namespace lev::test::charged {
namespace {

constexpr std::int64_t limit_ns = 20'000'000'000;

// In memory that host and workers share.
struct gate_words {
  std::atomic<int> process{0};  // of the worker that has begun
  std::atomic<int> may_end{0};
};
struct gate_of {
  gate_words* words;
};
const auto hold = define("charged.hold", [](gate_of g) {
  g.words->process = getpid();
  while (g.words->may_end == 0) sched_yield();
});
const auto nothing = define("charged.nothing", [] {});
const auto hold_and_close_files = define("charged.hold_and_close_files", [](gate_of g) {
  g.words->process = getpid();
  while (g.words->may_end == 0) sched_yield();
  close_range(STDERR_FILENO + 1, ~0u, 0);
});
// Sockets of its own come where its worker's were.
const auto hold_and_replace_files = define("charged.hold_and_replace_files", [](gate_of g) {
  g.words->process = getpid();
  while (g.words->may_end == 0) sched_yield();
  close_range(STDERR_FILENO + 1, ~0u, 0);
  for (int last = 0; last >= 0 && last < 800;) last = socket(AF_UNIX, SOCK_SEQPACKET, 0);
});
const auto tell_process = define("charged.tell_process", [](result<int> pid) { pid = getpid(); });

class charged : public testing::Test {
 protected:
  config at_pool(int workers) const {
    config c;
    c.machine = "processes";
    c.processes.pool = name_.c_str();
    c.workers = workers;
    return c;
  }
  static pid_t process_of(runtime& r) {
    int pid = 0;
    r.submit(tell_process, pid).wait();
    return pid;
  }
  static void stop(pid_t pid) {
    kill(pid, SIGSTOP);
    EXPECT_TRUE(comes([&] { return state_of(pid) == 'T'; }));
  }
  pid_t await_begin() {
    EXPECT_TRUE(comes([&] { return gate_->process != 0; }));
    return gate_->process.exchange(0);
  }

  const std::string name_ = "charged-" + std::to_string(getpid());
  shared_array<gate_words> gates_{1};
  gate_words* gate_ = new (gates_.data()) gate_words;
};

// Its worker reads of none of them before the task is over.
TEST_F(charged, a_long_task_outlives_any_number_of_hosts_that_come_and_go) {
  constexpr int hosts = 800;
  config c = at_pool(1);
  c.processes.max_attempts = 1;
  runtime works(c);
  ticket t = works.submit(hold, gate_of{gate_});
  await_begin();
  for (int i = 0; i < hosts && works.count().deaths == 0; ++i) runtime comes_and_goes(at_pool(1));
  EXPECT_EQ(works.count().deaths, 0u);
  runtime stays(at_pool(1));
  ticket next = stays.submit(nothing);
  gate_->may_end = 1;
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(next.wait_outcome(limit_ns).code, status::ok);
}

// The keeper finds the order to kill a worker when it is dead already, and says so too late.
TEST_F(charged, an_answer_about_a_dead_worker_is_not_about_the_next_one) {
  runtime r(at_pool(1));
  const pid_t keeper = parent_of(process_of(r));
  ticket first = r.submit(hold, gate_of{gate_});
  const pid_t worker = await_begin();
  stop(keeper);
  EXPECT_EQ(first.end(), status::ok);
  poll(nullptr, 0, 50);  // until the order has been given, or the test shows nothing
  kill(worker, SIGKILL);
  EXPECT_TRUE(comes([&] { return state_of(worker) == 'Z'; }));
  kill(keeper, SIGCONT);
  EXPECT_EQ(first.wait_outcome(limit_ns).code, status::cancelled);
  ticket second = r.submit(hold, gate_of{gate_});
  await_begin();
  stop(keeper);
  EXPECT_EQ(second.end(), status::ok);
  poll(nullptr, 0, 50);
  ticket third = r.submit(nothing);
  EXPECT_EQ(third.end(), status::ok);  // so the service looks at the line once more
  EXPECT_EQ(second.wait_outcome(100'000'000).code, status::timed_out) << "its body still runs";
  kill(keeper, SIGCONT);
  EXPECT_EQ(second.wait_outcome(limit_ns).code, status::cancelled);
}

// The service of a host in a hook of its program's, so that it hears nothing meanwhile.
struct held_hook {
  std::atomic<bool> is_here{false};
  std::atomic<bool> may_go{false};
};
void hold_service(void* context, int, int) {
  auto& h = *static_cast<held_hook*>(context);
  h.is_here = true;
  while (!h.may_go) sched_yield();
}

// The keeper has found its worker in no task when the host wanted to kill it for its silence. The
// worker goes on and begins, the host's program asks for the end, and only then the service reads
// the keeper's answer, which is older than all that.
TEST_F(charged, an_answer_about_a_silent_worker_is_none_about_the_task_that_it_begins_later) {
  held_hook hook;
  config c = at_pool(2);
  c.spin_ns = 0;
  c.processes.on_death = {&hold_service, &hook};
  runtime r(c);
  ticket on_first = r.submit(hold, gate_of{gate_});
  const pid_t first = await_begin();
  const pid_t second = process_of(r);
  const pid_t keeper = parent_of(first);
  gate_->may_end = 1;
  EXPECT_EQ(on_first.wait_outcome(limit_ns).code, status::ok);
  gate_->may_end = 0;
  EXPECT_TRUE(comes([&] { return state_of(first) == 'S'; }));
  stop(first);
  ticket t = r.submit(options().task_ns_max(1'000'000), hold, gate_of{gate_});
  stop(keeper);
  poll(nullptr, 0, 2'500);  // until the order has been given, or the test shows nothing
  kill(second, SIGKILL);
  EXPECT_TRUE(comes([&] { return state_of(second) == 'Z'; }));
  kill(keeper, SIGCONT);
  EXPECT_TRUE(comes([&] { return hook.is_here.load(); }));
  EXPECT_TRUE(comes([&] { return state_of(keeper) == 'S'; }));
  poll(nullptr, 0, 50);  // until it has answered
  kill(first, SIGCONT);
  EXPECT_EQ(await_begin(), first);
  EXPECT_EQ(t.end(), status::ok);
  hook.may_go = true;
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::cancelled);
  EXPECT_TRUE(ends(first)) << "its body still runs";
}

// Such a worker lives on, as its keeper finds it in no task, and passes by the one that was ended.
TEST_F(charged, a_task_for_a_worker_that_is_stopped_in_no_task_is_ended) {
  config c = at_pool(1);
  c.spin_ns = 0;
  runtime r(c);
  const pid_t worker = process_of(r);
  EXPECT_TRUE(comes([&] { return state_of(worker) == 'S'; }));
  stop(worker);
  ticket t = r.submit(hold, gate_of{gate_});
  EXPECT_EQ(t.end(), status::ok);
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::cancelled);
  kill(worker, SIGCONT);
  EXPECT_EQ(process_of(r), worker);
  EXPECT_EQ(gate_->process, 0) << "it began";
}

// A body can write to all that its worker has, and what it has written cannot be undone: but the
// worker is replaced.
processes::lane<>* lane_of_another = nullptr;  // in the worker
const auto remember_lane = define_raw<>("charged.remember_lane", [](const call& c) {
  lane_of_another = &lane_of(c);
  return 0;
});
const auto hold_and_overwrite = define("charged.hold_and_overwrite", [](gate_of g) {
  g.words->process = getpid();
  while (g.words->may_end == 0) sched_yield();
  for (auto& r : lane_of_another->records) r.number.store(0, memory_order_relaxed);
});

TEST_F(charged, a_lane_that_a_task_of_another_host_overwrites_is_given_up) {
  config c = at_pool(1);
  c.processes.max_attempts = 1;
  runtime waits(c);
  EXPECT_EQ(waits.submit(remember_lane).wait_outcome(limit_ns).code, status::ok);
  runtime overwrites(at_pool(1));
  ticket culprit = overwrites.submit(hold_and_overwrite, gate_of{gate_});
  await_begin();
  ticket t = waits.submit(nothing);
  gate_->may_end = 1;
  EXPECT_EQ(culprit.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(overwrites.submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

// What the workers of a pool have in common says whose task each of them runs.
const auto overwrite_pool = define("charged.overwrite_pool", [](int value) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("rw-s") == std::string::npos || line.find("leveret-pool") == std::string::npos)
      continue;
    char* after = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &after, 16);
    const std::uintptr_t end = std::strtoull(after + 1, nullptr, 16);
    std::memset(reinterpret_cast<void*>(begin), value, end - begin);
  }
});

TEST_F(charged, a_task_that_overwrites_whose_turn_it_is_keeps_nobody_waiting) {
  constexpr int values[] = {0, 0x01, 0xff};
  config c = at_pool(2);
  c.processes.restarts_max = 2;
  runtime waits(c);
  for (int i = 0; i < 12; ++i) {
    runtime overwrites(at_pool(2));
    ticket culprit = overwrites.submit(overwrite_pool, values[i % 3]);
    EXPECT_EQ(culprit.wait_outcome(limit_ns).code, status::ok);
    std::vector<ticket> tickets;
    for (int k = 0; k < 8; ++k)
      tickets.push_back((k % 2 == 0 ? waits : overwrites).submit(nothing));
    for (ticket& t : tickets) ASSERT_EQ(t.wait_outcome(limit_ns).code, status::ok) << i;
  }
}

// A worker whose body has closed its files cannot be told of other hosts, nor tell its own: those
// that it has not been told of, or that come now, get another.
class files_of_a_worker : public charged, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(charged, files_of_a_worker, testing::Bool(), [](const auto& i) {
  return std::string(i.param ? "are_replaced" : "are_closed");
});

TEST_P(files_of_a_worker, by_a_body_keep_no_host_waiting) {
  const auto& hold_and_close = GetParam() ? hold_and_replace_files : hold_and_close_files;
  runtime closes(at_pool(1));
  ticket t = closes.submit(hold_and_close, gate_of{gate_});
  await_begin();
  runtime came_before(at_pool(1));
  gate_->may_end = 1;
  EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(came_before.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(closes.submit(hold_and_close, gate_of{gate_}).wait_outcome(limit_ns).code, status::ok);
  runtime comes_now(at_pool(1));
  EXPECT_EQ(comes_now.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  EXPECT_EQ(closes.submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

// One host lacks something for a moment while the worker is in the task of another.
class shortage_at : public charged {
 protected:
  // Runs what meets the fault, and expects that the task outlives it.
  template <class Meet>
  void outlive(fault_name point, Meet&& meet) {
    config c = at_pool(1);
    c.processes.max_attempts = 1;
    runtime works(c);
    ticket t = works.submit(hold, gate_of{gate_});
    await_begin();
    plan_->point = point.index;
    plan_->action = fault_action::fail;
    meet();
    arm_faults(nullptr, nullptr);
    EXPECT_EQ(plan_->has_happened, 1u);
    gate_->may_end = 1;
    EXPECT_EQ(t.wait_outcome(limit_ns).code, status::ok);
    EXPECT_EQ(works.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  }

  shared_array<fault_plan> plans_{1};
  fault_plan* plan_ = new (plans_.data()) fault_plan;
};

TEST_F(shortage_at, the_start_of_a_host_is_its_own_affair) {
  outlive("host.receive_pidfd", [&] {
    arm_faults(plan_, nullptr);
    EXPECT_THROW(runtime(at_pool(1)), error);
  });
}
TEST_F(shortage_at, an_order_of_a_host_is_its_own_affair) {
  outlive("host.send_order", [&] {
    runtime other(at_pool(2));
    int pid = 0;
    other.submit(tell_process, pid).wait();
    arm_faults(plan_, nullptr);
    kill(pid, SIGKILL);
    EXPECT_TRUE(comes([&] { return other.count().deaths != 0; }));
    EXPECT_EQ(other.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  });
}

TEST_F(shortage_at, the_first_order_of_the_next_zygote_is_asked_for_once_more) {
  config c = at_pool(1);
  c.processes.pool = nullptr;
  runtime r(c);
  const fault_name point = "host.send_order";
  plan_->point = point.index;
  plan_->action = fault_action::fail;
  const pid_t worker = process_of(r);
  arm_faults(plan_, nullptr);
  kill(worker, SIGKILL);
  while (plan_->has_happened.exchange(0) == 0) sched_yield();  // it will happen once more
  EXPECT_TRUE(comes([&] { return r.count().deaths != 0; }));
  EXPECT_EQ(r.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  arm_faults(nullptr, nullptr);
}

// All workers end with it, those that have done nothing, too.
TEST_F(charged, the_end_of_the_parent_of_many_workers_is_no_loop_of_deaths) {
  for (const bool is_shared : {false, true}) {
    config c = at_pool(16);
    if (!is_shared) c.processes.pool = nullptr;
    runtime r(c);
    kill(parent_of(process_of(r)), SIGKILL);
    EXPECT_TRUE(comes([&] { return r.count().deaths >= 16; }));
    EXPECT_EQ(r.submit(nothing).wait_outcome(limit_ns).code, status::ok) << is_shared;
  }
}

// A body's child that the body has made a child of the keeper's.
const auto clone_beside = define("charged.clone_beside", [](result<int> pid) {
  const auto child = static_cast<int>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
  while (child == 0) pause();
  pid = child;
});

TEST_F(charged, a_keeper_does_not_wait_for_strangers) {
  pid_t keeper = 0;
  int stranger = 0;
  {
    runtime r(at_pool(1));
    keeper = parent_of(process_of(r));
    EXPECT_EQ(r.submit(clone_beside, stranger).wait_outcome(limit_ns).code, status::ok);
  }
  EXPECT_TRUE(ends(keeper));
  EXPECT_EQ(kill(stranger, SIGKILL), 0);
}

// A host waits at its door, which it cannot let in: it does not ask for that again and again.
TEST_F(charged, a_keeper_without_numbers_for_files_sleeps) {
  runtime r(at_pool(1));
  const pid_t keeper = parent_of(process_of(r));
  rlimit usual{};
  ASSERT_EQ(prlimit(keeper, RLIMIT_NOFILE, nullptr, &usual), 0);
  const rlimit fewer{8, usual.rlim_max};  // than it has open; poll() allows as many
  ASSERT_EQ(prlimit(keeper, RLIMIT_NOFILE, &fewer, nullptr), 0);
  const socket_name door("pool", name_.c_str());
  const int visitor = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  EXPECT_EQ(connect(visitor, door.address(), door.bytes()), 0);
  EXPECT_TRUE(comes([&] { return state_of(keeper) == 'S'; }));
  close(visitor);
  EXPECT_EQ(prlimit(keeper, RLIMIT_NOFILE, &usual, nullptr), 0);
  runtime other(at_pool(1));
  EXPECT_EQ(other.submit(nothing).wait_outcome(limit_ns).code, status::ok);
}

// Its workers die as soon as they hear of that host.
TEST_F(charged, workers_that_die_for_one_host_bring_only_that_host_down) {
  runtime idles(at_pool(1));
  config c = at_pool(1);
  c.processes.chaos = 1;
  c.processes.restarts_max = 30;
  runtime dies(c);
  EXPECT_TRUE(comes([&] { return dies.count().deaths > c.processes.restarts_max; }));
  EXPECT_EQ(idles.submit(nothing).wait_outcome(limit_ns).code, status::ok);
  dies.close(limit_ns);
}

}  // namespace
}  // namespace lev::test::charged
