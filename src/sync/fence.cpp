// membarrier(2), private expedited; see fence.hpp.
#include "sync/fence.hpp"

#include "base/sanitizer.hpp"
#include "sync/futex.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

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

// For when the system takes back what it allowed, as to a program that forbids itself system calls
// once it has started. Other threads rely on the fence by now, and pay for none of their own. So
// the caller sleeps until all that they wrote before must have come out: from a core that runs a
// thread within microseconds, and from one that has left it, when it did, as the caller's own. A
// fence comes before a sleep, which has the time.
static void wait_for_others() noexcept {
  constexpr std::uint64_t enough_ns = 1'000'000;  // a thousand times what a core needs
  // Written by nobody; read by the caller. Publishes nothing.
  static const std::atomic<std::uint32_t> never_changes{0};
  sleep_while(never_changes, 0, monotonic_ns() + enough_ns, sleepers::here);
}

// A process that was restored from a checkpoint is registered no more.
void heavy_fence() noexcept {
  if (!asymmetric_fences() || interrupt_others()) return;
  if (!register_process() || !interrupt_others()) wait_for_others();
}

}  // namespace lev
