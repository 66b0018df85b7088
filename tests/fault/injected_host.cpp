// The life of a host to which something goes wrong: it opens a runtime, runs tasks of every kind,
// lets a worker and the zygote or the keeper die, closes, looks for what is left, and does it all
// once more.
#include "fault/injected_host.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "fault/hostile.hpp"

namespace lev::test {

namespace {

constexpr std::int64_t task_limit_ns = 8'000'000'000;

struct wrong {
  std::string text;
};
void require(bool is_true, const std::string& text) {
  if (!is_true) throw wrong{text};
}

int open_files() {
  DIR* d = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(d) != nullptr) ++count;
  closedir(d);
  return count;
}

int lane_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("leveret-lane") != std::string::npos ||
             line.find("leveret-board") != std::string::npos ||
             line.find("leveret-pool") != std::string::npos;
  }
  return count;
}

// Lets a stopped worker or zygote go on after a while; the test does so for the host.
class continuer {
 public:
  explicit continuer(fault_plan& plan) : plan_(plan), thread_([this] { run(); }) {}
  ~continuer() {
    is_over_.store(true);
    thread_.join();
  }
  continuer(continuer&&) = delete;

 private:
  static bool is_stopped(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(") ");
    return end != std::string::npos && text[end + 2] == 'T';
  }
  void run() {
    constexpr int tick_ms = 1;
    int stopped_ms = 0;
    while (!is_over_.load()) {
      poll(nullptr, 0, tick_ms);
      const int pid = plan_.stopped.load(memory_order_relaxed);
      if (pid == 0 || !is_stopped(pid) || ++stopped_ms < fault_plan::delay_ms) continue;
      kill(pid, SIGCONT);
      return;
    }
  }

  fault_plan& plan_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

const auto add_seven = define("injected.add_seven", [](inout<std::uint64_t> x) {
  for (std::uint64_t& v : x) v += 7;
});
const auto parent_of = define("injected.parent", [](result<int> pid) { pid = getppid(); });
struct dying {
  int* times;
};
const auto dies_once = define("injected.dies_once", [](dying d, result<int> n) {
  if (__atomic_add_fetch(d.times, 1, __ATOMIC_SEQ_CST) == 1) raise(SIGKILL);
  n = *d.times;
});
const auto hangs = define("injected.hangs", [](dying d) {
  __atomic_store_n(d.times, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
});
procedure<void(std::int64_t, result<std::int64_t>)> triple() {
  void* library = dlopen(FAULT_LIBRARY, RTLD_NOW);
  require(library != nullptr, "the library cannot be opened");
  static const procedure_id id =
      define_raw<std::int64_t, result<std::int64_t>>(
          "injected.triple", reinterpret_cast<body>(dlsym(library, "fault_triple")))
          .id;
  return {id};
}

class injected_host {
 public:
  injected_host(injected_report& report, fault_plan* of_workers, const injected_fault& what)
      : report_(report),
        of_workers_(of_workers),
        what_(what),
        may_fail_(what.action == fault_action::fail) {}

  // The first life meets the fault, the second must find everything as ever.
  void run() {
    const int files = open_files();
    live(true);
    may_fail_ = false;
    require_nothing_left(files);
    live(false);
    require_nothing_left(files);
  }

 private:
  fault_plan& plan() { return of_workers_->point == what_.point ? *of_workers_ : report_.of_host; }
  bool has_happened() { return plan().has_happened.load(memory_order_relaxed) != 0; }

  config settings() const {
    config c;
    c.machine = "processes";
    c.workers = 2;
    c.tickets = 64;
    c.host_threads = 4;
    c.wait = wait_policy::park;
    c.spin_ns = 20'000;
    if (what_.is_pool_shared) c.processes.pool = pool_name_.c_str();
    c.processes.task_ns_max =
        15'000'000'000;  // never reached; the service is rung to keep the time
    return c;
  }

  // A runtime; where the fault let it fail, with a sentence that says why, the next one.
  std::unique_ptr<runtime> open() {
    try {
      return std::make_unique<runtime>(settings());
    } catch (const error& e) {
      require(has_happened(), std::string("open failed for no reason: ") + e.what());
      require(std::strlen(e.what()) > 20, std::string("not a clear sentence: ") + e.what());
      require(waitpid(-1, nullptr, WNOHANG) < 0, "a failed open left a child");
      return std::make_unique<runtime>(settings());
    }
  }

  // Right, or refused with a status that says why and nothing done.
  bool is_done(const outcome& o, const char* what) {
    if (o.code == status::ok) return true;
    const bool is_clear = o.code == status::bad_procedure || o.code == status::out_of_memory;
    require(may_fail_ && has_happened() && is_clear,
            std::string(what) + " ended with " + status_name(o.code) + " " + text_of(o));
    return false;
  }
  template <class... Args>
  bool run_one(runtime& r, const char* what, Args&&... args) {
    try {
      ticket t = r.submit(std::forward<Args>(args)...);
      return is_done(t.wait_outcome(task_limit_ns), what);
    } catch (const error& e) {
      outcome o;
      o.code = e.code();
      o.exception = std::current_exception();
      return is_done(o, what);
    }
  }

  void run_copied_tasks(runtime& r) {
    constexpr std::size_t tasks = 24;
    constexpr std::size_t elements = 64;
    std::vector<std::vector<std::uint64_t>> x(tasks, std::vector<std::uint64_t>(elements, 1));
    std::vector<ticket> t(tasks);
    for (std::size_t i = 0; i < tasks; ++i) {
      refusal why;
      t[i] = r.try_submit(pack(add_seven, x[i]), nullptr, &why);
      require(bool{t[i]}, why.message);
    }
    for (std::size_t i = 0; i < tasks; ++i) {
      const bool is_right = is_done(t[i].wait_outcome(task_limit_ns), "a copied task");
      const std::vector<std::uint64_t> expected(elements, is_right ? 8 : 1);
      require(x[i] == expected, "a copied task's output is wrong");
    }
  }

  void run_shared_task(runtime& r) {
    std::unique_ptr<shared_array<std::uint64_t>> x;
    try {
      x = std::make_unique<shared_array<std::uint64_t>>(1000);
    } catch (const error& e) {
      require(may_fail_ && has_happened() && e.code() == status::out_of_memory, e.what());
      x = std::make_unique<shared_array<std::uint64_t>>(1000);
    }
    if (!run_one(r, "a task in shared memory", options(), add_seven, *x)) return;
    for (const std::uint64_t v : *x) require(v == 7, "a shared array is wrong");
  }

  void run_dying_task(runtime& r) {
    const shared_array<int> times(1);
    int n = 0;
    if (run_one(r, "a task that dies once", options(), dies_once, dying{times.data()}, n))
      require(n >= 2, "it did not die");
  }

  void run_endless_task(runtime& r) {
    shared_array<int> begun(1);
    ticket t = r.submit(hangs, dying{begun.data()});
    while (__atomic_load_n(begun.data(), __ATOMIC_SEQ_CST) == 0) poll(nullptr, 0, 1);
    require(t.end() == status::ok, "an endless task is not to be ended");
    require(t.wait_outcome(task_limit_ns).code == status::cancelled, "an endless task goes on");
  }

  void run_library_task(runtime& r) {
    std::int64_t got = 0;
    if (run_one(r, "a library's task", options(), triple(), std::int64_t{5}, got))
      require(got == 15, "a library's task is wrong");
  }

  // Returns when a worker of the next zygote runs tasks: it is there to leave at close(). That
  // zygote's number; 0: the fault kept it from being told.
  int replace_zygote(runtime& r) {
    int old_pid = 0;
    if (!run_one(r, "a task that says its parent", options(), parent_of, old_pid)) return 0;
    kill(old_pid, SIGKILL);
    run_copied_tasks(r);
    int pid = old_pid;
    while ((pid == old_pid || !is_zygote(pid)) &&
           run_one(r, "a task that says its parent", options(), parent_of, pid)) {
    }
    return pid == old_pid ? 0 : pid;
  }

  // A worker whose zygote has died has another parent for a moment.
  bool is_zygote(int pid) const {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::string name = what_.is_pool_shared ? "(leveret-keeper) " : "(leveret-zygote) ";
    const std::size_t at = text.find(name);
    return at != std::string::npos && text[at + name.size()] != 'Z';
  }

  void live(bool is_first) {
    const std::unique_ptr<runtime> r = open();
    if (is_first && what_.phase == fault_phase::when_open) {
      const std::uint32_t passed = plan().hits[what_.point].load(memory_order_relaxed);
      plan().passes.store(passed, memory_order_relaxed);
    }
    run_copied_tasks(*r);
    run_library_task(*r);
    constexpr int idle_ms = 2;  // long enough for workers to fall asleep
    poll(nullptr, 0, idle_ms);
    run_shared_task(*r);
    run_dying_task(*r);
    run_endless_task(*r);
    run_copied_tasks(*r);
    const int zygote = replace_zygote(*r);
    require(r->close(task_limit_ns) == status::ok, "close() hangs");
    const counters n = r->count();
    require(n.submitted == n.completed, "not every task that was submitted has completed");
    // Otherwise the second life may begin while the first one's keeper ends.
    if (std::strcmp(fault_points[what_.point].name, "zygote.end") == 0) await_end(zygote);
  }

  // A keeper comes to its end by itself when it sees that its last host has left.
  void await_end(int zygote) const {
    constexpr int end_ms_max = 10'000;
    for (int ms = 0; zygote != 0 && is_zygote(zygote); ++ms) {
      require(ms < end_ms_max, "the zygote or the keeper does not end");
      poll(nullptr, 0, 1);
    }
  }

  static void require_nothing_left(int files) {
    require(waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD, "a child is left");
    require(open_files() == files, "a file is left open");
    require(lane_mappings() == 0, "a lane or a board is still mapped");
  }

  injected_report& report_;
  fault_plan* of_workers_;
  const injected_fault what_;
  bool may_fail_;
  const std::string pool_name_ = "injected-" + std::to_string(getpid());
};

bool is_host_point(std::uint32_t point) {
  return std::strncmp(fault_points[point].name, "host.", 5) == 0;
}

// A block in shared memory, whose first allocation makes the heap: that may fail once, too.
fault_plan* make_plan(fault_action action) {
  for (int i = 0; i < 2; ++i) {
    if (void* place = shared_allocate(sizeof(fault_plan))) return new (place) fault_plan;
    require(action == fault_action::fail, "no shared memory");
  }
  throw wrong{"no shared memory the second time"};
}

}  // namespace

int run_injected_host(injected_report& report, const injected_fault& what) {
  fault_plan* of_workers = nullptr;
  int code = 0;
  try {
    const std::uint32_t passes = what.phase == fault_phase::at_first ? 0 : fault_plan::never;
    if (is_host_point(what.point)) {
      report.of_host.point = what.point;
      report.of_host.action = what.action;
      report.of_host.passes = passes;
    }
    arm_faults(&report.of_host, nullptr);
    of_workers = make_plan(what.action);
    if (!is_host_point(what.point)) {
      of_workers->point = what.point;
      of_workers->action = what.action;
      of_workers->passes = passes;
    }
    arm_faults(&report.of_host, of_workers);
    const continuer c(*of_workers);
    injected_host(report, of_workers, what).run();
  } catch (const wrong& w) {
    std::snprintf(report.text, sizeof report.text, "%s", w.text.c_str());
    code = 1;
  } catch (const std::exception& e) {
    std::snprintf(report.text, sizeof report.text, "an exception: %s", e.what());
    code = 1;
  }
  report.has_happened = report.of_host.has_happened;
  if (of_workers == nullptr) return code;
  report.has_happened |= of_workers->has_happened;
  for (std::uint32_t i = 0; i < fault_point_count; ++i) report.worker_hits[i] = of_workers->hits[i];
  return code;
}

}  // namespace lev::test
