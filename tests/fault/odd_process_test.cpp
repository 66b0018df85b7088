// Hosts that fork at odd moments: a generator of cases, each a process of its own
// (odd_process.cpp). Whatever the child does, it ends when it should, the parent's tasks and data
// are as if there had been no child, and no process is left.
#include <gtest/gtest.h>

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fault/family.hpp"
#include "support/environment.hpp"

extern char** environ;

namespace lev::test {
namespace {

struct odd_case {
  std::string machine, place, moment, child, ending, life;
  unsigned seed;
  std::vector<std::string> words() const {
    return {ODD_PROCESS, machine, place, moment, child, ending, life, std::to_string(seed)};
  }
  std::string name() const {
    std::string all;
    for (const std::string& w : words()) all += w + " ";
    return all;
  }
};

std::vector<std::string> machines() {
#if defined(__SANITIZE_THREAD__)
  return {"threads"};
#else
  return {"threads", "processes", "pool", "sim"};
#endif
}

const std::vector<std::string> places = {"static", "local"};
const std::vector<std::string> moments = {"idle",    "under_way", "waiting",  "submitting",
                                          "opening", "body",      "callback", "bulk"};
const std::vector<std::string> deeds = {"nothing", "calls", "destroys", "opens"};
const std::vector<std::string> endings = {"exit", "quick", "return", "abort", "exec"};

class generator {
 public:
  explicit generator(std::uint64_t seed) : random_(seed) {}
  odd_case next(const std::string& machine, const std::string& moment) {
    odd_case c{machine, one_of(places), moment, one_of(deeds), one_of(endings), "ends", 0};
    c.seed = random_.below(1000);
    // A body of a worker process is not the host's.
    if (moment == "body" && (machine == "processes" || machine == "pool")) c.moment = "idle";
    if (is_sanitized() && c.child == "opens") c.child = "calls";
    if (c.ending != "return" && random_.below(3) == 0) c.life = "lives";
    return c;
  }

 private:
  const std::string& one_of(const std::vector<std::string>& all) {
    return all[random_.below(static_cast<std::uint32_t>(all.size()))];
  }
  random_source random_;
};

class odd_process {
 public:
  explicit odd_process(odd_case c) : case_(std::move(c)) {
    std::vector<std::string> words = case_.words();
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, ODD_PROCESS, nullptr, nullptr, pointers.data(), environ), 0);
  }
  void expect_good_end() {
    int how = 0;
    EXPECT_EQ(waitpid(pid_, &how, 0), pid_);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0)
        << case_.name() << "ended with " << std::hex << how;
  }

 private:
  odd_case case_;
  pid_t pid_ = 0;
};

TEST(odd_process, forks_at_any_moment_and_nothing_is_lost_or_left) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "a child may find the sanitizer's own locks held by threads that it does not have";
#endif
  adopt_orphans();
  constexpr std::size_t at_once = 4;
  const std::uint64_t seed = base_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  generator g(seed);
  std::deque<odd_process> under_way;
  const int times = is_deep() ? 40 : is_sanitized() ? 1 : 3;
  for (int i = 0; i < times; ++i) {
    for (const std::string& machine : machines()) {
      for (const std::string& moment : moments) {
        under_way.emplace_back(g.next(machine, moment));
        if (under_way.size() < at_once) continue;
        under_way.front().expect_good_end();
        under_way.pop_front();
      }
    }
  }
  for (odd_process& p : under_way) p.expect_good_end();
  EXPECT_EQ(orphans_left({}), 0) << "processes that nobody ended";
}

}  // namespace
}  // namespace lev::test
