// Machine files as prices of the pipeline's steps; see prices.hpp.
#include "machines/sim/prices.hpp"

#include <algorithm>

#include "base/numbers.hpp"

namespace lev::sim {

namespace {

// Elements of one command (Cell Broadband Engine Architecture).
constexpr std::uint32_t list_max = 2048;
// The bus counts femtoseconds in 63 bits: its time begins anew after so many.
constexpr std::uint64_t epoch_fs = std::uint64_t{1} << 61;
// The longest time of one copy, whatever the machine file; a copy of the real machine is done in
// milliseconds.
constexpr virtual_time copy_max = std::chrono::minutes(5);

}  // namespace

cell::machine_file file_of(const config& c) {
  return cell::machine_file::named(c.sim_machine == nullptr ? "cell-ps3" : c.sim_machine);
}

prices::prices(const config& c, const cell::machine_file& file)
    : facts_(file),
      clock_(facts_.get(cell::fact::clock_rate)),
      cycle_fs_(static_cast<std::uint64_t>(clock_.time_of(cycles(1)).count())),
      engines_(static_cast<unsigned>(c.workers) + 1),
      wires_(facts_, engines_, facts_.number(cell::fact::chips)),
      worker_poll_(facts_.number(cell::fact::atomic_remote)),
      host_poll_(facts_.number(cell::fact::ppe_missed_load)),
      offer_core_(in_cycles(facts_.micros(cell::fact::ppe_switch))),
      wake_(facts_.number(cell::fact::way)),
      context_switch_(facts_.number(cell::fact::thread_switch)),
      issue_(facts_.number(cell::fact::issue)),
      hosts_work_(c.sim_machine == nullptr || facts_.number(cell::fact::ppe_runs_tasks) != 0),
      list_element_(clock_.time_of(facts_.cycles(cell::fact::list_element))) {}

cycle_count prices::in_cycles(virtual_time t) const noexcept {
  return (static_cast<std::uint64_t>(t.count()) + cycle_fs_ - 1) / cycle_fs_;
}

constexpr std::uint64_t ns_fs = 1'000'000;

std::uint64_t prices::ns_of(cycle_count at) const noexcept {
  // In two parts: the product of all would not fit.
  std::uint64_t whole = 0;
  if (!checked_multiply(at / ns_fs, cycle_fs_, &whole)) return ~std::uint64_t{0} - 1;
  return whole + at % ns_fs * cycle_fs_ / ns_fs;
}

cycle_count prices::cycles_of(std::uint64_t ns) const noexcept {
  if (ns / cycle_fs_ >= time_max / ns_fs) return time_max;
  const std::uint64_t whole = ns / cycle_fs_ * ns_fs;
  return smaller(time_max, whole + (ns % cycle_fs_ * ns_fs + cycle_fs_ - 1) / cycle_fs_);
}

// Rows lie in local stores one behind the other, and are taken to begin on a line: their addresses
// in this process must not matter. Pieces of 16 KiB are commands, those of several rows elements of
// lists.
prices::copied prices::copy(unsigned index, bool is_get, const argument& remote, cycle_count at,
                            unsigned engines) noexcept {
  if (at - epoch_ >= epoch_fs / cycle_fs_) {
    epoch_ = at;
    wires_.rest();
  }
  wires_.set_active(engines);
  const cell::bus_target memory{false, index * facts_.number(cell::fact::chips) / engines_};
  constexpr std::uint64_t piece = cell::largest_transfer;
  const std::uint64_t pieces = (remote.row_bytes + piece - 1) / piece * remote.rows;
  const bool is_list = remote.rows > 1;
  const std::uint64_t commands = is_list ? (pieces + list_max - 1) / list_max : pieces;
  const virtual_time begin = since_epoch(at);
  const cycle_count issued = smaller(commands * issue_, in_cycles(copy_max));
  virtual_time next = since_epoch(at + issued);
  virtual_time end = next;
  for (std::uint64_t i = 0; i < pieces && end - begin < copy_max; ++i) {
    const std::uint64_t in_row = i * piece % round_up(remote.row_bytes, piece);
    const auto bytes = static_cast<std::uint32_t>(smaller(remote.row_bytes - in_row, piece));
    if (is_list) next += list_element_;
    end = std::max(end, wires_.transfer(index, is_get, 0, 0, bytes, memory, next));
  }
  return {at + issued, epoch_ + in_cycles(end)};
}

}  // namespace lev::sim
