// The files that a started program has open: both ways of closing give it the same.
#include "machines/processes/start_again.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace lev::processes {
namespace {

// The open files of a new process as `ls` sees them, without the one by which it looks.
std::string files_of_a_program(void (*close)(posix_spawn_file_actions_t&, int) noexcept) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  close(actions, STDERR_FILENO + 1);
  char shell[] = "sh", option[] = "-c",
       line[] =
           "for f in 0 1 2 3 4 5 6 7 8 9 500; do "
           "[ -e /proc/$$/fd/$f ] && echo -n $f.; done";
  char* words[] = {shell, option, line, nullptr};
  char* environment[] = {nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, "/bin/sh", &actions, nullptr, words, environment), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text(100, 0);
  std::size_t filled = 0;
  for (ssize_t got; (got = read(ends[0], &text[filled], text.size() - filled)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    filled += got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  ::close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  text.resize(filled);
  return text;
}

TEST(close_from, leaves_the_standard_files_only) {
  const int low = open("/dev/null", O_RDONLY);  // passed on, if nobody closes it
  const int high = fcntl(low, F_DUPFD, 500);
  ASSERT_EQ(high, 500);
  EXPECT_EQ(files_of_a_program(&close_from), "0.1.2.");
  EXPECT_EQ(files_of_a_program(&close_listed), "0.1.2.");
  const auto nothing = [](posix_spawn_file_actions_t&, int) noexcept {};
  EXPECT_NE(files_of_a_program(nothing).find("500."), std::string::npos);
  close(low);
  close(high);
}

}  // namespace
}  // namespace lev::processes
