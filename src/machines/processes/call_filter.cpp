// The system calls of a confined worker, as a program for seccomp. A call that is on no list ends
// the process (SIGSYS).
#include "machines/processes/confine.hpp"

#include "base/assert.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace lev::processes {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
constexpr bool has_other_numbers = true;  // those of x32, from 0x40000000 on
#elif defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
constexpr bool has_other_numbers = false;
#else
constexpr std::uint32_t this_architecture = 0;  // filter_calls() refuses
constexpr bool has_other_numbers = false;
#endif

// Calls that affect only the process itself.
constexpr std::uint32_t harmless_calls[] = {
    SYS_munmap,       SYS_brk,          SYS_clock_gettime,   SYS_clock_getres, SYS_clock_nanosleep,
    SYS_nanosleep,    SYS_gettimeofday, SYS_sched_yield,     SYS_getrandom,    SYS_getpid,
    SYS_getppid,      SYS_gettid,       SYS_getcpu,          SYS_rt_sigreturn, SYS_rt_sigprocmask,
    SYS_rt_sigaction, SYS_sigaltstack,  SYS_restart_syscall, SYS_exit,         SYS_exit_group,
    SYS_getrusage,
#if defined(__x86_64__)
    SYS_time,
#endif
};

// Calls with which stdio asks about a stream before its first write; it does without the answer.
constexpr std::uint32_t refused_calls[] = {SYS_newfstatat, SYS_fstat, SYS_statx, SYS_ioctl,
                                           SYS_lseek};

// Private memory without a file, wherever the caller wants it and with or without its pages. Not
// MAP_GROWSDOWN: the kernel takes it for a stack, which RLIMIT_DATA does not count. Not MAP_LOCKED
// or MAP_HUGETLB: they take other users' memory, too.
constexpr std::uint32_t mapping_needed = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr std::uint32_t mapping_allowed =
    mapping_needed | MAP_NORESERVE | MAP_STACK | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE;
constexpr std::uint32_t protections_allowed = PROT_READ | PROT_WRITE;
static_assert((mapping_allowed & (MAP_SHARED | MAP_GROWSDOWN | MAP_LOCKED | MAP_HUGETLB)) == 0);
static_assert((protections_allowed & PROT_EXEC) == 0);

// Advice that allocators give about memory of the process. Other advice could fill or cut shared
// files.
constexpr std::initializer_list<std::uint32_t> advice_allowed = {
    MADV_NORMAL, MADV_RANDOM,   MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED,
    MADV_FREE,   MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP};

// Waiting and waking. Not the calls with priority inheritance, which name a thread of any process.
constexpr std::uint32_t futex_options = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
constexpr std::initializer_list<std::uint32_t> futex_allowed = {
    FUTEX_WAIT,    FUTEX_WAKE,        FUTEX_REQUEUE,    FUTEX_CMP_REQUEUE,
    FUTEX_WAKE_OP, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET};

constexpr std::uint32_t refuse_with(int code) noexcept {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(code);
}

// A filter under construction. A block is entered with the call's number in the accumulator and
// leaves it there, or decides.
class filter {
 public:
  void load(std::size_t offset) noexcept {
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset));
  }
  void decide(std::uint32_t action) noexcept { add(BPF_RET | BPF_K, 0, 0, action); }

  void check_architecture() noexcept {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, this_architecture);
    decide(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    if (!has_other_numbers) return;
    add(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000);
    decide(SECCOMP_RET_KILL_PROCESS);
  }

  void answer(std::uint32_t call, std::uint32_t action) noexcept {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call);
    decide(action);
  }

  // Allowed if the argument, of which the kernel takes 32 bits, is one of the values, whatever the
  // bits of `options` are.
  void allow_values(std::uint32_t call, unsigned argument,
                    std::initializer_list<std::uint32_t> values, std::uint32_t otherwise,
                    std::uint32_t options = 0) noexcept {
    const auto count = static_cast<std::uint8_t>(values.size());
    begin_block(call, static_cast<std::uint8_t>(count + 4));
    load_low(argument);
    add(BPF_ALU | BPF_AND | BPF_K, 0, 0, ~options);
    std::uint8_t left = count;
    for (const std::uint32_t value : values) add(BPF_JMP | BPF_JEQ | BPF_K, left--, 0, value);
    LEV_ASSERT(left == 0);
    decide(otherwise);
    decide(SECCOMP_RET_ALLOW);
    end_block();
  }

  // Allowed if the bits of the mask have these values in the argument.
  void require_bits(unsigned argument, std::uint32_t mask, std::uint32_t bits) noexcept {
    load_low(argument);
    add(BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, bits);
    decide(SECCOMP_RET_KILL_PROCESS);
  }
  static constexpr std::uint8_t require_bits_length = 4;

  // Allowed if the argument is an address from `begin` on, which is rounded up to 4 GiB.
  void require_above(unsigned argument, std::uintptr_t begin, std::uint32_t otherwise) noexcept {
    load_high(argument);
    add(BPF_JMP | BPF_JGE | BPF_K, 1, 0, static_cast<std::uint32_t>((begin + 0xffffffffu) >> 32));
    decide(otherwise);
  }
  static constexpr std::uint8_t require_above_length = 3;

  void begin_block(std::uint32_t call, std::uint8_t length) noexcept {
    LEV_ASSERT(length_ >= block_end_ && call < 0x40000000);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, length, call);
    block_end_ = length_ + length;
  }
  // A block that is longer than it said would be entered in its middle by the other calls.
  void end_block() noexcept { LEV_ASSERT(length_ == block_end_); }

  // Filters all threads of the process. A process that has more than the one thread that it may
  // have is not filtered at all.
  bool install() noexcept {
    if (length_ > instructions_max) {
      errno = E2BIG;
      return false;
    }
    const sock_fprog program{static_cast<unsigned short>(length_), code_};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  static constexpr std::size_t instructions_max = 256;
  static_assert(instructions_max <= BPF_MAXINSNS);

  // Both architectures are little-endian.
  void load_low(unsigned argument) noexcept {
    load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
  }
  void load_high(unsigned argument) noexcept {
    load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t) + sizeof(std::uint32_t));
  }
  void add(unsigned code, std::uint8_t if_true, std::uint8_t if_false, std::uint32_t k) noexcept {
    if (length_ < instructions_max)
      code_[length_] = {static_cast<std::uint16_t>(code), if_true, if_false, k};
    ++length_;
  }

  std::size_t block_end_ = 0;
  sock_filter code_[instructions_max];
  std::size_t length_ = 0;
};

// Memory may be private and without a file, and never hold code: the limits on a worker's memory
// count it, and the worker runs only code that was loaded before. No mapping is moved or made
// larger: one of a stack would grow without being counted, and one of the heap would no longer be
// watched. realloc() copies instead.
void allow_memory(filter& f, std::uintptr_t guarded_end) noexcept {
  f.begin_block(SYS_mmap, 2 * filter::require_bits_length + 1);
  f.require_bits(2, ~protections_allowed, 0);
  f.require_bits(3, ~(mapping_allowed & ~mapping_needed), mapping_needed);
  f.decide(SECCOMP_RET_ALLOW);
  f.end_block();
  f.begin_block(SYS_mprotect, filter::require_bits_length + filter::require_above_length + 1);
  f.require_bits(2, ~protections_allowed, 0);
  f.require_above(0, guarded_end, refuse_with(EACCES));
  f.decide(SECCOMP_RET_ALLOW);
  f.end_block();
  f.answer(SYS_mremap, refuse_with(ENOMEM));
  f.allow_values(SYS_madvise, 2, advice_allowed, refuse_with(EINVAL));
}

}  // namespace

bool filter_calls(int bell, std::uintptr_t guarded_end) noexcept {
  errno = ENOSYS;
  if (this_architecture == 0) return false;
  filter f;
  f.check_architecture();
  for (const std::uint32_t call : harmless_calls) f.answer(call, SECCOMP_RET_ALLOW);
  for (const std::uint32_t call : refused_calls) f.answer(call, refuse_with(EPERM));
  f.allow_values(SYS_futex, 1, futex_allowed, refuse_with(ENOSYS), futex_options);
  constexpr std::uint32_t end = SECCOMP_RET_KILL_PROCESS;
  const auto self = static_cast<std::uint32_t>(getpid());
  f.allow_values(SYS_write, 0, {STDOUT_FILENO, STDERR_FILENO, static_cast<std::uint32_t>(bell)},
                 end);
  f.allow_values(SYS_writev, 0, {STDOUT_FILENO, STDERR_FILENO}, end);
  f.allow_values(SYS_tgkill, 0, {self}, end);  // raise(), abort()
  f.allow_values(SYS_kill, 0, {self}, end);
  allow_memory(f, guarded_end);
  f.decide(end);
  return f.install();
}

}  // namespace lev::processes
