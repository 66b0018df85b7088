// Two ways to let an instant pass.
#pragma once

namespace lev {

// relax_core() is for a thread that polls, between two looks: the core's other thread gets on.
inline void relax_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

// wait_for_holder() is called between two tries by a thread that can go on when another one has
// done its next few instructions. The other one may have lost its core, even to this thread, so the
// core is offered now and then. (A service that tried for the line of a host, which it had
// displaced, kept the only core for a time slice of 5 ms.)
void wait_for_holder() noexcept;

}  // namespace lev
