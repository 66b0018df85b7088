// See drive.hpp. A child says in a page that it shares with the driver which program it runs; a
// program that has not ended in time is asked by a signal to tell where it is, and killed.
#include "exercise/drive.hpp"

#include "exercise/generate.hpp"
#include "exercise/interpret.hpp"
#include "exercise/print.hpp"
#include "exercise/shrink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>

namespace lev::exercise {

namespace {

using seconds_clock = std::chrono::steady_clock;

double now() {
  return std::chrono::duration<double>(seconds_clock::now().time_since_epoch()).count();
}

// The memory in which a child shows how far it is.
struct window {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> count{0};   // programs that have ended
  std::atomic<std::uint32_t> failed{0};  // 1: text is written
  char text[4000];
};

window* make_window() {
  void* page =
      mmap(nullptr, sizeof(window), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  return new (page) window;
}

// Waits until one of the processes has ended, or the time is over.
void await_end(const std::vector<pid_t>& pids, int milliseconds) {
  std::vector<pollfd> all;
  for (const pid_t pid : pids) {
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) all.push_back({fd, POLLIN, 0});
  }
  poll(all.data(), all.size(), milliseconds);
  for (const pollfd& p : all) close(p.fd);
}

window* own_window = nullptr;

// In a child that hangs: says where it is.
void tell_state(int) {
  std::snprintf(own_window->text, sizeof own_window->text, "hangs\n%s", state_now().c_str());
  own_window->failed.store(1);
  std::_Exit(1);
}

// The last words of a child that hangs.
std::string bury(pid_t pid, window& w) {
  kill(pid, SIGUSR1);
  await_end({pid}, 300);
  kill(pid, SIGKILL);
  int how = 0;
  waitpid(pid, &how, 0);
  return w.failed.load() != 0 ? w.text : "hangs";
}

struct child {
  pid_t pid = -1;
  window* view = nullptr;
  place machine = place::threads;
  std::uint64_t last_count = 0;
  double since = 0;
};

// Ends the child without its destructors: the process's threads may be anywhere.
[[noreturn]] void leave(window& w, const std::string& what) {
  if (!what.empty()) {
    std::snprintf(w.text, sizeof w.text, "%s", what.c_str());
    w.failed.store(1);
    std::_Exit(1);
  }
  std::_Exit(0);
}

pid_t start(window& w, const std::function<void()>& body) {
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  own_window = &w;
  std::signal(SIGUSR1, &tell_state);
  body();
  std::_Exit(0);
}

std::string end_text(int how) {
  if (WIFSIGNALED(how)) return std::string("ended by signal ") + strsignal(WTERMSIG(how));
  return "ended with exit code " + std::to_string(WEXITSTATUS(how));
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += !entry.path().empty();
  return count;
}

// The resources that a program must have given back when it has ended.
struct belongings {
  std::size_t descriptors = entries_of("/proc/self/fd");
  std::size_t threads = entries_of("/proc/self/task");

  // The resources that are there now beyond these, in words; empty when there are none.
  std::string more() const {
    belongings now;
    // A thread that was joined is listed for a moment longer.
    for (int i = 0; i < 10'000 && now.threads > threads; ++i) {
      sched_yield();
      now = {};
    }
    if (now.threads > threads) return std::to_string(now.threads) + " threads are left";
    if (now.descriptors > descriptors)
      return std::to_string(now.descriptors - descriptors) + " descriptors are left open";
    return waitpid(-1, nullptr, WNOHANG) < 0 ? "" : "a process is left";
  }
};

// Programs first, first + step, ...
void run_many(window& w, place machine, const ingredients& made_of, std::uint64_t first,
              std::uint64_t step, std::uint64_t count, double until) {
  const limits l;
  std::optional<belongings> mine;
  for (std::uint64_t i = 0; i < count && (until == 0 || now() < until); ++i) {
    const std::uint64_t seed = first + i * step;
    w.seed.store(seed);
    const std::string what = run_program(generate(seed, machine, made_of), l);
    if (!what.empty()) leave(w, what);
    // The first one may open what the process keeps.
    if (!mine) mine.emplace();
    if (const std::string more = mine->more(); !more.empty()) leave(w, more);
    w.count.fetch_add(1);
  }
}

class driver {
 public:
  explicit driver(const plan& p) : p_(p), start_(now()) {
    until_ = p.seconds > 0 ? start_ + p.seconds : 0;
  }
  report all() {
    children_.resize(std::max<std::size_t>(p_.jobs, 1));
    for (std::size_t i = 0; i < children_.size(); ++i) {
      children_[i].view = make_window();
      children_[i].machine = p_.machines[i % p_.machines.size()];
      next_.push_back(p_.seed + i);
      launch(i);
    }
    while (
        std::any_of(children_.begin(), children_.end(), [](const child& c) { return c.pid > 0; })) {
      for (std::size_t i = 0; i < children_.size(); ++i) look(i);
      std::vector<pid_t> pids;
      for (const child& c : children_) {
        if (c.pid > 0) pids.push_back(c.pid);
      }
      await_end(pids, 50);
    }
    r_.seconds = now() - start_;
    return r_;
  }

 private:
  // Each child runs a share of the programs of its machine, then takes the next machine.
  static constexpr std::uint64_t share = 100;
  bool is_over() const {
    const bool enough = p_.programs != 0 && started_ >= p_.programs;
    return enough || (until_ != 0 && now() >= until_) || r_.findings.size() >= p_.failures_max;
  }
  void launch(std::size_t i) {
    child& c = children_[i];
    c.pid = -1;
    if (is_over()) return;
    const std::uint64_t left = p_.programs == 0 ? share : std::min(share, p_.programs - started_);
    c.view->count.store(0);
    c.view->failed.store(0);
    c.last_count = 0;
    c.since = now();
    const std::uint64_t first = next_[i];
    const auto step = static_cast<std::uint64_t>(children_.size());
    started_ += left;
    c.pid = start(*c.view,
                  [&] { run_many(*c.view, c.machine, p_.made_of, first, step, left, until_); });
  }
  void look(std::size_t i) {
    child& c = children_[i];
    if (c.pid <= 0) return;
    int how = 0;
    const std::uint64_t count = c.view->count.load();
    if (count != c.last_count) {
      c.last_count = count;
      c.since = now();
    }
    std::string what;
    if (waitpid(c.pid, &how, WNOHANG) == c.pid) {
      if (how == 0) return ended(i, "");
      what = c.view->failed.load() != 0 ? c.view->text : end_text(how);
    } else if (now() - c.since > p_.hang_seconds) {
      what = bury(c.pid, *c.view);
    } else {
      return;
    }
    ended(i, what);
  }
  void ended(std::size_t i, const std::string& what) {
    child& c = children_[i];
    const std::uint64_t ran = c.view->count.load() + (what.empty() ? 0 : 1);
    next_[i] += ran * children_.size();
    r_.programs += ran;
    r_.by_machine[static_cast<unsigned>(c.machine)] += ran;
    const std::uint64_t seed = c.view->seed.load();
    const place machine = c.machine;
    for (std::size_t m = 0; m < p_.machines.size(); ++m) {
      if (p_.machines[m] == c.machine) {
        c.machine = p_.machines[(m + 1) % p_.machines.size()];
        break;
      }
    }
    if (!what.empty() && r_.findings.size() < p_.failures_max) found(seed, machine, what);
    launch(i);
  }
  void found(std::uint64_t seed, place machine, const std::string& what) {
    finding f;
    f.seed = seed;
    f.machine = machine;
    f.what = what;
    f.shrunk = generate(seed, machine, p_.made_of);
    std::fprintf(stderr, "seed %llu on %s: %s\n", static_cast<unsigned long long>(seed),
                 place_name(machine), what.c_str());
    if (p_.shrinks) shrink(f, p_);
    f.printed = print(f.shrunk);
    r_.findings.push_back(f);
  }

  const plan& p_;
  double start_;
  double until_;
  std::vector<child> children_;
  std::vector<std::uint64_t> next_;
  std::uint64_t started_ = 0;
  report r_;
};

}  // namespace

std::string run_alone(const program& p, double hang_seconds) {
  static window* const view = make_window();
  view->failed.store(0);
  limits l;
  l.spin_limit_ns = static_cast<std::int64_t>(hang_seconds * 0.4e9);
  const pid_t pid = start(*view, [&] {
    const int quiet = ::open("/dev/null", O_WRONLY);
    if (quiet >= 0) dup2(quiet, STDERR_FILENO);
    leave(*view, run_program(p, l));
  });
  await_end({pid}, static_cast<int>(hang_seconds * 1000));
  int how = 0;
  if (waitpid(pid, &how, WNOHANG) != pid) return bury(pid, *view);
  if (how == 0) return "";
  return view->failed.load() != 0 ? view->text : end_text(how);
}

report exercise_all(const plan& p) {
  return driver(p).all();
}

}  // namespace lev::exercise
