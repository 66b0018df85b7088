// Affinity mask and cgroup CPU quota. A container that may use two of 64 cores gets two.
#include <leveret/config.hpp>

#include "sync/uncancelled.hpp"

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
  const uncancelled now;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const auto allowed = static_cast<unsigned>(CPU_COUNT(&set));
  const unsigned quota = quota_cores();
  const unsigned cores = quota != 0 && quota < allowed ? quota : allowed;
  return cores == 0 ? 1 : cores;
}

}  // namespace lev
