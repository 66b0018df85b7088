// prices: the durations of the pipeline's steps on a simulated machine, and its copy engines.
//
// All numbers are those of a machine file (<leveret/cell_file.hpp>), by name: README.md says which
// stands for what. The machine counts in cycles; its clock converts them to nanoseconds.
#pragma once

#include <leveret/cell_file.hpp>
#include <leveret/config.hpp>
#include <leveret/task.hpp>

#include <cstdint>

#include "cell/bus.hpp"
#include "cell/facts.hpp"

namespace lev::sim {

// A point in time, or a span of it, in cycles of the machine's clock.
using cycle_count = std::uint64_t;
// No cost is longer (four days at 3.2 GHz), and no point in time later: sums cannot overflow.
constexpr cycle_count cost_max = cycle_count{1} << 50;
constexpr cycle_count time_max = cycle_count{1} << 62;

class prices {
 public:
  prices(const config& c, const cell::machine_file& file);
  prices(prices&&) = delete;

  std::uint64_t ns_of(cycle_count at) const noexcept;
  // The first cycle that is not before `ns`.
  cycle_count cycles_of(std::uint64_t ns) const noexcept;

  cycle_count poll(bool is_host) const noexcept { return is_host ? host_poll_ : worker_poll_; }
  cycle_count offer_core() const noexcept { return offer_core_; }
  cycle_count wake() const noexcept { return wake_; }
  cycle_count context_switch() const noexcept { return context_switch_; }
  bool hosts_work() const noexcept { return hosts_work_; }

  // A copy by the engine of actor `index`, while so many engines are at work.
  struct copied {
    cycle_count issued;  // the actor goes on
    cycle_count done;    // the bytes are there
  };
  copied copy(unsigned index, bool is_get, const argument& remote, cycle_count at,
              unsigned engines) noexcept;

 private:
  cycle_count in_cycles(virtual_time t) const noexcept;
  virtual_time since_epoch(cycle_count at) const noexcept {
    return clock_.time_of(cycles(static_cast<std::int64_t>(at - epoch_)));
  }

  cell::facts facts_;
  clock_rate clock_;
  std::uint64_t cycle_fs_;
  unsigned engines_;
  cell::bus wires_;
  cycle_count epoch_ = 0;  // where the time of wires_ begins
  cycle_count worker_poll_;
  cycle_count host_poll_;
  cycle_count offer_core_;
  cycle_count wake_;
  cycle_count context_switch_;
  cycle_count issue_;
  bool hosts_work_;
  virtual_time list_element_;
};

// The machine file of a configuration. Without one: cell-ps3. Throws lev::cell::error.
cell::machine_file file_of(const config& c);

}  // namespace lev::sim
