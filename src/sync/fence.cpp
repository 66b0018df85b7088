// membarrier(2), private expedited; see fence.hpp.
#include "sync/fence.hpp"

#include "base/assert.hpp"
#include "base/sanitizer.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lev {

namespace {
bool register_process() noexcept {
#if defined(LEV_UNDER_TSAN)
  return false;  // ThreadSanitizer sees locked instructions, not the kernel's barriers
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}
}  // namespace

bool asymmetric_fences() noexcept {
  static const bool works = register_process();
  return works;
}

static bool interrupt_others() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// A process that was restored from a checkpoint is registered no more. Without the fence tasks
// would lie unseen while workers sleep.
void heavy_fence() noexcept {
  if (!asymmetric_fences() || interrupt_others()) return;
  const bool works = register_process() && interrupt_others();
  LEV_EXPECTS(works,
              "the system refuses membarrier(), which it allowed when the first runtime was "
              "opened; allow it to the program, or open runtimes after it was forbidden");
}

}  // namespace lev
