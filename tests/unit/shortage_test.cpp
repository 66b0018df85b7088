// How much memory is left, by the files of computers of other kinds: control groups of both
// versions, with and without a limit, swap, and files that are not there.
#include <gtest/gtest.h>

#include "share/shortage.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace lev {
namespace {

constexpr std::uint64_t mib = 1 << 20;

// Files below a folder of its own, which stands for the root.
class other_computer {
 public:
  other_computer() : root_(testing::TempDir() + "leveret-root-" + std::to_string(getpid())) {
    put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4096000 kB\nSwapFree: 1024000 kB\n");
  }
  ~other_computer() { std::filesystem::remove_all(root_); }
  other_computer(other_computer&&) = delete;

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  memory_left look() const { return find_memory_left(root_.c_str()); }
  memory_limit limit() const { return find_memory_limit(root_.c_str()); }

 private:
  std::string root_;
};

TEST(memory_left, is_what_the_kernel_says_and_swap) {
  const other_computer c;
  EXPECT_EQ(c.look().bytes, 5000 * mib);
  EXPECT_STREQ(c.look().where, "this computer");
}

TEST(memory_left, is_not_known_where_nothing_tells) {
  EXPECT_EQ(find_memory_left("/nowhere").bytes, ~std::uint64_t{0});
}

TEST(memory_left, is_the_least_of_all_groups_above) {
  const other_computer c;
  const std::string top = "/sys/fs/cgroup";
  c.put("/proc/thread-self/cgroup", "0::/a/b\n");
  c.put(top + "/a/b/memory.max", "max\n");
  c.put(top + "/a/b/memory.current", "1\n");
  EXPECT_EQ(c.look().bytes, 5000 * mib);
  c.put(top + "/a/memory.max", std::to_string(100 * mib) + "\n");
  c.put(top + "/a/memory.current", std::to_string(90 * mib) + "\n");
  c.put(top + "/a/memory.swap.max", "0\n");
  c.put(top + "/a/memory.swap.current", "0\n");
  EXPECT_EQ(c.look().bytes, 10 * mib);
  EXPECT_NE(std::string(c.look().where).find("memory.max"), std::string::npos);
  c.put(top + "/a/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 2097152\n");
  EXPECT_EQ(c.look().bytes, 13 * mib);
  c.put(top + "/memory.max", "5\n");  // a container's own, above what its names say
  c.put(top + "/memory.current", "7\n");
  c.put(top + "/memory.swap.max", "1048576\n");
  c.put(top + "/memory.swap.current", "0\n");
  EXPECT_EQ(c.look().bytes, 1 * mib);
}

// Tells of a limit that is none: it is beyond all that a process can have.
class limited {
 public:
  explicit limited(__rlimit_resource_t what) : what_(what) {
    getrlimit(what, &before_);
    const rlimit high{rlim_t{1} << 60, before_.rlim_max};
    setrlimit(what, &high);
  }
  ~limited() { setrlimit(what_, &before_); }
  limited(limited&&) = delete;

 private:
  __rlimit_resource_t what_;
  rlimit before_;
};

constexpr const char* has_limit = "this process is under a limit";

TEST(memory_limit, is_one_that_the_process_is_under) {
  if (find_memory_limit("/nowhere") != memory_limit::not_seen) GTEST_SKIP() << has_limit;
  const other_computer c;
  EXPECT_EQ(c.limit(), memory_limit::not_seen);
  c.put("/proc/sys/vm/overcommit_memory", "1\n");
  c.put("/proc/sys/vm/max_map_count", "65530\n");
  c.put("/proc/thread-self/maps", std::string(60000, '\n'));
  EXPECT_EQ(c.limit(), memory_limit::not_seen);
  c.put("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(c.limit(), memory_limit::promises);
  c.put("/proc/thread-self/maps", std::string(65530, '\n'));
  EXPECT_EQ(c.limit(), memory_limit::mappings);
  const limited data(RLIMIT_DATA);
  EXPECT_EQ(c.limit(), memory_limit::data);
  const limited space(RLIMIT_AS);
  EXPECT_EQ(c.limit(), memory_limit::address_space);
}

TEST(memory_limit, is_named_only_where_there_is_one) {
  if (find_memory_limit() != memory_limit::not_seen) GTEST_SKIP() << has_limit;
  const std::string free = next_step(ENOMEM);
  EXPECT_EQ(free.find("ulimit"), std::string::npos) << free;
  EXPECT_EQ(std::string(next_step_of_memory(ENOMEM)).find("ulimit"), std::string::npos);
  const limited data(RLIMIT_DATA);
  EXPECT_NE(std::string(next_step(ENOMEM)).find("ulimit -d"), std::string::npos);
  EXPECT_NE(std::string(next_step_of_memory(ENOMEM)).find("ulimit -d"), std::string::npos);
}

bool says(int code, const char* words) {
  return std::strstr(next_step(code), words) != nullptr;
}

// A process that has asked for a new PID namespace has no threads, and no processes when the first
// of that has ended: the kernel says EINVAL, and ENOMEM.
TEST(memory_limit, is_none_of_a_process_that_has_left_its_namespace) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(2);  // not allowed
    // Under a limit, too, nobody can tell which of the two it was: the limit is named.
    const bool is_free = find_memory_limit() == memory_limit::not_seen;
    const bool is_told = (!is_free || says(ENOMEM, "CLONE_NEWPID")) && says(EINVAL, "CLONE_NEWPID");
    const limited data(RLIMIT_DATA);
    _exit(is_told && says(ENOMEM, "ulimit") ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 2) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(how, 0);
  EXPECT_STREQ(next_step(EINVAL), "");
}

TEST(memory_left, is_that_of_a_group_of_version_1) {
  const other_computer c;
  const std::string top = "/sys/fs/cgroup/memory";
  c.put("/proc/thread-self/cgroup", "9:name=systemd:/\n4:memory:/a\n0::/\n");
  c.put(top + "/memory.limit_in_bytes", "9223372036854771712\n");
  c.put(top + "/memory.usage_in_bytes", "7\n");
  EXPECT_EQ(c.look().bytes, 5000 * mib);
  c.put(top + "/a/memory.limit_in_bytes", std::to_string(64 * mib));
  c.put(top + "/a/memory.usage_in_bytes", std::to_string(4 * mib));
  c.put(top + "/a/memory.stat", "active_file 9\ntotal_inactive_file 1048576\n");
  EXPECT_EQ(c.look().bytes, (60 + 1 + 1000) * mib);
}

TEST(no_write_signals, keep_the_program_and_what_it_has_set) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  errno = 5;
  {
    const no_write_signals guard;
    pthread_kill(pthread_self(), SIGXFSZ);
    pthread_kill(pthread_self(), SIGPIPE);
    EXPECT_EQ(errno, 5);
  }
  EXPECT_EQ(errno, 5);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGXFSZ, SIGPIPE})
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number));
}

TEST(no_write_signals, leave_a_signal_that_came_before) {
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  pthread_kill(pthread_self(), SIGPIPE);
  {
    const no_write_signals guard;
  }
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 1);
  constexpr timespec at_once{};
  EXPECT_EQ(sigtimedwait(&pipe, nullptr, &at_once), SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace lev
