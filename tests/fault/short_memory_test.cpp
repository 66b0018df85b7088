// Hosts whose memory ends at any of their allocations, each a process of its own
// (short_memory_program.cpp): none is ended by it, and none hangs.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/environment.hpp"

namespace lev::test {
namespace {

std::string command(const std::string& machine, const std::string& rest) {
  return std::string(SHORT_MEMORY_PROGRAM) + " " + machine + " " + rest;
}

long allocations_of(const std::string& machine) {
  std::FILE* said = popen(command(machine, "count").c_str(), "r");
  long count = 0;
  EXPECT_EQ(std::fscanf(said, "%ld", &count), 1);
  EXPECT_EQ(pclose(said), 0);
  return count;
}

class short_memory_test : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(on, short_memory_test, testing::Values("threads", "processes", "sim"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(short_memory_test, ends_no_program_wherever_it_shows) {
  const long all = allocations_of(GetParam());
  ASSERT_GT(all, 10);
  // Most of those of `sim` are of its machine file, where one is like the other.
  constexpr long looked_at = 60;
  for (long i = all > looked_at && !is_deep() ? all - looked_at : 0; i <= all; ++i) {
    for (const char* how : {" once", " always"}) {
      const int end = std::system(command(GetParam(), std::to_string(i) + how).c_str());
      EXPECT_TRUE(WIFEXITED(end) && (WEXITSTATUS(end) == 0 || WEXITSTATUS(end) == 2))
          << i << how << ": " << std::hex << end;
    }
  }
}

}  // namespace
}  // namespace lev::test
