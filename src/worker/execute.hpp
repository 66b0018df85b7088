// execute: calls the procedure. The body's exception or return code becomes the task's result;
// nothing passes through.
#pragma once

#include "sync/hook_call.hpp"
#include "worker/contexts.hpp"

namespace lev {

// The floating-point control word is restored after a body that changed it (rounding, flush to
// zero): it would change the results of every later task of this worker. Signal masks, working
// directory, traps of floating-point exceptions and the like are left to the body.
#if defined(__x86_64__)
inline std::uint16_t x87_mode() noexcept {
  std::uint16_t x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return x87;
}

// Whether additions round to nearest and keep denormal numbers. One vector addition tells, in less
// than 1 ns; reading SSE's control register takes 6 ns, a fifth of an empty task (Zen 5).
inline bool rounds_plainly() noexcept {
  using four = float __attribute__((vector_size(16)));
  using four_words = int __attribute__((vector_size(16)));
  constexpr float unit = 0x1p-23f;  // in the last place of 1
  constexpr float smallest = 0x1p-149f;
  // Each sum differs when rounded: down or to zero; down; up; when flushed to zero.
  four sum = {1, -1, 1, smallest};
  const four small = {0.75f * unit, -0.25f * unit, 0.25f * unit, smallest};
  constexpr four expected = {1 + unit, -1, 1, 2 * smallest};
  __asm__ volatile("addps %1, %0" : "+x"(sum) : "xm"(small));
  const four_words same =
      reinterpret_cast<four_words>(sum) == reinterpret_cast<four_words>(expected);
  return __builtin_ia32_movmskps(reinterpret_cast<four>(same)) == 0xf;
}

// SSE's control bits below, the x87 control word (long double) above, both as they differ from the
// usual mode: that one is 0.
constexpr std::uint16_t x87_plain = 0x37f;
constexpr std::uint64_t float_plain = 0x1f80 | std::uint64_t{x87_plain} << 32;

inline std::uint64_t float_mode() noexcept {
  const std::uint16_t x87 = x87_mode();
  if (x87 == x87_plain && rounds_plainly()) return 0;
  constexpr unsigned exception_flags = 0x3f;  // sticky, and no mode
  const std::uint64_t sse = __builtin_ia32_stmxcsr() & ~exception_flags;
  return (sse | std::uint64_t{x87} << 32) ^ float_plain;
}
inline void set_float_mode(std::uint64_t mode) noexcept {
  const std::uint64_t words = mode ^ float_plain;
  const auto x87 = static_cast<std::uint16_t>(words >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(words));
}
inline bool has_float_mode(std::uint64_t mode) noexcept {
  if (mode != 0) [[unlikely]]
    return float_mode() == mode;
  // Without a value of its own, so that callers need no second look at it.
  if (x87_mode() != x87_plain || !rounds_plainly()) [[unlikely]]
    return false;
  return true;
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
#if !defined(__x86_64__)
inline bool has_float_mode(std::uint64_t mode) noexcept {
  return float_mode() == mode;
}
#endif

inline void restore_float_mode(std::uint64_t mode) noexcept {
  if (!has_float_mode(mode)) [[unlikely]]
    set_float_mode(mode);
}

// Whether the server has the usual mode, and so has this thread now: most do. Where it is not known
// at once, no. keeps_plain_mode() is for a server that has it (asides::has_own_mode).
inline bool keeps_plain_mode(const participant& self) noexcept {
#if defined(__x86_64__)
  LEV_DCHECK(self.float_mode == 0);
  return x87_mode() == x87_plain && rounds_plainly();
#else
  return has_float_mode(self.float_mode);
#endif
}
inline bool runs_in_plain_mode(const participant& self) noexcept {
#if defined(__x86_64__)
  return self.float_mode == 0 && keeps_plain_mode(self);
#else
  return keeps_plain_mode(self);
#endif
}

// A task that runs while another waits starts with the server's floating-point mode; the waiting
// one finds its own again.
[[gnu::cold, gnu::noinline]] inline void restore_own_mode(const participant& self) noexcept {
  restore_float_mode(self.float_mode);
}

class mode_of_waiter {
 public:
  explicit mode_of_waiter(const participant& self) noexcept
      : is_own_(!runs_in_plain_mode(self) && !has_float_mode(self.float_mode)) {
    if (!is_own_) [[likely]]
      return;
    own_ = float_mode();
    set_float_mode(self.float_mode);
  }
  ~mode_of_waiter() {
    if (is_own_) [[unlikely]]
      set_float_mode(own_);
  }
  mode_of_waiter(mode_of_waiter&&) = delete;

 private:
  bool is_own_;
  std::uint64_t own_ = 0;
};

// The price of the task in virtual time, by its procedure's hook; a hook that throws counts as
// none.
inline std::uint64_t cost_of(const engine& e, const procedure_info& p,
                             const descriptor& d) noexcept {
  // cycles; until a procedure says more. About a TPC null task (1230).
  constexpr std::uint64_t unit_cost = 1000;
  if (p.cost == nullptr) return unit_cost;
  try {
    const hook_call here(&e.sched);
    return p.cost(d);
  } catch (...) {
    return unit_cost;
  }
}

[[gnu::noinline]] inline void charge(engine& e, const procedure_info& p, const job& j) noexcept {
  descriptor d;
  read_descriptor(e.task_slots, j.task, d);
  e.machine->cost(cost_of(e, p, d));
}

// In a handler.
[[gnu::noinline, gnu::cold]] void note_thrown(engine& e, job& j) noexcept;

// call_body() returns the body's code; what it throws is noted at the job. end_body() follows, when
// no transfer is pending.
[[gnu::always_inline]] inline int call_body(engine& e, participant& self, job& j,
                                            const procedure_info& p) noexcept {
  j.below = self.running;
  self.running = &j;
  ++self.nest;
  LEV_DCHECK(j.below != &j && j.result == status::ok);
  try {
    j.body.argument_count = j.argument_count;
    j.body.context = p.context;
    const int code = p.run(j.body);
    if (e.why_absent != nullptr) [[unlikely]]
      end_if_forked(e, code != 0 || j.result != status::ok);
    return code;
  } catch (...) {
    end_if_forked(e, true);
    note_thrown(e, j);
    return 0;
  }
}
inline void end_body(participant& self, const job& j) noexcept {
  LEV_DCHECK(self.running == &j && self.nest != 0);  // on whatever stack it waited
  --self.nest;
  self.running = j.below;
}

inline void execute_body(engine& e, participant& self, job& j, const procedure_info& p) noexcept {
  const int code = call_body(e, self, j, p);
  if (code != 0) [[unlikely]] {
    j.task_code = code;
    j.result = status::task_failed;
  }
  if (j.has_transfers) end_transfers(self, j);
  if (!runs_in_plain_mode(self)) [[unlikely]]
    restore_own_mode(self);
  end_body(self, j);
}

inline void execute(engine& e, participant& self, job& j) noexcept {
  const procedure_info& p = procedure_at(j.procedure).info;
  if (e.caps.virtual_time) charge(e, p, j);
  execute_body(e, self, j, p);
}

}  // namespace lev
