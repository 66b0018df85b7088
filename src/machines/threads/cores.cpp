// Affinity mask and cgroup CPU quota. A container that may use two of 64 cores gets two.
#include "machines/threads/cores.hpp"

#include <leveret/config.hpp>

#include <pthread.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lev {

namespace {

// The quota of this cgroup (version 2, as seen from inside a container) in cores, rounded up; 0
// when there is none.
unsigned quota_cores() noexcept {
  std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (f == nullptr) return 0;
  char quota[32] = {};
  unsigned long period = 0;
  const int n = std::fscanf(f, "%31s %lu", quota, &period);
  std::fclose(f);
  if (n != 2 || std::strcmp(quota, "max") == 0 || period == 0) return 0;
  const unsigned long us = std::strtoul(quota, nullptr, 10);
  return static_cast<unsigned>((us + period - 1) / period);
}

}  // namespace

unsigned available_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const auto allowed = static_cast<unsigned>(CPU_COUNT(&set));
  const unsigned quota = quota_cores();
  const unsigned cores = quota != 0 && quota < allowed ? quota : allowed;
  return cores == 0 ? 1 : cores;
}

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
constinit thread_local cpu_set_t noted_cores{};
}  // namespace

void note_cores() noexcept {
  if (sched_getaffinity(0, sizeof noted_cores, &noted_cores) != 0) CPU_ZERO(&noted_cores);
}

void restore_cores() noexcept {
  if (CPU_COUNT(&noted_cores) != 0) sched_setaffinity(0, sizeof noted_cores, &noted_cores);
}

kept_off::kept_off(std::uint32_t thread, std::uint32_t core, atomic<std::uint32_t>* note) noexcept
    : note_(note) {
  const auto id = static_cast<pid_t>(thread);
  CPU_ZERO(&before_);
  if (id == 0 || sched_getaffinity(id, sizeof before_, &before_) != 0) return;
  cpu_set_t others = before_;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  note_->store(1, memory_order_relaxed);
  if (sched_setaffinity(id, sizeof others, &others) == 0) thread_ = id;
}

kept_off::~kept_off() {
  if (thread_ != 0) sched_setaffinity(thread_, sizeof before_, &before_);
  note_->store(0, memory_order_relaxed);
}

}  // namespace lev
