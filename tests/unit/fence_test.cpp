// Tests of the heavy fence where the system takes back what it allowed.
#include <gtest/gtest.h>

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
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

TEST(fence_death_test, one_that_is_taken_back_ends_the_program) {
  if (!asymmetric_fences()) GTEST_SKIP() << "there is none here";
  heavy_fence();
  const auto go_on = [] {
    if (!forbid()) std::abort();
    heavy_fence();
    std::_Exit(0);
  };
  EXPECT_EXIT(go_on(), testing::KilledBySignal(SIGABRT), "refuses membarrier.*allow it");
}

}  // namespace
}  // namespace lev
