// Programs that call exit() at an odd place, each a process of its own (exiting_program.cpp): they
// end, with the code that they have chosen.
#include <gtest/gtest.h>

#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <vector>

#include "support/environment.hpp"

extern char** environ;

namespace lev::test {
namespace {

int end_of(const std::string& machine, const std::string& place, int code) {
  std::vector<std::string> words = {EXITING_PROGRAM, machine, place, std::to_string(code)};
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  pid_t pid = 0;
  int how = -1;
  EXPECT_EQ(posix_spawn(&pid, EXITING_PROGRAM, nullptr, nullptr, pointers.data(), environ), 0);
  EXPECT_EQ(waitpid(pid, &how, 0), pid);
  return how;
}

struct odd_exit {
  const char* machine;
  const char* place;
};

TEST(exit, ends_the_program_with_its_code_wherever_it_is_called) {
  const std::vector<odd_exit> all = {
      {"threads", "main"},       {"threads", "body"},    {"threads", "callback"},
      {"threads", "other_idle"}, {"sim", "main"},        {"sim", "body"},
      {"sim", "callback"},       {"sim", "other"},       {"sim", "other_idle"},
      {"threads", "maker"},      {"sim", "maker"},       {"processes", "main"},
      {"processes", "callback"}, {"processes", "maker"}, {"processes", "other_idle"},
      {"threads", "filter"},     {"threads", "dice"},    {"sim", "filter"},
      {"sim", "dice"},           {"sim", "cost"},        {"processes", "filter"},
      {"processes", "dice"},     {"processes", "death"}, {"threads", "scope"},
      {"threads", "scope_idle"}, {"sim", "scope"},       {"sim", "scope_idle"},
      {"threads", "scope_busy"}, {"threads", "late"},    {"sim", "late"},
      {"processes", "cancel"},
  };
  int code = 10;
  for (int i = 0; i < rounds(5); ++i) {
    for (const odd_exit& each : all) {
      if (is_sanitized() && std::string(each.machine) == "processes") continue;
      const int how = end_of(each.machine, each.place, ++code % 60);
      EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == code % 60)
          << each.machine << ' ' << each.place << ' ' << std::hex << how;
    }
  }
}

// exit() destroys the thread_local objects of its thread before it tells anybody of the end.
TEST(exit, in_a_task_of_a_runtime_of_the_thread_is_a_clear_end) {
  const int how = end_of("threads", "own", 1);
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT) << std::hex << how;
}

}  // namespace
}  // namespace lev::test
