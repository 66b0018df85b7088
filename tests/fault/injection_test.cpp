// Every named point (share/faults.hpp) with everything that can happen there: the process is
// killed, stopped for a while, delayed, or its system call fails. A host to which that happens gets
// right results or clear errors, comes to its end in time, and leaves nothing behind.
#include <gtest/gtest.h>

#include <dirent.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "fault/injected_host.hpp"

namespace lev::test {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds host_limit{20};
constexpr std::chrono::seconds leftover_limit{3};

// The living processes of a session; a dead one that nobody has waited for is none.
std::vector<pid_t> processes_of(pid_t session) {
  std::vector<pid_t> found;
  DIR* d = opendir("/proc");
  while (const dirent* entry = readdir(d)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    std::ifstream file(std::string("/proc/") + entry->d_name + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(") ");
    char state = 0;
    int parent = 0;
    int group = 0;
    int its_session = 0;
    if (name_end != std::string::npos &&
        std::sscanf(text.c_str() + name_end + 2, "%c %d %d %d", &state, &parent, &group,
                    &its_session) == 4 &&
        its_session == session && state != 'Z' && state != 'X')
      found.push_back(std::atoi(entry->d_name));
  }
  closedir(d);
  return found;
}

class injected_run {
 public:
  injected_run(std::uint32_t point, fault_action action, fault_phase phase)
      : report_(new (mmap(nullptr, sizeof(injected_report), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) injected_report{}) {
    host_ = fork();
    if (host_ != 0) return;
    setsid();
    _exit(run_injected_host(*report_, point, action, phase));
  }
  ~injected_run() { munmap(report_, sizeof *report_); }
  injected_run(const injected_run&) = delete;
  injected_run& operator=(const injected_run&) = delete;

  // What is wrong; empty when all is well.
  std::string why(bool host_is_killed) {
    int how = 0;
    if (!await_host(&how)) {
      end_session();
      waitpid(host_, nullptr, 0);
      return "the host hangs";
    }
    const std::string text = report_->text;
    const bool was_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (host_is_killed && has_happened() != was_killed) return "the host was not killed: " + text;
    if (!was_killed && (!WIFEXITED(how) || WEXITSTATUS(how) != 0))
      return text.empty() ? "the host crashed" : text;
    if (!await_session_end()) {
      end_session();
      return "a process is left";
    }
    return "";
  }
  bool has_happened() const {
    return report_->has_happened != 0 || report_->of_host.has_happened != 0;
  }

 private:
  bool await_host(int* how) const {
    const clock::time_point limit = clock::now() + host_limit;
    while (clock::now() < limit) {
      if (waitpid(host_, how, WUNTRACED | WNOHANG) == host_) {
        if (!WIFSTOPPED(*how)) return true;
        poll(nullptr, 0, fault_plan::delay_ms);
        kill(host_, SIGCONT);
      }
      poll(nullptr, 0, 1);
    }
    return false;
  }
  bool await_session_end() const {
    const clock::time_point limit = clock::now() + leftover_limit;
    while (!processes_of(host_).empty()) {
      if (clock::now() >= limit) return false;
      poll(nullptr, 0, 1);
    }
    return true;
  }
  void end_session() const {
    for (const pid_t p : processes_of(host_)) kill(p, SIGKILL);
  }

  injected_report* report_;
  pid_t host_ = -1;
};

const char* name_of(fault_action action) {
  constexpr const char* names[] = {"none", "kill", "stop", "fail", "delay"};
  return names[static_cast<std::size_t>(action)];
}

class injection_test : public testing::TestWithParam<std::uint32_t> {
 protected:
  // Whether the fault has happened.
  bool run(fault_action action, fault_phase phase) {
    const std::string name = fault_points[GetParam()].name;
    injected_run r(GetParam(), action, phase);
    const bool host_dies = action == fault_action::kill && name.starts_with("host.");
    EXPECT_EQ(r.why(host_dies), "")
        << name_of(action) << " at " << name
        << (phase == fault_phase::at_first ? ", first time" : ", once the runtime is open");
    return r.has_happened();
  }
};

TEST_P(injection_test, is_survived) {
  const fault_point& point = fault_points[GetParam()];
  for (const fault_action action :
       {fault_action::kill, fault_action::stop, fault_action::fail, fault_action::delay}) {
    if (action == fault_action::fail && point.error == 0) continue;
    EXPECT_TRUE(run(action, fault_phase::at_first))
        << point.name << " was never reached, to " << name_of(action);
    // Opening is the same for all that follow; what comes later may be another thing.
    if (action == fault_action::kill || action == fault_action::fail)
      run(action, fault_phase::when_open);
  }
}

std::vector<std::uint32_t> all_points() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < fault_point_count; ++i) all.push_back(i);
  return all;
}
INSTANTIATE_TEST_SUITE_P(at, injection_test, testing::ValuesIn(all_points()),
                         [](const testing::TestParamInfo<std::uint32_t>& i) {
                           std::string name = fault_points[i.param].name;
                           name[name.find('.')] = '_';
                           return name;
                         });

TEST(injection, the_table_is_as_large_as_promised) {
  EXPECT_GE(fault_point_count, 25u);
}

}  // namespace

}  // namespace lev::test
