// membarrier(2), private expedited; see fence.hpp.
#include "sync/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lev {

namespace {
bool register_process() noexcept {
#if defined(__SANITIZE_THREAD__)
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

void heavy_fence() noexcept {
  if (asymmetric_fences()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

}  // namespace lev
