// bus: the EIB and memory. It computes when a transfer that begins now will end.
//
//   latency/2, then commands (one for each line), then the slowest of: the SPE's stream to memory,
//   its port, the memory of the chip (or the other store's port), then latency/2.
// All of them are links: first come, first served, but given out by the line: a transfer of one
// line goes between two lines of another. The latency of memory grows with the number of MFCs that
// have something under way, on a straight line from one to dma.loaded_spes.
#pragma once

#include <leveret/cell.hpp>

#include <vector>

#include "cell/facts.hpp"
#include "virtual/link.hpp"

namespace lev::cell {

// The target of a transfer at its effective address.
struct bus_target {
  bool is_store = false;
  unsigned index = 0;  // of the chip, or of the SPE whose store it is
};

class bus {
 public:
  bus(const facts& numbers, unsigned spes, unsigned chips);

  // The end of a transfer of `bytes` by an SPE's MFC that begins at `at`.
  virtual_time transfer(unsigned spe_index, bool is_get, ls_t ls, ea_t ea, std::uint32_t bytes,
                        bus_target target, virtual_time at);

  // MFCs with something under way.
  void begin() { ++active_; }
  void end() { --active_; }
  void set_active(unsigned mfcs) { active_ = mfcs; }

  // Nothing is under way, and time begins at 0 again.
  void rest();

 private:
  virtual_time latency(bool is_get) const;

  const facts& numbers_;
  clock_rate clock_;
  virt::link commands_;
  std::vector<virt::link> in_;
  std::vector<virt::link> out_;
  std::vector<virt::link> stream_;
  std::vector<virt::link> memory_;
  unsigned active_ = 0;
};

// 128-byte lines for which a transfer occupies the bus: those that it touches, and twice as many if
// it touches several and its two addresses are aligned differently.
std::int64_t lines_of(ls_t ls, ea_t ea, std::uint32_t bytes);

}  // namespace lev::cell
