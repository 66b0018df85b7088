// The handler of SIGSEGV, and the stacks it runs on; see overflow.hpp.
#include "context/overflow.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace lev {
namespace {

constexpr std::size_t signal_stack_bytes = 64 * 1024;

// A call writes right below the stack pointer; a function with large variables has moved it first,
// and writes at most a guard's length above it (-fstack-clash-protection sees to that).
constexpr std::uintptr_t below_bytes = 4096;
constexpr std::uintptr_t above_bytes = 64 * 1024;

// 0 if the CPU is not known here: then nothing is said.
std::uintptr_t stack_pointer_of([[maybe_unused]] const ucontext_t& at) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(at.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return at.uc_mcontext.sp;
#else
  return 0;
#endif
}

// Only what is allowed in a signal handler.
void say_why(int, siginfo_t* info, void* context) {
  constexpr char message[] =
      "leveret: a stack is full. Tasks on contexts have config.context_stack_bytes, items of "
      "interleave() 256 KiB, programs of a simulated Cell cell::options::stack_bytes, threads what "
      "the system gives them: raise it, or put large variables elsewhere. The program ends with "
      "SIGSEGV.\n";
  std::signal(SIGSEGV, SIG_DFL);
  if (info->si_code <= 0) return (void)raise(SIGSEGV);  // it was sent; delivered at the return
  const std::uintptr_t top = stack_pointer_of(*static_cast<const ucontext_t*>(context));
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (top != 0 && address >= top - below_bytes && address < top + above_bytes)
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
}

bool install() noexcept {
  struct sigaction now{};
  if (sigaction(SIGSEGV, nullptr, &now) != 0) return false;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return false;
  struct sigaction ours{};
  ours.sa_sigaction = say_why;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGSEGV, &ours, nullptr) == 0;
}

struct signal_stack {
  signal_stack() noexcept {
    stack_t now{};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    void* place = mmap(nullptr, signal_stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (place == MAP_FAILED) return;
    stack_t ours{};
    ours.ss_sp = place;
    ours.ss_size = signal_stack_bytes;
    if (sigaltstack(&ours, nullptr) == 0) {
      own = place;
    } else {
      munmap(place, signal_stack_bytes);
    }
  }
  ~signal_stack() {
    if (own == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == own) sigaltstack(&none, nullptr);
    munmap(own, signal_stack_bytes);
  }
  signal_stack(signal_stack&&) = delete;

  void* own = nullptr;
};

}  // namespace

void prepare_for_overflow() noexcept {
  [[maybe_unused]] static const bool is_installed = install();
  thread_local const signal_stack mine;
  (void)mine.own;
}

}  // namespace lev
