// execute: calls the procedure. Whatever the body throws or returns becomes the task's result;
// nothing passes through.
#ifndef LEVERET_WORKER_EXECUTE_HPP
#define LEVERET_WORKER_EXECUTE_HPP

#include "worker/engine.hpp"

namespace lev {

// The floating-point control word is restored after a body that changed it (rounding, flush to
// zero): it would change the results of every later task of this worker. Signal masks, working
// directory and the like are the body's own business.
#if defined(__x86_64__)
// SSE's control bits below, the x87 control word (long double) above.
inline std::uint64_t float_mode() noexcept {
  constexpr unsigned exception_flags = 0x3f;  // sticky, and no mode
  std::uint16_t x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (__builtin_ia32_stmxcsr() & ~exception_flags) | std::uint64_t{x87} << 32;
}
inline void set_float_mode(std::uint64_t mode) noexcept {
  const auto x87 = static_cast<std::uint16_t>(mode >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(mode));
}
#elif defined(__aarch64__)
inline std::uint64_t float_mode() noexcept {
  std::uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_float_mode(std::uint64_t mode) noexcept {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
inline std::uint64_t float_mode() noexcept {
  return 0;
}
inline void set_float_mode(std::uint64_t) noexcept {}
#endif

inline void execute(engine& e, participant& self, job& j) noexcept {
  const procedure_info& p = procedure_at(j.procedure).info;
  if (e.caps.virtual_time) {
    descriptor d;
    read_descriptor(e.pool, j.task, d);
    constexpr std::uint64_t unit_cost =
        1000;  // cycles; until a procedure says more. About a TPC null task (1230).
    e.place->cost(p.cost != nullptr ? p.cost(d) : unit_cost);
  }
  j.below = self.running;
  self.running = &j;
  ++self.nest;
  try {
    j.task_code = p.run(call{j.arguments.data(), j.argument_count, p.context});
    if (j.task_code != 0) j.result = status::task_failed;
  } catch (...) {
    j.result = status::task_failed;
    j.task_code = 0;
    e.pool.extra(j.task).exception = std::current_exception();
  }
  if (float_mode() != self.float_mode) set_float_mode(self.float_mode);
  --self.nest;
  self.running = j.below;
}

}  // namespace lev

#endif
