// Hosts at one pool of workers, each with a script of its own: what they do, and what happens to
// them and to their workers meanwhile, is drawn from a seed.
//
//   pool_exercise --seed N --programs N [--seconds N] [--told]
//
// Each host is a child of this process, which orphans come to: so it sees that none is left.
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "fault/pool_script.hpp"

namespace lev::test {
namespace {

using clock = std::chrono::steady_clock;
constexpr int host_seconds_max = 150;
constexpr int left_seconds_max = 30;

struct settings {
  std::uint64_t seed = 1;
  std::uint64_t programs = 1;
  int seconds = 0;  // 0: as long as it takes
  bool is_told = false;
};

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// The parent of a process, and its name; 0 if there is none.
pid_t parent_of(const std::string& pid, std::string* name) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(") ");
  if (end == std::string::npos) return 0;
  *name = text.substr(begin + 1, end - begin - 1);
  return std::atoi(text.c_str() + end + 4);
}

// The pool's keepers, which come to this process when their first process has ended, and their
// workers.
struct staff {
  std::vector<pid_t> keepers;
  std::vector<pid_t> workers;
};
staff find_staff() {
  std::vector<std::pair<pid_t, pid_t>> all;
  staff found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string number = entry.path().filename();
    if (number[0] < '1' || number[0] > '9') continue;
    std::string name;
    const pid_t parent = parent_of(number, &name);
    if (parent == getpid() && name == "leveret-keeper")
      found.keepers.push_back(std::atoi(number.c_str()));
    all.emplace_back(std::atoi(number.c_str()), parent);
  }
  for (const auto& [pid, parent] : all) {
    for (const pid_t keeper : found.keepers) {
      if (parent == keeper) found.workers.push_back(pid);
    }
  }
  return found;
}

bool is_name_left(const std::string& pool) {
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    if (line.find(pool) != std::string::npos) return true;
  }
  return false;
}

class program {
 public:
  program(const settings& s, std::uint64_t seed, pool_world* world)
      : settings_(s), seed_(seed), random_(seed), world_(world) {
    pool_ = "exercise-" + std::to_string(getpid()) + "-" + std::to_string(seed);
  }

  bool run() {
    const std::uint32_t count = 2 + random_.below(4);
    const bool is_confined = random_.below(5) == 0;
    kills_workers_ = random_.below(3) == 0;
    kills_hosts_ = random_.below(3) == 0;
    stops_hosts_ = random_.below(3) == 0;
    if (settings_.is_told)
      std::fprintf(
          stderr, "seed %llu: %u hosts%s%s%s%s\n", static_cast<unsigned long long>(seed_), count,
          is_confined ? ", confined" : "", kills_workers_ ? ", workers are killed" : "",
          kills_hosts_ ? ", hosts are killed" : "", stops_hosts_ ? ", hosts are stopped" : "");
    for (std::uint32_t i = 0; i < count; ++i) start_host(i, is_confined);
    const auto begin = clock::now();
    while (is_one_there()) {
      if (seconds_since(begin) > host_seconds_max) return give_up("a host does not end");
      poll(nullptr, 0, static_cast<int>(1 + random_.below(12)));
      happen();
      reap();
    }
    return is_good_ && leaves_nothing();
  }

 private:
  struct host_process {
    pid_t pid;
    bool is_stopped;
    bool is_killed;
  };

  bool give_up(const char* why) {
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed_), why);
    for (const host_process& h : hosts_) {
      if (h.pid != 0) kill(h.pid, SIGKILL);
    }
    return false;
  }
  void start_host(std::uint32_t number, bool is_confined) {
    const script s{pool_.c_str(), seed_, number, is_confined, settings_.is_told, world_};
    const int niceness = random_.below(4) == 0 ? static_cast<int>(random_.below(10)) : 0;
    const bool has_twin = random_.below(5) == 0;
    const pid_t pid = fork();
    if (pid != 0) return hosts_.push_back({pid, false, false});
    setpriority(PRIO_PROCESS, 0, niceness);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_twin) {  // two runtimes of one process
      script other = s;
      other.host += 100;
      std::thread twin([&] { run_script(other); });
      run_script(s);
      twin.join();
    } else {
      run_script(s);
    }
    std::exit(0);
  }
  bool is_one_there() const {
    for (const host_process& h : hosts_) {
      if (h.pid != 0) return true;
    }
    return false;
  }

  // One blow from outside.
  void happen() {
    if (kills_workers_ && random_.below(4) == 0) kill_worker();
    if (kills_workers_ && random_.below(40) == 0) kill_keeper();
    host_process& h = hosts_[random_.below(static_cast<std::uint32_t>(hosts_.size()))];
    if (h.pid == 0) return;
    if (h.is_stopped) {
      h.is_stopped = false;
      kill(h.pid, SIGCONT);
    } else if (stops_hosts_ && random_.below(4) == 0) {
      h.is_stopped = true;
      kill(h.pid, SIGSTOP);
    } else if (kills_hosts_ && random_.below(30) == 0) {
      h.is_killed = true;
      kill(h.pid, SIGKILL);
    }
  }
  void kill_worker() {
    const staff now = find_staff();
    if (now.workers.empty()) return;
    kill_all({now.workers[random_.below(static_cast<std::uint32_t>(now.workers.size()))]});
  }
  void kill_keeper() {
    const staff now = find_staff();
    if (now.keepers.empty()) return;
    std::vector<pid_t> all = now.workers;  // they end with it
    all.insert(all.begin(), now.keepers[0]);
    kill_all(all);
  }
  // Kills the first, and waits for the end of all.
  void kill_all(const std::vector<pid_t>& all) {
    std::vector<pollfd> ends;
    for (const pid_t pid : all) {
      const int file = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
      if (file >= 0) ends.push_back({file, POLLIN, 0});
    }
    world_->kills_begun.fetch_add(1);
    kill(all[0], SIGKILL);
    for (pollfd& end : ends) {
      poll(&end, 1, 5'000);
      close(end.fd);
    }
    world_->kills_done.fetch_add(1);
  }

  // A process that has ended, before it is reaped; 0: none.
  static pid_t ended_one() {
    siginfo_t told{};
    return waitid(P_ALL, 0, &told, WEXITED | WNOHANG | WNOWAIT) == 0 ? told.si_pid : 0;
  }
  void reap() {
    while (const pid_t pid = ended_one()) {
      std::string name;
      parent_of(std::to_string(pid), &name);
      int how = 0;
      waitpid(pid, &how, 0);
      // Its workers may end in any way after it, and a child that finds it gone ends with 1.
      bool is_watched = name == "leveret-keeper" && WIFSIGNALED(how);
      bool may_be_killed = is_watched;
      for (host_process& h : hosts_) {
        if (h.pid != pid) continue;
        h.pid = 0;
        is_watched = true;
        may_be_killed = h.is_killed;
      }
      const bool was_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
      if (!is_watched || how == 0 || (was_killed && may_be_killed)) continue;
      is_good_ = false;
      std::fprintf(stderr, "seed %llu: process %d (%s) ended with %#x\n",
                   static_cast<unsigned long long>(seed_), pid, name.c_str(),
                   static_cast<unsigned>(how));
    }
  }
  bool leaves_nothing() {
    const auto begin = clock::now();
    while (waitpid(-1, nullptr, WNOHANG) >= 0 || is_name_left(pool_)) {
      if (seconds_since(begin) > left_seconds_max) return give_up("a process or its name is left");
      poll(nullptr, 0, 1);
    }
    return true;
  }

  const settings& settings_;
  const std::uint64_t seed_;
  random_source random_;
  pool_world* world_;
  std::string pool_;
  std::vector<host_process> hosts_;
  bool kills_workers_ = false;
  bool kills_hosts_ = false;
  bool stops_hosts_ = false;
  bool is_good_ = true;
};

bool read_settings(int count, char** words, settings* s) {
  for (int i = 1; i < count; ++i) {
    const bool has_value = i + 1 < count;
    if (std::strcmp(words[i], "--told") == 0) {
      s->is_told = true;
    } else if (std::strcmp(words[i], "--seed") == 0 && has_value) {
      s->seed = std::strtoull(words[++i], nullptr, 10);
    } else if (std::strcmp(words[i], "--programs") == 0 && has_value) {
      s->programs = std::strtoull(words[++i], nullptr, 10);
    } else if (std::strcmp(words[i], "--seconds") == 0 && has_value) {
      s->seconds = std::atoi(words[++i]);
    } else {
      return false;
    }
  }
  return true;
}

int run_all(const settings& s) {
  void* page =
      mmap(nullptr, sizeof(pool_world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  auto* world = new (page) pool_world;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto begin = clock::now();
  std::uint64_t done = 0;
  std::uint64_t failures = 0;
  for (; done < s.programs && (s.seconds == 0 || seconds_since(begin) < s.seconds); ++done) {
    if (program(s, s.seed + done, world).run()) continue;
    if (++failures == 5) break;
  }
  std::printf("%llu programs from seed %llu, %llu failed, %.1f s\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(s.seed),
              static_cast<unsigned long long>(failures), seconds_since(begin));
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lev::test

int main(int count, char** words) {
  lev::test::settings s;
  if (lev::test::read_settings(count, words, &s)) return lev::test::run_all(s);
  std::fprintf(stderr, "pool_exercise [--seed N] [--programs N] [--seconds N] [--told]\n");
  return 2;
}
