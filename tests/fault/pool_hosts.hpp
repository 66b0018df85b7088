// Host processes at one pool of workers (pool_member.cpp), as the tests of shared pools drive them.
#pragma once

#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace lev::test {

constexpr int answer_ms_max = 30'000;

// A host process (pool_member.cpp).
class member {
 public:
  explicit member(std::vector<std::string> arguments) {
    int to[2], from[2];
    EXPECT_EQ(pipe2(to, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    arguments.insert(arguments.begin(), POOL_MEMBER);
    std::vector<char*> words;
    for (std::string& a : arguments) words.push_back(a.data());
    words.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, POOL_MEMBER, &actions, nullptr, words.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~member() {
    close(to_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    close(from_);
  }
  member(member&&) = delete;

  pid_t pid() const { return pid_; }
  void say(const std::string& line) {
    const std::string text = line + "\n";
    EXPECT_EQ(write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string hear() {
    std::string line;
    for (;;) {
      pollfd ready{from_, POLLIN, 0};
      if (poll(&ready, 1, answer_ms_max) != 1) return line + " (no answer)";
      char c = 0;
      if (read(from_, &c, 1) != 1) return line + " (ended)";
      if (c == '\n') return line;
      line += c;
    }
  }
  std::string ask(const std::string& line) {
    say(line);
    return hear();
  }
  void die() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int to_ = -1;
  int from_ = -1;
};

// "right RERUNS PID PID ..."
struct answer {
  bool is_right = false;
  int reruns = -1;
  std::set<pid_t> workers;
};
inline answer parse(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  answer a;
  in >> word >> a.reruns;
  a.is_right = word == "right";
  for (pid_t pid; in >> pid;) a.workers.insert(pid);
  return a;
}

// /proc/PID/stat from behind the name on: the state of the first thread, then the parent.
inline std::string stat_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");
  return end == std::string::npos ? "?" : text.substr(end + 2);
}
inline char state_of(pid_t pid) {
  return stat_of(pid)[0];
}
inline pid_t parent_of(pid_t pid) {
  return std::atoi(stat_of(pid).c_str() + 1);
}

// Waits for the end of a process that is not ours.
inline bool ends(pid_t pid) {
  const int file = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (file < 0) return true;
  pollfd over{file, POLLIN, 0};
  const bool is_over = poll(&over, 1, answer_ms_max) == 1;
  close(file);
  return is_over;
}

// Whether something becomes true in good time.
inline bool comes(const std::function<bool()>& is_there) {
  for (int look = 0; look < answer_ms_max; ++look) {
    if (is_there()) return true;
    poll(nullptr, 0, 1);
  }
  return false;
}

inline long size_of(const std::string& path) {
  struct stat about{};
  return stat(path.c_str(), &about) == 0 ? static_cast<long>(about.st_size) : 0;
}

// A host that has only short tasks need not come to all workers.
inline bool are_among(const std::set<pid_t>& some, const std::set<pid_t>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

class shared_pool : public testing::Test {
 protected:
  // A pool of its own for each test.
  std::vector<std::string> at_pool(const std::string& workers = "2",
                                   const std::string& task_ns_max = "0") const {
    return {name_, workers, task_ns_max};
  }
  const std::string name_ = "test-" + std::to_string(getpid()) + "-" + std::to_string(++pools_);
  static inline int pools_ = 0;
};

}  // namespace lev::test
