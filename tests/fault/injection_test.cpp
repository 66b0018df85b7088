// Every named point (share/faults.hpp) with everything that can happen there: the process is
// killed, stopped for a while, delayed, or its system call fails. A host to which that happens gets
// right results or clear errors, comes to its end in time, and leaves nothing behind. So with a
// pool of its own and with one that others may share, whose keeper stands at the zygote's points;
// there only kills and failures at the first time are tried, unless LEVERET_DEEP=1.
#include <gtest/gtest.h>

#include <dirent.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "fault/injected_host.hpp"
#include "support/environment.hpp"

namespace lev::test {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds host_limit{20};
constexpr std::chrono::seconds leftover_limit{20};

// This process's children. It is a subreaper: every process that is left behind becomes one.
std::vector<pid_t> children() {
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
    if (name_end != std::string::npos &&
        std::sscanf(text.c_str() + name_end + 2, "%c %d", &state, &parent) == 2 &&
        parent == getpid())
      found.push_back(std::atoi(entry->d_name));
  }
  closedir(d);
  return found;
}

class injected_run {
 public:
  explicit injected_run(const injected_fault& what)
      : report_(new (mmap(nullptr, sizeof(injected_report), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) injected_report{}) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    host_ = fork();
    if (host_ != 0) return;
    setsid();
    _exit(run_injected_host(*report_, what));
  }
  ~injected_run() { munmap(report_, sizeof *report_); }
  injected_run(injected_run&&) = delete;

  // The first thing that is wrong, in words; empty when all is well.
  std::string why(bool host_is_killed) {
    int how = 0;
    if (!await_host(&how)) {
      end_all();
      return "the host hangs";
    }
    const std::string text = report_->text;
    const bool was_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (host_is_killed && has_happened() != was_killed) return "the host was not killed: " + text;
    if (!was_killed && (!WIFEXITED(how) || WEXITSTATUS(how) != 0))
      return text.empty() ? "the host crashed" : text;
    if (!await_end_of_all()) {
      end_all();
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
  static bool are_all_over() {
    int how = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &how, WNOHANG | WUNTRACED)) > 0) {
      if (!WIFSTOPPED(how)) continue;  // a keeper, whose host has not waited for its end
      poll(nullptr, 0, fault_plan::delay_ms);
      kill(pid, SIGCONT);
    }
    return pid < 0 && errno == ECHILD;
  }
  static bool await_end_of_all() {
    const clock::time_point limit = clock::now() + leftover_limit;
    while (!are_all_over()) {
      if (clock::now() >= limit) return false;
      poll(nullptr, 0, 1);
    }
    return true;
  }
  static void end_all() {
    do {
      for (const pid_t p : children()) kill(p, SIGKILL);
    } while (!are_all_over());
  }

  injected_report* report_;
  pid_t host_ = -1;
};

const char* name_of(fault_action action) {
  constexpr const char* names[] = {"none", "kill", "stop", "fail", "delay"};
  return names[static_cast<std::size_t>(action)];
}

// The keeper of a shared pool is not its host's child, and its workers do not leave: they are
// killed by it: in a task that is to end, or when the last host has left.
bool has_keeper(const fault_point& point) {
  constexpr const char* others[] = {"host.end_process", "host.pidfd_open", "host.wait_zygote",
                                    "worker.leave"};
  return std::none_of(std::begin(others), std::end(others),
                      [&](const char* name) { return std::strcmp(name, point.name) == 0; });
}

struct place {
  std::uint32_t point;
  bool is_pool_shared;
};

class injection_test : public testing::TestWithParam<place> {
 protected:
  // Whether the fault has happened.
  bool run(fault_action action, fault_phase phase) {
    const std::string name = fault_points[GetParam().point].name;
    injected_run r({GetParam().point, action, phase, GetParam().is_pool_shared});
    const bool host_dies = action == fault_action::kill && name.starts_with("host.");
    EXPECT_EQ(r.why(host_dies), "")
        << name_of(action) << " at " << name
        << (phase == fault_phase::at_first ? ", first time" : ", once the runtime is open");
    return r.has_happened();
  }
};

TEST_P(injection_test, is_survived) {
  const fault_point& point = fault_points[GetParam().point];
  const bool is_brief = GetParam().is_pool_shared && !is_deep();
  for (const fault_action action :
       {fault_action::kill, fault_action::stop, fault_action::fail, fault_action::delay}) {
    const bool is_first_choice = action == fault_action::kill || action == fault_action::fail;
    if (action == fault_action::fail && point.error == 0) continue;
    if (is_brief && !is_first_choice) continue;
    EXPECT_TRUE(run(action, fault_phase::at_first))
        << point.name << " was never reached, to " << name_of(action);
    // Opening is the same for all that follow; what comes later may be another thing.
    if (is_first_choice && !is_brief) run(action, fault_phase::when_open);
  }
}

std::vector<place> all_places() {
  std::vector<place> all;
  for (const bool is_pool_shared : {false, true}) {
    for (std::uint32_t i = 0; i < fault_point_count; ++i) {
      if (!is_pool_shared || has_keeper(fault_points[i])) all.push_back({i, is_pool_shared});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(at, injection_test, testing::ValuesIn(all_places()),
                         [](const testing::TestParamInfo<place>& i) {
                           std::string name = fault_points[i.param.point].name;
                           name[name.find('.')] = '_';
                           return i.param.is_pool_shared ? name + "_of_a_shared_pool" : name;
                         });

TEST(injection, the_table_is_as_large_as_promised) {
  EXPECT_GE(fault_point_count, 25u);
}

}  // namespace

}  // namespace lev::test
