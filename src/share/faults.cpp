// Makes the plan's fault happen at its point.
#include "share/faults.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace lev::faults {

bool act_at(fault_plan& plan, std::uint32_t point) noexcept {
  const int before = errno;
  const std::uint32_t earlier = plan.hits[point].fetch_add(1, memory_order_relaxed);
  if (point != plan.point || earlier < plan.passes.load(memory_order_relaxed) ||
      (plan.has_happened.exchange(1, memory_order_relaxed) != 0 && !plan.is_lasting))
    return false;
  switch (plan.action) {
    case fault_action::none:
      break;
    case fault_action::kill:
      kill(getpid(), SIGKILL);
      break;
    case fault_action::stop:
      plan.stopped.store(getpid(), memory_order_relaxed);
      kill(getpid(), SIGSTOP);
      break;
    case fault_action::fail:
      errno = fault_points[point].error;
      return errno != 0;
    case fault_action::delay:
      poll(nullptr, 0, fault_plan::delay_ms);
      break;
  }
  errno = before;
  return false;
}

}  // namespace lev::faults
