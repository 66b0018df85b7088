// How zygotes of every kind fork a worker, how the new process begins, and what its end says.
#include "base/kernel_numbers.hpp"
#include "base/signal_name.hpp"
#include "machines/processes/zygote.hpp"
#include "share/faults.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace lev::processes {

namespace {

void limit_if_asked(int what, std::uint64_t most) noexcept {
  if (most == 0) return;
  const rlimit value{most, most};
  setrlimit(static_cast<__rlimit_resource_t>(what), &value);
}

}  // namespace

int listen_for_deaths() noexcept {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  if (sigprocmask(SIG_SETMASK, &children, nullptr) != 0) return -1;
  std::signal(SIGCHLD, SIG_DFL);
  return fault_at("zygote.signalfd") ? -1 : signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

int fork_worker(const fork_hooks& hooks, const introduction& about, pid_t* pid) noexcept {
  std::fflush(nullptr);  // or the child would write it again
  const pid_t parent = getpid();
  if (hooks.before_fork != nullptr) hooks.before_fork();
  *pid = fault_at("zygote.fork") ? -1 : fork();
  int code = errno;
  if (*pid == 0) {
    if (hooks.in_worker != nullptr) hooks.in_worker();
    call_at_end(hooks.at_end);
    become_worker(about, parent);
    return -1;
  }
  if (hooks.after_fork != nullptr) hooks.after_fork();
  fault_at("zygote.forked");
  int pidfd = -1;
  if (*pid > 0 && !fault_at("zygote.pidfd_open")) {
    pidfd = static_cast<int>(syscall(kernel::pidfd_open, *pid, 0));
    code = errno;
  }
  LEV_ASSERT(pidfd < 0 || *pid > 0);
  if (*pid > 0 && pidfd < 0) {  // no process could wait for its death
    kill(*pid, SIGKILL);
    wait_for_end(*pid);
  }
  errno = code;
  return pidfd;
}

constinit bool is_forked_by_task = false;

void become_worker(const introduction& about, pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_NAME, "leveret-worker");
  pthread_atfork(nullptr, nullptr, [] { is_forked_by_task = true; });
  limit_if_asked(RLIMIT_DATA, about.data_bytes_max);
  limit_if_asked(RLIMIT_CPU, about.cpu_seconds_max);
}

void leave_group() noexcept {
  setpgid(0, 0);
}

void keep_from_forks(std::uintptr_t begin, std::size_t bytes) noexcept {
  madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTFORK);
}

void explain(int how, bool is_confined, remote_death& d) noexcept {
  d.how = how;
  if (how == -1) {
    std::snprintf(d.text, sizeof d.text, "its process was gone");
  } else if (WIFSIGNALED(how)) {
    const int number = WTERMSIG(how);
    d.task_code = -number;
    d.is_violation = is_confined && number == SIGSYS;  // the call filter's
    std::snprintf(d.text, sizeof d.text, "signal %d (SIG%s)", number, signal_name(number));
  } else {
    d.task_code = WEXITSTATUS(how);
    std::snprintf(d.text, sizeof d.text, "it called exit(%d)", d.task_code);
  }
}

bool has_ended(pid_t child, int how) noexcept {
  if (WIFEXITED(how) || WIFSIGNALED(how)) return true;
  if (WIFSTOPPED(how)) ptrace(PTRACE_DETACH, child, nullptr, WSTOPSIG(how));
  return false;
}

int wait_for_end(pid_t child) noexcept {
  int how = 0;
  for (;;) {
    const pid_t got = waitpid(child, &how, 0);
    if (got < 0 && errno != EINTR) return 0;
    if (got == child && has_ended(child, how)) return how;
  }
}

}  // namespace lev::processes
