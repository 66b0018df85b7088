// Tests of the heavy fence where the system takes back what it allowed.
#include <gtest/gtest.h>

#include <leveret/leveret.hpp>

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "sync/fence.hpp"

namespace lev {
namespace {

// Every membarrier() of this thread is refused from here on.
bool forbid() noexcept {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

const auto finds_answer = define("fence.finds_answer", [](result<int> answer) { answer = 42; });

// A program may forbid itself what it does not need when it has started. It goes on: the host
// sleeps in each wait, and its fence comes first.
TEST(fence_death_test, one_that_is_taken_back_is_done_without) {
  if (!asymmetric_fences()) GTEST_SKIP() << "there is none here";
  const auto go_on = [] {
    config c;
    c.workers = 1;
    c.wait = wait_policy::park;
    c.spin_ns = 0;
    runtime r(c);
    if (!forbid()) std::abort();
    heavy_fence();
    int sum = 0;
    for (int i = 0, answer = 0; i < 20; ++i, sum += answer) r.submit(finds_answer, answer).wait();
    const bool is_right = sum == 20 * 42 && r.close() == status::ok;
    std::_Exit(is_right ? 0 : 1);
  };
  EXPECT_EXIT(go_on(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lev
