// Tests of lev_context_switch on this CPU: every callee-saved register survives a switch, and each
// context has floating-point control words of its own.
#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "context/context.hpp"

// Fills every callee-saved register with seed + 1, seed + 2, ..., calls hop(argument), and returns
// how many of the registers differ afterwards.
extern "C" std::uint64_t lev_test_registers_lost(std::uint64_t seed, void (*hop)(void*),
                                                 void* argument);
#if defined(__x86_64__)
asm(R"(
    .text
    .type lev_test_registers_lost, @function
lev_test_registers_lost:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi
    lea 1(%rdi), %rbx; lea 2(%rdi), %rbp; lea 3(%rdi), %r12
    lea 4(%rdi), %r13; lea 5(%rdi), %r14; lea 6(%rdi), %r15
    mov %rdx, %rdi
    call *%rsi
    pop %rdi
    xor %eax, %eax
    .macro lev_test_compare register, add
    lea \add(%rdi), %rcx
    xor %edx, %edx
    cmp %rcx, \register
    setne %dl
    add %rdx, %rax
    .endm
    lev_test_compare %rbx, 1
    lev_test_compare %rbp, 2
    lev_test_compare %r12, 3
    lev_test_compare %r13, 4
    lev_test_compare %r14, 5
    lev_test_compare %r15, 6
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
    .size lev_test_registers_lost, . - lev_test_registers_lost
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .type lev_test_registers_lost, %function
lev_test_registers_lost:
    stp x29, x30, [sp, #-176]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    str x0, [sp, #160]
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    add x\n, x0, #\n
    .endr
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    add x9, x0, #\n
    fmov d\n, x9
    .endr
    mov x0, x2
    blr x1
    ldr x1, [sp, #160]
    mov x0, #0
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    add x9, x1, #\n
    cmp x9, x\n
    cinc x0, x0, ne
    .endr
    .irp n, 8, 9, 10, 11, 12, 13, 14, 15
    add x9, x1, #\n
    fmov x10, d\n
    cmp x9, x10
    cinc x0, x0, ne
    .endr
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #176
    ret
    .size lev_test_registers_lost, . - lev_test_registers_lost
)");
#endif

namespace lev {
namespace {

constexpr std::size_t filled_stack_bytes = 64 * 1024;

// A context that goes back to `main` at every hop().
struct filled {
  context main;
  context self;
  std::uint64_t lost_count = 0;
  bool is_done = false;

  void resume() { context::switch_to(main, self); }

  static void hop(void* argument) {
    auto& me = *static_cast<filled*>(argument);
    context::switch_to(me.self, me.main);
  }
};

// Holds values of its own, different in every round, across ten switches.
void hold_registers(void* argument) {
  auto& me = *static_cast<filled*>(argument);
  for (unsigned i = 0; i < 10; ++i) {
    const std::uint64_t seed = reinterpret_cast<std::uintptr_t>(&me) * 0x9E3779B97F4A7C15u + i;
    me.lost_count += lev_test_registers_lost(seed, &filled::hop, &me);
  }
  me.is_done = true;
  context::finish_to(me.self, me.main);
}

TEST(context_registers, callee_saved_registers_survive) {
  std::array<filled, 3> all;
  for (filled& one : all) ASSERT_TRUE(one.self.open(filled_stack_bytes, hold_registers, &one));
  for (int i = 0; i < 11; ++i) {
    for (filled& one : all) one.resume();
  }
  for (filled& one : all) {
    EXPECT_TRUE(one.is_done);
    EXPECT_EQ(one.lost_count, 0u);
  }
}

// The opposite direction: a context that overwrites every callee-saved register, and the registers
// of the main context, which holds its own values meanwhile.
TEST(context_registers, the_main_context_keeps_its_registers) {
  filled one;
  ASSERT_TRUE(one.self.open(filled_stack_bytes, hold_registers, &one));
  const auto resume = [](void* argument) { static_cast<filled*>(argument)->resume(); };
  std::uint64_t lost_count = 0;
  for (unsigned i = 0; i < 11; ++i) lost_count += lev_test_registers_lost(1000 + i, resume, &one);
  EXPECT_TRUE(one.is_done);
  EXPECT_EQ(one.lost_count, 0u);
  EXPECT_EQ(lost_count, 0u);
}

// The result is volatile too, as the compiler may otherwise move the division past a change of the
// rounding direction.
[[gnu::noinline]] double third() {
  volatile double one = 1.0;
  volatile double three = 3.0;
  volatile double result = one / three;
  return result;
}

// On x86-64 a long double is divided by the x87 unit, which has a control word of its own.
[[gnu::noinline]] long double long_third() {
  volatile long double one = 1.0L;
  volatile long double three = 3.0L;
  volatile long double result = one / three;
  return result;
}

struct rounding {
  filled self;
  int inherited = -1;
  int kept = -1;
  double third_up = 0;
  long double long_third_up = 0;

  static void run(void* argument) {
    auto& me = *static_cast<rounding*>(argument);
    me.inherited = std::fegetround();
    std::fesetround(FE_UPWARD);
    filled::hop(&me.self);
    me.kept = std::fegetround();
    me.third_up = third();
    me.long_third_up = long_third();
    context::finish_to(me.self.self, me.self.main);
  }
};

TEST(context_registers, control_words_are_kept_per_context) {
  rounding other;
  const double third_nearest = third();
  const long double long_third_down = [] {
    std::fesetround(FE_DOWNWARD);
    return long_third();
  }();
  ASSERT_TRUE(other.self.self.open(filled_stack_bytes, &rounding::run, &other));
  std::fesetround(FE_TONEAREST);
  for (int resumed = 0; resumed < 2; ++resumed) {
    other.self.resume();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(third(), third_nearest);
  }
  EXPECT_EQ(other.inherited, FE_DOWNWARD);
  EXPECT_EQ(other.kept, FE_UPWARD);
  EXPECT_GT(other.third_up, third_nearest);
  EXPECT_GT(other.long_third_up, long_third_down);
}

}  // namespace
}  // namespace lev
