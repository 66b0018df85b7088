// Trying libraries, all of them in the order in which workers load them:
//
//   1. A process loads one after the other, except those that were refused before. Before each it
//      writes down which one it is, in memory that the zygote sees.
//   2. If it ends early, or says that it has more than one thread, or takes too long, the library
//      that it had come to is refused. Go on with 1: others may be wrong, too.
//   3. When it has come to the end, all others are fine.
#include "machines/processes/trial.hpp"

#include "base/numbers.hpp"
#include "machines/processes/confine.hpp"
#include "machines/processes/output.hpp"
#include "machines/processes/poll_until.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace lev::processes {

namespace {

constexpr int load_ms_max = 10'000;  // all of them together

// How far the process has come.
struct progress {
  // Written by the process, read by the zygote after its end: the library it loads, and whether it
  // has come to load one at all.
  volatile std::uint32_t library = 0;
  volatile bool has_begun = false;
  volatile bool has_threads = false;
};

struct trial {
  const book& libraries;
  const verdicts& known;
  std::uint32_t count;
  progress& so_far;
};

[[noreturn]] void load_in_turn(const trial& t) noexcept {
  drop_output();
  for (std::uint32_t i = 0; i < t.count; ++i) {
    if (i < t.known.size() && !t.known[i].empty()) continue;
    t.so_far.library = i;
    t.so_far.has_begun = true;
    dlopen(t.libraries.libraries[i], RTLD_NOW | RTLD_LOCAL);  // the worker reports a failure
    if (is_alone()) continue;
    t.so_far.has_threads = true;
    _exit(0);
  }
  t.so_far.library = t.count;
  _exit(0);
}

const char* last_part(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// The status of waitpid(), or one of those below.
constexpr int took_too_long = -1;
constexpr int host_is_gone = -2;

int await_end(pid_t pid, int pidfd, int host) noexcept {
  pollfd watched[2] = {{pidfd, POLLIN, 0}, {host, 0, 0}};  // a socket's end is always reported
  const int ready = poll_until(watched, in_ms(load_ms_max));
  const bool has_ended = watched[0].revents != 0;
  if (!has_ended) kill(pid, SIGKILL);
  const int how = wait_for_end(pid);
  if (has_ended) return how;
  return ready == 0 ? took_too_long : host_is_gone;
}

std::string refusal(const trial& t, int how) {
  const char* path = t.libraries.libraries[t.so_far.library];
  LEV_ASSERT(how != host_is_gone);
  if (t.so_far.has_threads) return refusal_for_threads(path);
  char text[200];
  if (how == took_too_long) {
    std::snprintf(text, sizeof text, "%.60s is not loaded after %d s; use isolation::crash",
                  last_part(path), load_ms_max / 1000);
  } else {
    std::snprintf(text, sizeof text,
                  "%.60s ends its process while it is loaded (%s %d); mend its constructors",
                  last_part(path), WIFSIGNALED(how) ? "signal" : "exit code",
                  WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
  }
  return text;
}

}  // namespace

std::string refusal_for_threads(const char* path) {
  char text[220];
  std::snprintf(text, sizeof text,
                "%.60s starts threads while it is loaded, and confined workers must have none: "
                "keep it from that (OPENBLAS_NUM_THREADS=1 and the like), or use isolation::crash",
                last_part(path));
  return text;
}

void try_libraries(const book& b, const introduction& about, const fork_hooks& hooks, int host,
                   verdicts& known) {
  // Pairs with library_number().
  const std::uint32_t count = b.library_count.load(memory_order_acquire);
  LEV_ASSERT(count <= book::libraries_max);
  if (known.size() >= count) return;
  void* page =
      mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  verdicts found = known;
  for (bool goes_on = true; goes_on;) {
    auto& so_far = *new (page) progress;
    const trial t{b, found, count, so_far};
    pid_t pid = 0;
    int pidfd = fork_worker(hooks, about, &pid);
    if (pid == 0) {
      leave_group();
      load_in_turn(t);
    }
    if (pidfd < 0) break;
    const int how = await_end(pid, pidfd, host);
    close_file(&pidfd);
    goes_on = so_far.library < count;
    if (how == host_is_gone || (goes_on && !so_far.has_begun)) break;
    found.resize(larger<std::size_t>(found.size(), goes_on ? so_far.library + 1 : count));
    if (goes_on) found[so_far.library] = refusal(t, how);
    if (!goes_on) known = std::move(found);
  }
  munmap(page, sizeof(progress));
}

}  // namespace lev::processes
