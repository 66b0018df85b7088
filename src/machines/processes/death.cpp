// Decodes waitpid()'s status of a worker; see death.hpp.
#include "machines/processes/death.hpp"

#include "base/signal_name.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace lev::processes {

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
