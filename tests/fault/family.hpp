// Processes that a test has started without having forked them: which are left when their parent
// has ended.
#pragma once

#include <gtest/gtest.h>

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace lev::test {

// adopt_orphans() makes this process the parent of those whose parent ends.
inline void adopt_orphans() {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

inline pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");
  return end == std::string::npos ? 0 : std::atoi(text.c_str() + end + 4);
}

inline std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> all;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && parent_of(pid) == parent) all.insert(pid);
  }
  if (folder != nullptr) closedir(folder);
  return all;
}

// orphans_left() waits until this process has no children but those `known`, and returns how many
// others there are after 30 s; they are killed.
inline int orphans_left(const std::set<pid_t>& known) {
  constexpr int looks_max = 3000;
  std::set<pid_t> left;
  for (int look = 0; look < looks_max; ++look) {
    left = children_of(getpid());
    for (const pid_t pid : known) left.erase(pid);
    for (auto pid = left.begin(); pid != left.end();)
      pid = waitpid(*pid, nullptr, WNOHANG) == *pid ? left.erase(pid) : std::next(pid);
    if (left.empty()) return 0;
    poll(nullptr, 0, 10);
  }
  for (const pid_t pid : left) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return static_cast<int>(left.size());
}

}  // namespace lev::test
