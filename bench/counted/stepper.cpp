// Counts the instructions of an empty task on `processes`, one by one.
//
//   1. A child opens the runtime and says which process its worker is, and the stepper holds it.
//   2. The host submits two tasks, and is stepped from before to after. The worker stops in the
//      body of the first.
//   3. The worker is stepped from there to the body of the second, and as far again, so that the
//      second has ended; then it runs on.
//   4. The host waits for both, and is stepped from before to after.
//
// Nobody polls while it is stepped: the worker has its second task, and the host its ends.
//
// A walk is a list of the instructions of some rounds, as "3 submit leveret-counted 0x5e2a0": the
// round, the part, the file that it is in, and where, as addr2line and objdump want it.
#include "counted/cases.hpp"
#include "remote/remote_crew.hpp"
#include "runtime/runtime_state.hpp"

#include <leveret/leveret.hpp>
#include <leveret/shared.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#endif

namespace bench::counted {

#if defined(__x86_64__)

namespace {

constexpr double endless = 100'000;  // instructions

enum mark : long { worker_is = 1, begin, end, over };

// Stops a process that is stepped or held, and says why.
[[gnu::always_inline]] inline void tell(long what, long value = 0) {
  asm volatile("int3" : : "a"(what), "b"(value) : "memory");
}

void tell_number(lev::out<int> number) {
  number[0] = getpid();
}
// The body is its own mark.
void stop_here() {
  tell(begin);
}

// The host: a child of the stepper.
[[noreturn]] void be_host(unsigned rounds) try {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  lev::config settings;
  settings.machine = "processes";
  settings.workers = 1;
  settings.spin_ns = 4'000'000'000;
  const auto number_of = lev::define("bench.counted_number", tell_number);
  const auto stop = lev::define("bench.counted_stop", stop_here);
  lev::runtime runtime(settings);
  lev::shared_array<int> number(1);
  runtime.submit(number_of, number).wait();
  auto& core = *runtime.state();
  auto& crew = static_cast<lev::remote_crew&>(*core.crew);
  crew.remote->watch();  // so that no end is told to the service
  crew.tender_of(*lev::detail::here(core)).is_watching = true;
  tell(worker_is, number.data()[0]);
  for (unsigned i = 0; i < rounds; ++i) {
    lev::ticket tickets[2];
    tell(begin);
    for (lev::ticket& t : tickets) t = runtime.submit(stop);
    tell(end);
    tell(begin);
    lev::wait_all(tickets, 2);
    tell(end);
  }
  tell(over);
  _exit(0);
} catch (const std::exception& e) {
  std::fprintf(stderr, "counting on processes: %s\n", e.what());
  _exit(1);
}

struct stopped {
  long what = 0;
  long value = 0;
};

// Where the files lie that a process has mapped.
class mapped_files {
 public:
  explicit mapped_files(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string text; std::getline(maps, text);) {
      std::istringstream words(text);
      std::string range, rights, offset, device, node, path;
      words >> range >> rights >> offset >> device >> node >> path;
      const std::size_t dash = range.find('-');
      const std::uint64_t begin = std::stoull(range, nullptr, 16);
      // The first part of a file is where its addresses begin.
      if (parts_.empty() || parts_.back().path != path) origin_ = begin;
      parts_.push_back({begin, std::stoull(range.substr(dash + 1), nullptr, 16), origin_, path});
    }
  }
  void print(std::uint64_t address) const {
    for (const part& p : parts_) {
      if (address < p.begin || address >= p.end) continue;
      const std::string name = p.path.substr(p.path.rfind('/') + 1);
      std::printf("%s %#llx\n", name.c_str(), static_cast<unsigned long long>(address - p.origin));
    }
  }

 private:
  struct part {
    std::uint64_t begin, end, origin;
    std::string path;
  };
  std::vector<part> parts_;
  std::uint64_t origin_ = 0;
};

class stepper {
 public:
  stepper(pid_t host, bool prints) : host_(host), prints_(prints) {}
  ~stepper() {
    if (worker_ != 0) ptrace(PTRACE_DETACH, worker_, nullptr, nullptr);
    kill(host_, SIGKILL);
    waitpid(host_, nullptr, 0);
  }
  stepper(stepper&&) = delete;

  process_count count() {
    std::vector<double> host, worker;
    for (;;) {
      const stopped s = run_to_mark(host_);
      if (s.what == over) break;
      if (s.what == worker_is) {
        hold(static_cast<pid_t>(s.value));
      } else {
        const double submits = step_to_mark(host_, "submit");
        await_mark(worker_);
        worker.push_back(step_to_mark(worker_, "worker"));
        for (double i = 0; i < worker.back(); ++i) step(worker_);
        resume(worker_);
        run_to_mark(host_);
        host.push_back((submits + step_to_mark(host_, "wait")) / 2);
        ++round_;
      }
    }
    return {middle(host), middle(worker)};
  }

 private:
  static double middle(std::vector<double>& all) {
    if (all.empty()) throw std::runtime_error("nothing was counted");
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
  static void resume(pid_t which, int signal = 0) {
    if (ptrace(PTRACE_CONT, which, nullptr, signal) != 0) refuse();
  }
  [[noreturn]] static void refuse() {
    throw std::runtime_error("no process may be stepped here: ptrace() is refused");
  }
  void hold(pid_t worker) {
    if (ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) != 0) refuse();
    worker_ = worker;
  }
  // False: it stopped for something else than a step or a mark, of which it is told.
  static bool await_trap(pid_t which) {
    int how = 0;
    if (waitpid(which, &how, __WALL) != which || !WIFSTOPPED(how))
      throw std::runtime_error("a process that was counted has ended");
    if (WSTOPSIG(how) == SIGTRAP) return true;
    resume(which, WSTOPSIG(how));
    return false;
  }
  static stopped await_mark(pid_t which) {
    while (!await_trap(which)) {
    }
    user_regs_struct now;
    if (ptrace(PTRACE_GETREGS, which, nullptr, &now) != 0) refuse();
    return {static_cast<long>(now.rax), static_cast<long>(now.rbx)};
  }
  static stopped run_to_mark(pid_t which) {
    resume(which);
    return await_mark(which);
  }
  // Whether it came to a mark: then the kernel says who raised the signal.
  static bool step(pid_t which) {
    if (ptrace(PTRACE_SINGLESTEP, which, nullptr, nullptr) != 0) refuse();
    while (!await_trap(which)) {
    }
    siginfo_t why;
    if (ptrace(PTRACE_GETSIGINFO, which, nullptr, &why) != 0) refuse();
    return why.si_code == SI_KERNEL;
  }
  static std::uint64_t place_of(pid_t which) {
    user_regs_struct now;
    if (ptrace(PTRACE_GETREGS, which, nullptr, &now) != 0) refuse();
    return now.rip;
  }
  double step_to_mark(pid_t which, const char* part) const {
    std::vector<std::uint64_t> walk;
    double count = 0;
    for (;; ++count) {
      if (count == endless) throw std::overflow_error("it polls for what does not come");
      if (prints_) walk.push_back(place_of(which));
      if (step(which)) break;
    }
    if (!prints_) return count;
    walk.pop_back();  // the mark
    const mapped_files files(which);
    for (const std::uint64_t place : walk) {
      std::printf("%u %s ", round_, part);
      files.print(place);
    }
    return count;
  }

  pid_t host_;
  bool prints_;
  pid_t worker_ = 0;
  unsigned round_ = 0;
};

}  // namespace

process_count count_processes(unsigned rounds, bool prints) {
  const pid_t host = fork();
  if (host < 0) throw std::runtime_error("fork() does not work");
  if (host == 0) be_host(rounds);
  int how = 0;
  if (waitpid(host, &how, 0) != host || !WIFSTOPPED(how))
    throw std::runtime_error("the machine processes, or ptrace(), does not work here");
  try {
    return stepper(host, prints).count();
  } catch (const std::overflow_error&) {
    return {endless, 0};  // a count like others, above every budget
  }
}

#else

process_count count_processes(unsigned, bool) {
  throw std::runtime_error("worker processes are counted on x86-64 only");
}

#endif

}  // namespace bench::counted
