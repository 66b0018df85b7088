// Clock, pinning and the calibrated chain, on Linux.
#include "timing.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace bench {
namespace {

std::uint64_t read_clock(clockid_t id) noexcept {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

cpu_set_t read_mask() noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  return mask;
}

// Read while the program loads, before anything is pinned.
const cpu_set_t mask_at_start = read_mask();

}  // namespace

std::uint64_t now_ns() noexcept {
  return read_clock(CLOCK_MONOTONIC);
}
std::uint64_t process_cpu_ns() noexcept {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

const std::vector<int>& usable_cores() {
  static const std::vector<int> cores = [] {
    std::vector<int> list;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &mask_at_start)) list.push_back(core);
    }
    return list;
  }();
  return cores;
}

void pin_this_thread(int core) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

void unpin_this_thread() noexcept {
  sched_setaffinity(0, sizeof mask_at_start, &mask_at_start);
}

core_pair choose_core_pair() {
  const std::vector<int>& cores = usable_cores();
  if (cores.size() < 2) throw std::runtime_error("this bench needs two cores");
  return {cores[0], cores[1]};
}

void wait_until_quiet() noexcept {
  // 2 ms windows with less than 5 % of a core in them: well below one spinning thread, well above
  // the clock's resolution.
  constexpr timespec window{0, 2'000'000};
  constexpr std::uint64_t busy_ns_max = 100'000;
  const std::uint64_t deadline_ns = now_ns() + 2'000'000'000;
  while (now_ns() < deadline_ns) {
    const std::uint64_t before_ns = process_cpu_ns();
    nanosleep(&window, nullptr);
    if (process_cpu_ns() - before_ns < busy_ns_max) return;
  }
}

std::uint64_t chain(std::uint64_t seed, std::uint64_t steps) noexcept {
  for (; steps != 0; --steps) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(seed));  // each step by itself: no closed form, no unrolling into fewer
  }
  return seed;
}

double chain_step_ns() noexcept {
  constexpr std::uint64_t steps = 200'000;
  double best_ns = 1e9;
  for (int turn = 0; turn < 9; ++turn) {
    const std::uint64_t start_ns = now_ns();
    keep(chain(1, steps));
    best_ns = std::min(best_ns, static_cast<double>(now_ns() - start_ns) / steps);
  }
  return best_ns;
}

}  // namespace bench
