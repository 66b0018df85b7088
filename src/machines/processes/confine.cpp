// What a confined worker may still ask of the kernel: memory of its own, the time, to sleep and
// wake on its lane, to ring the host, to write to its output, and to end. Layer by layer:
//
//   1. descriptors: all are closed but standard output, standard error and the bell
//   2. limits: no core dumps, no new descriptors, no processes, no growing files
//   3. no privileges by exec, no capabilities, not to be traced
//   4. Landlock: no file, no TCP port, no signal or abstract socket outside
//   5. seccomp: a list of system calls; any other is the end of the process (SIGSYS)
//
// The last alone would do; the others hold should a rule in it be wrong.
#include "machines/processes/zygote.hpp"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

namespace lev::processes {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
constexpr bool has_other_numbers = true;  // those of x32, from 0x40000000 on
#elif defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
constexpr bool has_other_numbers = false;
#else
constexpr std::uint32_t this_architecture = 0;  // confine() refuses
constexpr bool has_other_numbers = false;
#endif

// Calls that reach nothing but the process itself.
constexpr std::uint32_t harmless_calls[] = {
    SYS_futex,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_getrandom,
    SYS_getpid,
    SYS_getppid,
    SYS_gettid,
    SYS_getcpu,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#if defined(__x86_64__)
    SYS_time,
#endif
};

// Calls with which stdio asks about a stream before its first write; it does without the answer.
constexpr std::uint32_t refused_calls[] = {SYS_newfstatat, SYS_fstat, SYS_statx, SYS_ioctl,
                                           SYS_lseek};

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

  // Allowed if the argument, of which the kernel takes 32 bits, is one of three values.
  void allow_values(std::uint32_t call, unsigned argument,
                    const std::uint32_t (&values)[3]) noexcept {
    begin_block(call, 6);
    load_argument(argument);
    add(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, values[0]);
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, values[1]);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, values[2]);
    decide(SECCOMP_RET_ALLOW);
    decide(SECCOMP_RET_KILL_PROCESS);
  }

  // Allowed if the bits of the mask have these values in the argument.
  void require_bits(unsigned argument, std::uint32_t mask, std::uint32_t bits) noexcept {
    load_argument(argument);
    add(BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, bits);
    decide(SECCOMP_RET_KILL_PROCESS);
  }
  static constexpr std::uint8_t require_length = 4;

  void begin_block(std::uint32_t call, std::uint8_t length) noexcept {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, length, call);
  }

  bool install() noexcept {
    if (length_ > instructions_max) {
      errno = E2BIG;
      return false;
    }
    const sock_fprog program{static_cast<unsigned short>(length_), code_};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  }

 private:
  static constexpr std::size_t instructions_max = 192;

  void load_argument(unsigned argument) noexcept {
    // The lower half: both architectures are little-endian.
    load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
  }
  void add(unsigned code, std::uint8_t if_true, std::uint8_t if_false, std::uint32_t k) noexcept {
    if (length_ < instructions_max)
      code_[length_] = {static_cast<std::uint16_t>(code), if_true, if_false, k};
    ++length_;
  }

  sock_filter code_[instructions_max];
  std::size_t length_ = 0;
};

// Memory may be private and without a file, and never hold code: the limit on a worker's memory
// counts it, and what the worker runs stays what was loaded before.
void allow_memory(filter& f) noexcept {
  f.begin_block(SYS_mmap, 2 * filter::require_length + 1);
  f.require_bits(2, PROT_EXEC, 0);
  f.require_bits(3, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS);
  f.decide(SECCOMP_RET_ALLOW);
  f.begin_block(SYS_mprotect, filter::require_length + 1);
  f.require_bits(2, PROT_EXEC, 0);
  f.decide(SECCOMP_RET_ALLOW);
}

bool filter_calls(int bell) noexcept {
  filter f;
  f.check_architecture();
  for (const std::uint32_t call : harmless_calls) f.answer(call, SECCOMP_RET_ALLOW);
  for (const std::uint32_t call : refused_calls) f.answer(call, SECCOMP_RET_ERRNO | EPERM);
  const auto self = static_cast<std::uint32_t>(getpid());
  f.allow_values(SYS_write, 0, {STDOUT_FILENO, STDERR_FILENO, static_cast<std::uint32_t>(bell)});
  f.allow_values(SYS_writev, 0, {STDOUT_FILENO, STDERR_FILENO, STDERR_FILENO});
  f.allow_values(SYS_tgkill, 0, {self, self, self});  // raise(), abort()
  f.allow_values(SYS_kill, 0, {self, self, self});
  allow_memory(f);
  f.decide(SECCOMP_RET_KILL_PROCESS);
  return f.install();
}

void close_files(int bell) noexcept {
  const auto close_range = [](unsigned first, unsigned last) {
    if (first <= last) syscall(SYS_close_range, first, last, 0);
  };
  const auto kept = static_cast<unsigned>(bell);
  close(STDIN_FILENO);
  close_range(STDERR_FILENO + 1, kept - 1);
  close_range(kept + 1, ~0u);
}

void limit_resources() noexcept {
  constexpr rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_NOFILE, &none);
  setrlimit(RLIMIT_NPROC, &none);
  setrlimit(RLIMIT_FSIZE, &none);
  std::signal(SIGXFSZ, SIG_IGN);  // output to a file is lost, and that is no reason to die
}

bool drop_capabilities() noexcept {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &head, none) == 0;
}

// Landlock by number: headers and C libraries are older than the kernels that have it.
constexpr long sys_landlock_create_ruleset = 444;
constexpr long sys_landlock_restrict_self = 446;
constexpr unsigned landlock_version_flag = 1;

// Everything that the kernel's version can deny, and no exception.
bool deny_files() noexcept {
  struct {
    std::uint64_t files;
    std::uint64_t network;
    std::uint64_t scopes;
  } denied = {};
  const long version = syscall(sys_landlock_create_ruleset, nullptr, 0, landlock_version_flag);
  if (version <= 0) return false;
  // Rights of files: 13 in version 1, then one more each in 2 (refer), 3 (truncate), 5 (ioctl).
  constexpr unsigned rights = 13;
  const unsigned more = version >= 5 ? 3 : version >= 3 ? 2 : version >= 2 ? 1 : 0;
  denied.files = (std::uint64_t{1} << (rights + more)) - 1;
  denied.network = version >= 4 ? 3 : 0;  // TCP: bind, connect
  denied.scopes = version >= 6 ? 3 : 0;   // abstract sockets, signals
  const long rules = syscall(sys_landlock_create_ruleset, &denied, sizeof denied, 0);
  if (rules < 0) return false;
  const bool is_done = syscall(sys_landlock_restrict_self, rules, 0) == 0;
  close(static_cast<int>(rules));
  return is_done;
}

}  // namespace

const char* confine(int bell) noexcept {
  errno = ENOSYS;
  if (this_architecture == 0) return "confined workers are for x86-64 and aarch64 only";
  if (bell <= STDERR_FILENO) return "confined workers need standard output and error to be open";
  close_files(bell);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "confined workers need no_new_privs";
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "confined workers: PR_SET_DUMPABLE";
  if (!deny_files())
    return "confined workers need Landlock, which this kernel has not or not enabled";
  limit_resources();
  if (!drop_capabilities()) return "confined workers: giving up capabilities";
  if (!filter_calls(bell)) return "confined workers need seccomp filters";
  return nullptr;
}

}  // namespace lev::processes
