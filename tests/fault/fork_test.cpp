// Processes that a host has forked: what they keep alive, and what they are told.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "fault/family.hpp"
#include "support/environment.hpp"
#include "support/machine_test.hpp"

extern char** environ;

namespace lev::test {
namespace {

const auto add = define(
    "fork.add", [](std::int64_t a, std::int64_t b, result<std::int64_t> sum) { sum = a + b; });

config settings_of(const std::string& kind) {
  static std::string name;
  config c;
  c.machine = kind == "pool" ? "processes" : kind.c_str();
  name = "fork-" + std::to_string(getpid());
  if (kind == "pool") c.processes.pool = name.c_str();
  c.workers = 2;
  return c;
}

bool is_usable(runtime& r) {
  std::int64_t sum = 0;
  r.submit(add, std::int64_t{40}, std::int64_t{2}, sum).wait();
  return sum == 42;
}

// Forks, and comes back in the child, too. `how` is how the child has ended.
const auto fork_and_return = define("fork.and_return", [](bool throws, out<int> how) {
  const pid_t child = fork();
  if (child != 0) {
    waitpid(child, how.data(), 0);
  } else if (throws) {
    throw std::runtime_error("the child's own");
  }
});

// A child that holds what its parent had open, by a way that no handler of fork() sees.
pid_t clone_quietly() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

struct kind_of_child {
  const char* machine;
  bool is_cloned;
};
std::string name_of(const testing::TestParamInfo<kind_of_child>& i) {
  return std::string(i.param.machine) + (i.param.is_cloned ? "_cloned" : "_forked");
}

class living_child : public testing::TestWithParam<kind_of_child> {
 protected:
  static pid_t make_child() { return GetParam().is_cloned ? clone_quietly() : fork(); }
};
INSTANTIATE_TEST_SUITE_P(of, living_child,
                         testing::Values(kind_of_child{"processes", false},
                                         kind_of_child{"processes", true},
                                         kind_of_child{"pool", false}, kind_of_child{"pool", true}),
                         &name_of);

TEST_P(living_child, keeps_no_process_of_a_killed_host_alive) {
  start_alarm();
  adopt_orphans();
  int back[2];
  ASSERT_EQ(pipe(back), 0);
  const pid_t host = fork();
  if (host == 0) {
    runtime r(settings_of(GetParam().machine));
    if (!is_usable(r)) _exit(1);
    const pid_t helper = make_child();
    while (helper == 0) pause();
    if (write(back[1], &helper, sizeof helper) != sizeof helper) _exit(1);
    for (;;) pause();
  }
  pid_t helper = 0;
  ASSERT_EQ(read(back[0], &helper, sizeof helper), static_cast<ssize_t>(sizeof helper));
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  EXPECT_EQ(orphans_left({helper}), 0);
  kill(helper, SIGKILL);
  waitpid(helper, nullptr, 0);
  close(back[0]);
  close(back[1]);
}

TEST_P(living_child, does_not_keep_its_parent_from_closing) {
  start_alarm();
  using clock = std::chrono::steady_clock;
  // A zygote that does not hear of the end is killed after 2 s.
  constexpr auto limit = std::chrono::milliseconds(1900);
  constexpr int tries_max = 20;  // a full machine may be slow, but not each time
  bool is_quick = false;
  for (int i = 0; i < tries_max && !is_quick; ++i) {
    runtime r(settings_of(GetParam().machine));
    ASSERT_TRUE(is_usable(r));
    const pid_t child = make_child();
    while (child == 0) pause();
    const auto begin = clock::now();
    EXPECT_EQ(r.close(), status::ok);
    is_quick = clock::now() - begin < limit;
    EXPECT_EQ(r.count().deaths, 0u);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_TRUE(is_quick);
}

class forked : public testing::TestWithParam<const char*> {
 protected:
  // How a child ends in which `act` was called, which returns its code.
  template <class Act>
  static int code_of_child(Act&& act) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      _exit(act());
    }
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 256 + how;
  }
};
INSTANTIATE_TEST_SUITE_P(on, forked, testing::Values("threads", "processes", "pool", "sim"));

TEST_P(forked, child_is_told_what_to_do) {
  start_alarm();
  runtime r(settings_of(GetParam()));
  ASSERT_TRUE(is_usable(r));
  int back[2];
  ASSERT_EQ(pipe(back), 0);
  const int code = code_of_child([&] {
    std::string said;
    std::int64_t sum = 0;
    try {
      r.submit(add, std::int64_t{1}, std::int64_t{2}, sum);
    } catch (const error& e) {
      said = e.what();
    }
    return write(back[1], said.data(), said.size()) > 0 ? 7 : 1;
  });
  EXPECT_EQ(code, 7);
  char said[300] = "";
  EXPECT_GT(read(back[0], said, sizeof said - 1), 0);
  EXPECT_NE(std::string(said).find("belongs to the process that opened it; open one of your own"),
            std::string::npos)
      << said;
  close(back[0]);
  close(back[1]);
  EXPECT_TRUE(is_usable(r));
}

TEST_P(forked, child_leaves_its_parents_tickets_alone) {
  start_alarm();
  runtime r(settings_of(GetParam()));
  std::int64_t sum = 0;
  ticket done = r.submit(add, std::int64_t{1}, std::int64_t{2}, sum);
  ticket chained = r.submit(after(done), add, std::int64_t{1}, std::int64_t{2}, sum);
  const int code = code_of_child([&] {
    ticket all[] = {std::move(done), std::move(chained)};
    std::size_t first = 0;
    bool is_right = wait_any(all, 2, &first).code == status::closed;
    is_right &= wait_all(all, 2).code == status::closed;
    ticket last = std::move(all[0]);
    last.release();
    is_right &= r.close() == status::ok && r.close(0, true) == status::ok;
    return is_right ? 7 : 1;
  });
  EXPECT_EQ(code, 7);
  EXPECT_EQ(done.wait_outcome().code, status::ok);
  EXPECT_EQ(chained.wait_outcome().code, status::ok);
}

// No handler of fork() runs here: at least its end does not hang, and does the parent no harm.
TEST_P(forked, child_made_by_clone_may_destroy_the_runtime) {
  start_alarm();
  {
    auto r = std::make_unique<runtime>(settings_of(GetParam()));
    ASSERT_TRUE(is_usable(*r));
    const pid_t child = clone_quietly();
    if (child == 0) {
      alarm(30);
      r.reset();
      _exit(7);
    }
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 7 << 8);
    EXPECT_TRUE(is_usable(*r));
    EXPECT_EQ(r->count().deaths, 0u);
  }
}

TEST_P(forked, child_of_a_body_ends_where_it_returns) {
  start_alarm();
  runtime r(settings_of(GetParam()));
  for (const bool throws : {false, true}) {
    std::vector<int> how(1, -1);
    r.submit(fork_and_return, throws, how).wait();
    EXPECT_EQ(how[0], throws ? 1 << 8 : 0);
    std::vector<int> each_how(40, -1);
    r.submit_bulk(each_how.size(), fork_and_return, throws, each(each_how)).wait();
    EXPECT_EQ(each_how, std::vector<int>(40, throws ? 1 << 8 : 0));
  }
  EXPECT_TRUE(is_usable(r));
  EXPECT_EQ(r.count().deaths, 0u);
}

TEST_P(forked, programs_are_started_as_ever) {
  start_alarm();
  runtime r(settings_of(GetParam()));
  char name[] = "true";
  char* words[] = {name, nullptr};
  for (int i = 0; i < 20; ++i) {
    pid_t pid = 0;
    ASSERT_EQ(posix_spawnp(&pid, "true", nullptr, nullptr, words, environ), 0);
    int how = -1;
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    EXPECT_EQ(how, 0);
    EXPECT_EQ(std::system("true"), 0);
    EXPECT_TRUE(is_usable(r));
  }
}

TEST_P(forked, children_of_children_are_children) {
  start_alarm();
  runtime r(settings_of(GetParam()));
  ASSERT_TRUE(is_usable(r));
  const int code = code_of_child([&] {
// Such a child may have no threads under one sanitizer, and under the other find locks of the
// allocator's held by threads that it does not have.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    runtime own(settings_of(GetParam()));
    if (!is_usable(own)) return 1;
#endif
    return code_of_child([&] {
      if (r.wait_for_completion().code != status::closed) return 2;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
      if (own.wait_for_completion().code != status::closed) return 3;
      runtime third(settings_of(GetParam()));
      if (!is_usable(third)) return 4;
#endif
      return 7;
    });
  });
  EXPECT_EQ(code, 7);
  EXPECT_TRUE(is_usable(r));
}

// What a program has registered for fork(), as early as a static object can.
void (*called_at_fork)(bool in_child) = nullptr;
int place_called_at = -1;
template <int Place>
void call_at_fork() {
  if (place_called_at == Place) called_at_fork(Place == 2);
}
const int is_registered = pthread_atfork(&call_at_fork<0>, &call_at_fork<1>, &call_at_fork<2>);

runtime* home_of_handlers = nullptr;
int calls_of_handlers = 0;

// All of Leveret's lists that a fork() waits for. A child says by its code what went wrong.
void call_in_from_handler(bool in_child) {
  ++calls_of_handlers;
  const bool is_refused = home_of_handlers->wait_for_completion().code == status::closed;
  bool is_right = is_refused == in_child;
  is_right &= shared_array<int>(1000)[999] == 0;
  const std::string name = "fork.late." + std::to_string(calls_of_handlers);
  is_right &= define(name.c_str(), [](int) {}).id != 0;
// As above: such a child has no threads.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (!in_child)
#endif
  {
    runtime own;
    is_right &= is_usable(own) && (in_child || is_usable(*home_of_handlers));
  }
  if (in_child) _exit(is_right ? 8 : 1);
  EXPECT_TRUE(is_right);
}

TEST_P(forked, handlers_of_the_program_may_call_in) {
  start_alarm();
  ASSERT_EQ(is_registered, 0);
  runtime r(settings_of(GetParam()));
  ASSERT_TRUE(is_usable(r));
  home_of_handlers = &r;
  called_at_fork = &call_in_from_handler;
  for (const int place : {0, 1, 2}) {
    const int calls = calls_of_handlers;
    const auto fork_once = [&] {
      place_called_at = place;
      return code_of_child([] { return 7; });
    };
    EXPECT_EQ(fork_once(), place == 2 ? 8 : 7);
    place_called_at = -1;
    EXPECT_EQ(calls_of_handlers - calls, place == 2 ? 0 : 1);
  }
  EXPECT_TRUE(is_usable(r));
}

// Memory that a child frees stays its parent's.
TEST(forked_memory, stays_the_parents) {
  start_alarm();
  constexpr std::size_t size = std::size_t{4} << 20;  // 16 MiB: given back when it is freed
  auto data = std::make_unique<shared_array<std::uint32_t>>(size);
  for (std::uint32_t& v : *data) v = 7;
  for (const bool has_own : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      bool is_right = (*data)[size - 1] == 7 && !is_shared(data->data(), 1);
      if (has_own) {
        shared_array<std::uint32_t> own(size);
        is_right &= own[0] == 0 && own.data() != data->data() && is_shared(own.data(), 1);
      }
      data.reset();
      is_right &= shared_array<std::uint32_t>(64)[0] == 0;
      _exit(is_right ? 7 : 1);
    }
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 7 << 8);
    std::size_t wrong = 0;
    for (const std::uint32_t v : *data) wrong += v != 7;
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace lev::test
