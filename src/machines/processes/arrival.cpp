// How a pool waits until its workers are ready for their first task.
#include "base/numbers.hpp"
#include "machines/processes/pool.hpp"
#include "share/faults.hpp"
#include "sync/futex.hpp"

namespace lev::processes {

namespace {

std::uint64_t arrival_ns_max() noexcept {
  return std::uint64_t{faults::arrival_ms_max.load(memory_order_relaxed)} * 1'000'000;
}

}  // namespace

// A worker may work when its death can be confirmed and it has said that it is ready. Until then it
// has run no task, so its word can be believed.
void pool::order_to_work(std::uint32_t worker) noexcept {
  worker_state& s = states_[worker];
  if (s.pidfd < 0 || s.has_arrived.load(memory_order_relaxed) != 0 ||
      s.lane->arrived.load(memory_order_relaxed) == 0)
    return;
  LEV_ASSERT(s.is_alive && arriving_ != 0);  // its death can be told
  // Pairs with has_begun_none(). Sequentially consistent: the order comes after it.
  s.has_arrived.store(1, memory_order_seq_cst);
  --arriving_;
  give_order(worker, lane<>::order_work);
}

// A worker may hang before it is ready, in code of the program that runs after a fork. It has begun
// nothing, so it is replaced. A worker that serves another host is waited for.
void pool::await_arrival(std::uint32_t worker, std::uint64_t now) noexcept {
  order_to_work(worker);
  worker_state& s = states_[worker];
  if (!s.is_alive || s.has_arrived.load(memory_order_relaxed) != 0) return;
  if (is_away(worker)) s.awaited_since_ns = now;
  if (now - s.awaited_since_ns < arrival_ns_max()) return;
  s.awaited_since_ns = now;
  if (s.pidfd < 0) return;  // nor has its start been reported
  s.is_late = true;
  if (shares_workers()) {
    send_message(socket_, order{order::give_up, worker, 0});
  } else {
    end_process(worker);
  }
}

// When a worker is late; no_deadline: none is awaited.
std::uint64_t pool::late_ns() const noexcept {
  std::uint64_t least = no_deadline;
  for (std::uint32_t i = 0; i < workers_; ++i) {
    const worker_state& s = states_[i];
    if (!s.is_alive || s.has_arrived.load(memory_order_relaxed) != 0) continue;
    least = smaller(least, s.awaited_since_ns + arrival_ns_max());
  }
  return least;
}

}  // namespace lev::processes
