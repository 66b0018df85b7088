// The way of a transfer over links; see bus.hpp.
#include "cell/bus.hpp"

#include <algorithm>

namespace lev::cell {

namespace {
constexpr std::int64_t line = line_bytes;

// A line has its turn, among those of other MFCs and of its own.
virtual_time pass(virt::link& l, virtual_time from, std::int64_t wire) {
  return wire == line ? l.pass_line(from, wire) : l.pass(from, wire);
}
}  // namespace

bus::bus(const facts& numbers, unsigned spes, unsigned chips)
    : numbers_(numbers),
      clock_(numbers.get(fact::clock_rate)),
      commands_(static_cast<double>(line) * numbers.get(fact::clock_rate) /
                numbers.get(fact::command)),
      in_(spes, virt::link(numbers.get(fact::port_rate))),
      out_(spes, virt::link(numbers.get(fact::port_rate))),
      stream_(spes, virt::link(numbers.get(fact::stream_rate))),
      memory_(chips,
              virt::link(numbers.get(fact::memory_rate) * numbers.get(fact::memory_efficiency))) {}

virtual_time bus::latency(bool is_get) const {
  const std::int64_t alone = numbers_.whole(is_get ? fact::read_latency : fact::write_latency);
  const std::int64_t others = active_ > 1 ? active_ - 1 : 0;
  if (others == 0) return clock_.time_of(cycles(alone));
  const std::int64_t loaded =
      numbers_.whole(is_get ? fact::read_latency_loaded : fact::write_latency_loaded);
  const std::int64_t most = numbers_.whole(fact::loaded_spes) - 1;
  return clock_.time_of(cycles(alone + (loaded - alone) * std::min(others, most) / most));
}

virtual_time bus::transfer(unsigned spe_index, bool is_get, ls_t ls, ea_t ea, std::uint32_t bytes,
                           bus_target target, virtual_time at) {
  const std::int64_t wire = lines_of(ls, ea, bytes) * line;
  const virtual_time takes =
      target.is_store ? clock_.time_of(numbers_.cycles(fact::store_latency)) : latency(is_get);
  virtual_time begin = at + takes / 2;
  begin = pass(commands_, begin, wire) - commands_.time_of(wire);
  virtual_time end = pass((is_get ? in_ : out_)[spe_index], begin, wire);
  if (target.is_store) {
    end = std::max(end, pass((is_get ? out_ : in_)[target.index], begin, wire));
  } else {
    end = std::max(end, pass(stream_[spe_index], begin, wire));
    end = std::max(end, pass(memory_[target.index], begin, wire));
  }
  return end + (takes - takes / 2);
}

void bus::rest() {
  commands_.rest();
  for (auto* links : {&in_, &out_, &stream_, &memory_})
    for (virt::link& l : *links) l.rest();
}

std::int64_t lines_of(ls_t ls, ea_t ea, std::uint32_t bytes) {
  const auto first = static_cast<std::int64_t>(ea / line_bytes);
  const auto last = static_cast<std::int64_t>((ea + bytes - 1) / line_bytes);
  const std::int64_t touched = last - first + 1;
  const bool lie_alike = ((ls ^ ea) & (line_bytes - 1)) == 0;
  return touched == 1 || lie_alike ? touched : 2 * touched;
}

}  // namespace lev::cell
