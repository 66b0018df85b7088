// Time, cores and work of known length: what every bench measures with.
//
// Work of a fixed length is a chain of dependent multiplications: no core can run it faster by
// overlapping, and it touches no memory. There is one compiled copy of it, so every contestant runs
// the same instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

// now_ns() reads the monotonic clock.
std::uint64_t now_ns() noexcept;

// process_cpu_ns() is the CPU time, user and system, that this process has used.
std::uint64_t process_cpu_ns() noexcept;

// usable_cores() lists the cores in the affinity mask this process was started with.
const std::vector<int>& usable_cores();

// pin_this_thread() binds the calling thread to one core; unpin_this_thread() gives it all usable
// cores back.
void pin_this_thread(int core) noexcept;
void unpin_this_thread() noexcept;

// Binds the calling thread to a core for a scope.
class pinned {
 public:
  explicit pinned(int core) noexcept { pin_this_thread(core); }
  ~pinned() { unpin_this_thread(); }
  pinned(pinned&&) = delete;
};

// The two cores of a latency bench: the submitter's and the worker's. Throws when there is only one
// core.
struct core_pair {
  int host;
  int worker;
};
core_pair choose_core_pair();

// wait_until_quiet() returns when no thread of this process uses a core any more (at most 2 s), so
// that no contestant pays for the spinning that another leaves behind.
void wait_until_quiet() noexcept;

// chain() runs `steps` dependent multiply-and-adds. The result depends on all of them.
[[gnu::noinline]] std::uint64_t chain(std::uint64_t seed, std::uint64_t steps) noexcept;

// chain_step_ns() measures one step of chain(), now, on this core.
double chain_step_ns() noexcept;

// pause_core() tells the core that this is a polling loop.
inline void pause_core() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// keep() makes the compiler compute a value that nothing else uses.
template <class T>
inline void keep(const T& value) noexcept {
  asm volatile("" : : "r,m"(value) : "memory");
}

// typical_ns() is the time of one call among `count`: the median over batches, so that a batch in
// which the thread lost its core does not count.
template <class Call>
double typical_ns(std::size_t count, Call&& call) {
  constexpr std::size_t batch = 256;
  std::vector<std::uint64_t> times_ns(count / batch + 1);
  for (std::size_t i = 0; i < batch; ++i) call();
  for (std::uint64_t& time_ns : times_ns) {
    const std::uint64_t start_ns = now_ns();
    for (std::size_t i = 0; i < batch; ++i) call();
    time_ns = now_ns() - start_ns;
  }
  const auto middle = times_ns.begin() + static_cast<std::ptrdiff_t>(times_ns.size() / 2);
  std::nth_element(times_ns.begin(), middle, times_ns.end());
  return static_cast<double>(*middle) / batch;
}

}  // namespace bench
