// execute: calls the procedure. Whatever the body throws or returns becomes the task's result; nothing passes through.
#ifndef LEVERET_WORKER_EXECUTE_HPP
#define LEVERET_WORKER_EXECUTE_HPP

#include "worker/engine.hpp"

namespace lev {

// The floating-point control word is restored after a body that changed it (rounding, flush to zero): it would change the
// results of every later task of this worker. Signal masks, working directory and the like are the body's own business.
class float_mode {
 public:
#if defined(__x86_64__)
  float_mode() noexcept : saved_(__builtin_ia32_stmxcsr()) {}
  ~float_mode() {
    if ((__builtin_ia32_stmxcsr() & ~exception_flags) != (saved_ & ~exception_flags)) __builtin_ia32_ldmxcsr(saved_);
  }

 private:
  static constexpr unsigned exception_flags = 0x3f;
  unsigned saved_;
#elif defined(__aarch64__)
  float_mode() noexcept { __asm__ volatile("mrs %0, fpcr" : "=r"(saved_)); }
  ~float_mode() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }

 private:
  unsigned long saved_;
#endif
};

inline void execute(engine& e, participant& self, job& j) noexcept {
  const procedure_info& p = procedure_at(j.procedure).info;
  if (e.caps.virtual_time) {
    descriptor d;
    read_descriptor(e.pool, j.task, d);
    constexpr std::uint64_t unit_cost = 1000;  // cycles; until a procedure says more. About a TPC null task (1230).
    e.place->cost(p.cost != nullptr ? p.cost(d) : unit_cost);
  }
  j.below = self.running;
  self.running = &j;
  ++self.nest;
  try {
    const float_mode mode;
    j.task_code = p.run(call{j.arguments, j.argument_count, p.context});
    if (j.task_code != 0) j.result = status::task_failed;
  } catch (...) {
    j.result = status::task_failed;
    j.task_code = 0;
    e.pool.extra(j.task).exception = std::current_exception();
  }
  --self.nest;
  self.running = j.below;
}

}  // namespace lev

#endif
