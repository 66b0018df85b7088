// A host that forks at an odd moment, and what its child does then: one case of those that
// odd_process_test.cpp goes through. Ends with 0, or says what was wrong.
//
//   odd_process MACHINE PLACE MOMENT CHILD ENDING LIFE SEED
//
//   PLACE   static, local                   where the runtime is
//   MOMENT  idle, under_way, waiting, submitting, opening (another runtime, which closes then),
//           body, callback, bulk
//   CHILD   nothing, calls, destroys, opens what the child does first
//   ENDING  exit, quick, return, abort, exec
//   LIFE    ends, lives                     whether the child lives until its parent is done
#include <leveret/leveret.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int limit_ms = 30'000;
constexpr std::int64_t limit_ns = std::int64_t{limit_ms} * 1'000'000;
constexpr int tasks = 64;

struct plan {
  std::string machine, place, moment, child, ending, life;
  unsigned seed = 1;
};
plan now;
pid_t parent = 0;

// Words by which parent and child tell each other how far they are, in memory that both have.
struct shared_words {
  std::atomic<int> child_is_done;  // with its calls
  std::atomic<pid_t> child;
};
shared_words* words = nullptr;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s %s %s %s %s %s %u: %s\n", now.machine.c_str(), now.place.c_str(),
               now.moment.c_str(), now.child.c_str(), now.ending.c_str(), now.life.c_str(),
               now.seed, what);
  if (words != nullptr && words->child > 0 && words->child != getpid()) kill(words->child, SIGKILL);
  _exit(3);
}
void expect(bool is_right, const char* what) {
  if (!is_right) fail(what);
}

void pass_time(unsigned us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

const auto add =
    lev::define("odd.add", [](std::uint64_t a, std::uint64_t us, lev::result<std::uint64_t> sum) {
      pass_time(static_cast<unsigned>(us));
      sum = a + 1;
    });

lev::config settings(const std::string& machine) {
  lev::config c;
  c.machine = machine == "pool" ? "processes" : machine.c_str();
  static std::string name;
  if (machine == "pool") {
    name = "odd-" + std::to_string(getpid());
    c.processes.pool = name.c_str();
  }
  c.workers = 2;
  c.tickets = 256;
  return c;
}

// Shared memory of the parent, which the child frees as well.
struct shared_data {
  lev::shared_array<std::uint64_t> words{std::size_t{2}
                                         << 20};  // so large that its memory is given back
  shared_data() {
    for (std::uint64_t& w : words) w = 7;
  }
  bool is_whole() const {
    for (std::uint64_t w : words) {
      if (w != 7) return false;
    }
    return true;
  }
};

// A child that is forked where a static runtime is destroys that by exit().
lev::runtime& static_runtime() {
  static shared_data data;
  static lev::runtime r(settings(now.machine));
  return r;
}

lev::status status_of(void (*call)(lev::runtime&), lev::runtime& r) {
  try {
    call(r);
  } catch (const lev::error& e) {
    return e.code();
  }
  return lev::status::ok;
}

// Each call ends at once, with an answer that says so.
void call_in(lev::runtime& r, lev::ticket& held) {
  const auto submit = [](lev::runtime& home) {
    std::uint64_t sum = 0;
    home.submit(add, std::uint64_t{1}, std::uint64_t{0}, sum).wait();
  };
  expect(status_of(submit, r) == lev::status::closed, "child: submit");
  const auto loop = [](lev::runtime& home) { home.parallel_for({0, 100}, [](lev::range) {}); };
  const lev::status looped = status_of(loop, r);
  expect(looped == lev::status::closed || looped == lev::status::not_supported, "child: loop");
  expect(r.wait_for_completion().code == lev::status::closed, "child: wait_for_completion");
  expect(r.set_filters(nullptr, 0) == lev::status::closed, "child: set_filters");
  lev::mutex_id m = 0;
  expect(r.make_mutex(&m) == lev::status::closed, "child: make_mutex");
  r.begin_submit();
  r.end_submit();
  r.count();
  if (held) {
    expect(held.done(), "child: done");
    held.cancel();
    expect(held.wait_outcome().code == lev::status::closed, "child: wait");
  }
  expect(r.close() == lev::status::ok, "child: close");
}

void compute(const std::string& machine) {
  lev::runtime own(settings(machine));
  lev::shared_array<std::uint64_t> sums(tasks);
  std::vector<lev::ticket> all;
  for (std::uint64_t i = 0; i < tasks; ++i)
    all.push_back(own.submit(add, i, std::uint64_t{0}, sums[i]));
  expect(lev::wait_all(all.data(), all.size(), limit_ns).code == lev::status::ok, "own runtime");
  for (std::uint64_t i = 0; i < tasks; ++i) expect(sums[i] == i + 1, "own runtime: a sum");
}

void act(lev::runtime* r, lev::ticket& held) {
  if (r == nullptr) return;
  if (now.child == "calls") call_in(*r, held);
  if (now.child == "destroys") {
    held.release();
    expect(r->close() == lev::status::ok, "child: close");
  }
  if (now.child == "opens") compute(now.seed % 2 == 0 ? "threads" : now.machine);
}

// The child's life, from its fork() to its end.
[[noreturn]] void live(lev::runtime* r, lev::ticket& held) {
  alarm(60);
  act(r, held);
  words->child_is_done = 1;
  while (now.life == "lives") pause();
  if (now.ending == "quick") _exit(0);
  if (now.ending == "abort") std::abort();
  if (now.ending == "exec") {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(127);
  }
  std::exit(0);
}

pid_t fork_child(lev::runtime* r, lev::ticket& held) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) live(r, held);
  words->child = child;
  return child;
}

// In the middle of the runtime's own code: the child mostly comes back from there.
std::atomic<lev::runtime*> home{nullptr};
std::atomic<bool> has_forked{false};
void fork_inside() {
  if (has_forked.exchange(true)) return;
  lev::ticket none;
  if (now.ending != "return") {
    fork_child(home, none);
    return;
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    act(home, none);
    words->child_is_done = 1;
    return;
  }
  words->child = child;
}
const auto forks = lev::define("odd.forks", [] { fork_inside(); });

void work_on(lev::runtime& r) {
  static std::uint64_t sums[tasks];
  std::vector<lev::ticket> all;
  for (std::uint64_t i = 0; i < tasks; ++i)
    all.push_back(r.submit(add, i, std::uint64_t{now.seed % 50}, sums[i]));
  expect(lev::wait_all(all.data(), all.size(), limit_ns).code == lev::status::ok, "a task's end");
  for (std::uint64_t i = 0; i < tasks; ++i) expect(sums[i] == i + 1, "a sum");
}

// Forks somewhen while the caller does `what`.
template <class What>
void fork_meanwhile(lev::runtime* r, What&& what) {
  std::atomic<bool> is_begun{false};
  std::thread other([&] {
    lev::ticket none;
    while (!is_begun) std::this_thread::yield();
    pass_time(now.moment == "opening" ? now.seed * 37 % 20'000 : now.seed % 400);
    fork_child(r, none);
  });
  is_begun = true;
  what();
  other.join();
}

void fork_in_bulk(lev::runtime& r) {
  static std::uint64_t sum = 0;
  try {
    r.submit_bulk(8, [&](std::size_t i, lev::descriptor& d) {
       if (i == 4) fork_inside();
       d = lev::pack(add, std::uint64_t{1}, std::uint64_t{0}, sum);
     }).wait();
  } catch (const lev::error& e) {
    expect(getpid() != parent && e.code() == lev::status::closed, "bulk");
    std::exit(0);
  }
}

void fork_in_callback(lev::runtime& r) {
  static std::uint64_t sum = 0;
  lev::ticket t = r.submit(add, std::uint64_t{1}, std::uint64_t{2000}, sum);
  t.then([](void*) { fork_inside(); }, nullptr);
  if (getpid() != parent) return;  // the task had ended: the callback was called by then()
  t.wait();
  expect(r.wait_for_completion(limit_ns).code == lev::status::ok, "callback");
}

void fork_at_the_moment(lev::runtime& r) {
  lev::ticket held;
  std::uint64_t sum = 0;
  if (now.moment == "under_way") held = r.submit(add, std::uint64_t{1}, std::uint64_t{20'000}, sum);
  if (now.moment == "idle" || now.moment == "under_way") {
    fork_child(&r, held);
    if (held)
      expect(held.wait_outcome(limit_ns).code == lev::status::ok && sum == 2, "the task under way");
  } else if (now.moment == "waiting") {
    fork_meanwhile(&r, [&] { r.submit(add, std::uint64_t{1}, std::uint64_t{500}, sum).wait(); });
  } else if (now.moment == "submitting") {
    fork_meanwhile(&r, [&] { work_on(r); });
  } else if (now.moment == "opening") {
    fork_meanwhile(&r, [] { compute(now.machine); });
  } else if (now.moment == "body") {
    r.submit(forks).wait();
  } else if (now.moment == "callback") {
    fork_in_callback(r);
  } else if (now.moment == "bulk") {
    fork_in_bulk(r);
  }
}

// Nothing of the parent's is changed, neither by a child that lives nor by one that has ended.
void finish_parent(lev::runtime& r) {
  const pid_t child = words->child;
  const int file = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd over{file, POLLIN, 0};
  if (now.life == "lives" && now.ending != "return") {
    const auto begin = std::chrono::steady_clock::now();
    while (words->child_is_done == 0 && poll(&over, 1, 1) == 0)
      expect(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(limit_ms),
             "the child hangs");
  } else {
    expect(poll(&over, 1, limit_ms) == 1, "the child hangs");
  }
  work_on(r);
  const lev::counters n = r.count();
  expect(n.deaths == 0 && n.reruns == 0, "deaths");
  expect(r.close(limit_ns) == lev::status::ok, "close");
  if (now.life == "lives") kill(child, SIGKILL);
  int how = 0;
  expect(waitpid(child, &how, 0) == child, "waitpid");
  if (now.life == "lives") return;
  const bool is_right = now.ending == "abort" ? WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT
                                              : WIFEXITED(how) && WEXITSTATUS(how) == 0;
  expect(is_right, "the child's end");
}

}  // namespace

// With AddressSanitizer a child would report what only the stacks of its parent's other threads
// lead to.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

int main(int count, char** arguments) {
  if (count != 8) return 2;
  now = {arguments[1],
         arguments[2],
         arguments[3],
         arguments[4],
         arguments[5],
         arguments[6],
         static_cast<unsigned>(std::atoi(arguments[7]))};
  alarm(100);
  parent = getpid();
  void* page = mmap(nullptr, sizeof(shared_words), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  words = new (page) shared_words{};
  const auto data = std::make_unique<shared_data>();
  std::unique_ptr<lev::runtime> local;
  if (now.place == "local") local = std::make_unique<lev::runtime>(settings(now.machine));
  lev::runtime& r = local != nullptr ? *local : static_runtime();
  home = &r;
  work_on(r);
  fork_at_the_moment(r);
  if (getpid() != parent) return 0;
  finish_parent(r);
  expect(data->is_whole(), "shared memory was changed");
  return 0;
}
