// injected_host: a host program to which one thing goes wrong (share/faults.hpp), and what it must
// find nevertheless: right results or a clear error, an end, and nothing left behind.
#pragma once

#include "share/faults.hpp"

namespace lev::test {

// When the fault is to happen: at the first time that its point is reached, or at the first time
// after the runtime is open.
enum class fault_phase { at_first, when_open };

// Memory that the host shares with the test that has forked it.
struct injected_report {
  fault_plan of_host;
  // Written by the host, read by the test: the plan in memory of the host's workers, which the test
  // sees only by this copy of its last state.
  std::uint32_t worker_hits[fault_point_count];
  std::uint32_t has_happened;
  char text[512];  // what was wrong
};

// A fault, and the process that it happens to.
struct injected_fault {
  std::uint32_t point = 0;
  fault_action action = fault_action::none;
  fault_phase phase = fault_phase::at_first;
  bool is_pool_shared = false;  // a keeper (config.processes.pool) is in place of the zygote
};

// run_injected_host() is the host's life, in a process of its own; the exit status: 0, or 1 with
// the report's text.
int run_injected_host(injected_report& report, const injected_fault& what);

}  // namespace lev::test
