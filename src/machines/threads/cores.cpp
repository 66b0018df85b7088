// On which cores threads are kept, and off which, by their affinity masks.
#include "machines/threads/cores.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lev {

int core_at(unsigned index) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set) && index-- == 0) return core;
  }
  return -1;
}

void bind_to_core(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

namespace {

using state = sleeper_thread;

bool pass(sleeper_thread& s, std::uint32_t from, std::uint32_t to) noexcept {
  // Pairs with the other side's, and with its release of `busy`: one of the two goes on.
  return s.state.compare_exchange_strong(from, to, memory_order_acq_rel, memory_order_relaxed);
}

// A mask that others have set meanwhile, as `taskset -a` does, stays.
void put_back(sleeper_thread& s, std::uint32_t thread) noexcept {
  const auto id = static_cast<pid_t>(thread);
  cpu_set_t others = s.cores;
  CPU_CLR(s.core, &others);
  cpu_set_t now;
  if (sched_getaffinity(id, sizeof now, &now) == 0 && CPU_EQUAL(&now, &others))
    sched_setaffinity(id, sizeof s.cores, &s.cores);
}

// The thread's cores are read now, because others may have changed them since it fell asleep.
bool move(sleeper_thread& s, std::uint32_t core) noexcept {
  const auto id = static_cast<pid_t>(s.thread);
  if (sched_getaffinity(id, sizeof s.cores, &s.cores) != 0) return false;
  if (!CPU_ISSET(core, &s.cores) || CPU_COUNT(&s.cores) == 1) return false;
  s.core = core;
  cpu_set_t others = s.cores;
  CPU_CLR(core, &others);
  return sched_setaffinity(id, sizeof others, &others) == 0;
}

}  // namespace

void begin_sleep(sleeper_thread& s) noexcept {
  s.thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  const int core = sched_getcpu();
  if (core < 0) return;
  s.core = static_cast<std::uint32_t>(core);
  s.state.store(state::asleep, memory_order_release);  // Pairs with keep_off()
}

void end_sleep(sleeper_thread& s) noexcept {
  for (;;) {
    if (pass(s, state::asleep, state::awake)) return;
    if (pass(s, state::moved, state::awake)) return put_back(s, 0);
    // Pairs with keep_off() and give_back().
    if (s.state.load(memory_order_acquire) == state::awake) return;
    sched_yield();  // the waker may have lost this core
  }
}

void keep_off(sleeper_thread& s, std::uint32_t core, bool only_if_there) noexcept {
  if (!pass(s, state::asleep, state::busy)) return;
  const bool is_moved = (!only_if_there || s.core == core) && move(s, core);
  // Pairs with end_sleep().
  s.state.store(is_moved ? state::moved : state::awake, memory_order_release);
}

void give_back(sleeper_thread& s) noexcept {
  if (!pass(s, state::moved, state::busy)) return;
  put_back(s, s.thread);
  s.state.store(state::awake, memory_order_release);  // Pairs with end_sleep()
}

}  // namespace lev
