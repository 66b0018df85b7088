// faults: the named points at which a test makes something go wrong in the host, the zygote or a
// worker. The process is killed, stopped for a while or delayed there, or the system call there
// fails. A plan, in memory that all of them share, says which fault happens where.
//
// Neither the public API nor the environment can set a plan. Without one a point costs one load,
// which is always in the cache, and a branch that is never taken. The worker's points between tasks
// share the branch that config.processes.chaos has there.
#pragma once

#include "sync/env.hpp"

#include <cerrno>
#include <string_view>

namespace lev {

// To add a point: a line here, and a call of fault_at() at its place. The following system call may
// fail with `error`; 0: nothing fails there.
struct fault_point {
  const char* name;  // the process, and what it is about to do or has done
  int error;
};
inline constexpr fault_point fault_points[] = {
    // Opening a runtime, from the first file to the last worker.
    {"host.memfd_create", EMFILE},
    {"host.ftruncate", ENOMEM},
    {"host.add_seals", EPERM},
    {"host.fallocate", ENOSPC},
    {"host.map_board", ENOMEM},
    {"host.seal_board", EPERM},
    {"host.eventfd", EMFILE},
    {"host.map_lane", ENOMEM},
    {"host.socketpair", EMFILE},
    {"host.spawn", EAGAIN},
    {"host.introduce", ENOBUFS},
    {"host.receive_ready", ENOMEM},
    {"host.send_order", ENOBUFS},
    {"host.receive_report", ENOMEM},
    {"host.receive_pidfd", EMFILE},
    {"host.start_service", EAGAIN},
    // Tasks.
    {"host.copy_in", 0},
    {"host.post", 0},
    {"host.wake", 0},
    {"host.collect", 0},
    {"host.copy_out", 0},
    {"host.ring", 0},
    {"host.sleep", EINTR},
    // Deaths, and the end.
    {"host.bury", 0},
    {"host.replace", 0},
    {"host.end_process", EPERM},
    {"host.zygote_gone", 0},
    {"host.close", 0},
    {"host.pidfd_open", EMFILE},
    {"host.wait_zygote", 0},
    // The zygote, from the host's first message on.
    {"zygote.met", 0},
    {"zygote.map_board", ENOMEM},
    {"zygote.signalfd", EMFILE},
    {"zygote.ready", 0},
    {"zygote.tell_ready", ENOBUFS},
    {"zygote.receive_order", ENOMEM},
    {"zygote.receive_lane", EMFILE},
    {"zygote.fork", EAGAIN},
    {"zygote.forked", 0},
    {"zygote.pidfd_open", EMFILE},
    {"zygote.tell_started", ENOBUFS},
    {"zygote.told_started", 0},
    {"zygote.reap", 0},
    {"zygote.tell_died", ENOBUFS},
    {"zygote.told_died", 0},
    {"zygote.end", 0},
    // A worker.
    {"worker.begin", 0},
    {"worker.map_lane", ENOMEM},
    {"worker.started", 0},
    {"worker.arrived", 0},
    {"worker.ordered", 0},
    {"worker.received", 0},
    {"worker.claimed", 0},
    {"worker.open_library", ENOMEM},
    {"worker.resolved", 0},
    {"worker.executed", 0},
    {"worker.finished", 0},
    {"worker.ring", 0},
    {"worker.fall_asleep", 0},
    {"worker.woken", 0},
    {"worker.leave", 0},
};
constexpr std::uint32_t fault_point_count = sizeof fault_points / sizeof fault_points[0];

enum class fault_action : std::uint32_t { none, kill, stop, fail, delay };

// One fault, at one point: once, or each time.
struct fault_plan {
  static constexpr std::uint32_t never = ~std::uint32_t{0};
  static constexpr int delay_ms = 20;

  std::uint32_t point = fault_point_count;
  fault_action action = fault_action::none;
  bool is_lasting = false;  // each time
  // Written by the test, read by processes at the point: how often it is passed unharmed before.
  // Publishes nothing.
  atomic<std::uint32_t> passes{0};
  // Written by processes at the points, read by the test: how often they passed. Publishes nothing.
  atomic<std::uint32_t> hits[fault_point_count] = {};
  // Written by the process that it happens to, read by the others and the test: 1 from then on.
  // Publishes nothing.
  atomic<std::uint32_t> has_happened{0};
  // Written by a process that stops itself, read by the test, which lets it continue: its number.
  // Publishes nothing.
  atomic<std::int32_t> stopped{0};
};

// The name of a point; one that is not in the table does not compile.
struct fault_name {
  std::uint32_t index = 0;
  consteval fault_name(const char* name) {
    while (std::string_view(fault_points[index].name) != name) ++index;
  }
};

namespace faults {
// Written by arm_faults(), read at every point. Publishes nothing: a process is armed before it
// does anything else.
inline constinit atomic<fault_plan*> here{nullptr};
// Written by arm_faults(), read when a zygote is started. Publishes nothing.
inline constinit atomic<fault_plan*> in_workers{nullptr};
// Written by a test, read when a runtime makes its lanes: the number before each lane's first.
// Publishes nothing: set before the runtime opens.
inline constinit atomic<std::uint32_t> lanes_begin_after{0};
// Written by a test, read by the service of a runtime: how long a worker may take to be ready for
// its first task. Publishes nothing: set before the runtime opens.
inline constinit atomic<std::uint32_t> arrival_ms_max{20'000};
bool act_at(fault_plan& plan, std::uint32_t point) noexcept;
}  // namespace faults

// arm_faults() sets the plan of this process, and the plan for zygotes that it starts from now on
// and for their workers. The latter is in memory of shared_allocate(), which confined workers
// cannot write to. Null: none.
inline void arm_faults(fault_plan* here, fault_plan* in_workers) noexcept {
  faults::here.store(here, memory_order_relaxed);
  faults::in_workers.store(in_workers, memory_order_relaxed);
}
inline bool has_fault_plan() noexcept {
  return faults::here.load(memory_order_relaxed) != nullptr;
}

// fault_at() is a point. True, with errno set: the following system call has failed.
inline bool fault_at(fault_name point) noexcept {
  fault_plan* plan = faults::here.load(memory_order_relaxed);
  return plan != nullptr && faults::act_at(*plan, point.index);
}

}  // namespace lev
