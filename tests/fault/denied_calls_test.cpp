// A host that forbids itself a system call (seccomp), and with itself the zygote that it starts:
// opening the runtime, or a task, ends with an error that says so. No process waits for ever, or
// for what it can never hear of, and none is left.
#include <gtest/gtest.h>
#include <leveret/leveret.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <string>

#include "fault/family.hpp"
#include "support/environment.hpp"

namespace lev::test {
namespace {

constexpr unsigned seconds_max = 15;  // a zygote that does not answer is waited for longer
constexpr std::int64_t wait_ns = 10'000'000'000;

const auto denied_crash = define("denied.crash", [] { raise(SIGKILL); });

void deny(unsigned call) {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof steps / sizeof steps[0], steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    _exit(77);
}

struct denied {
  const char* name;
  unsigned call;
  bool is_after;  // the runtime has been opened
  bool is_shared;
};

// 0: the host was told.
int be_host(const denied& d) {
  alarm(seconds_max);
  const std::string name = "denied-" + std::to_string(getpid());
  config c;
  c.machine = "processes";
  c.workers = 1;
  if (d.is_shared) c.processes.pool = name.c_str();
  if (!d.is_after) deny(d.call);
  try {
    runtime r(c);
    if (!d.is_after) return 1;
    deny(d.call);
    return r.submit(denied_crash).wait_outcome(wait_ns).code == status::pool_down ? 0 : 2;
  } catch (const error& e) {
    return !d.is_after && e.code() == status::unavailable && e.what()[0] != 0 ? 0 : 3;
  }
}

class denied_call : public testing::TestWithParam<denied> {};

#if defined(SYS_poll)
constexpr unsigned poll_call = SYS_poll;
#else
constexpr unsigned poll_call = SYS_ppoll;
#endif
INSTANTIATE_TEST_SUITE_P(
    processes, denied_call,
    testing::Values(denied{"poll", poll_call, false, false},
                    denied{"poll_of_a_pool", poll_call, false, true},
                    denied{"accept4_of_a_pool", SYS_accept4, false, true},
                    denied{"sigprocmask", SYS_rt_sigprocmask, false, false},
                    denied{"sigprocmask_of_a_pool", SYS_rt_sigprocmask, false, true},
                    denied{"wait4", SYS_wait4, false, false},
                    denied{"wait4_of_a_pool", SYS_wait4, false, true},
                    denied{"sendmsg_later", SYS_sendmsg, true, false},
                    denied{"sendmsg_later_of_a_pool", SYS_sendmsg, true, true}),
    [](const auto& i) { return std::string(i.param.name); });

TEST_P(denied_call, is_told_and_leaves_nothing) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer needs these calls itself";
  adopt_orphans();
  const pid_t host = fork();
  if (host == 0) _exit(be_host(GetParam()));
  int how = 0;
  ASSERT_EQ(waitpid(host, &how, 0), host);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << std::hex << how;
  EXPECT_EQ(orphans_left({}), 0);
}

// No smaller number of workers would do.
TEST(denied_threads, are_told_by_what_the_system_says) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer has threads of its own";
  const pid_t host = fork();
  if (host == 0) {
    deny(SYS_clone);
#if defined(SYS_clone3)
    deny(SYS_clone3);
#endif
    try {
      runtime r;
    } catch (const error& e) {
      const bool is_told = std::string(e.what()).find("thread: Oper") != std::string::npos;
      _exit(e.code() == status::unavailable && is_told ? 0 : 2);
    }
    _exit(1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(host, &how, 0), host);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << std::hex << how;
}

}  // namespace
}  // namespace lev::test
