// homes: which caches hold a line of memory. The cost of an access to a word depends on it.
//
// The machine numbers the agents: a cache each. A line that no agent holds is in memory alone.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lev::virt {

class homes {
 public:
  explicit homes(std::uint64_t line_bytes) : line_bytes_(line_bytes) {}

  bool holds(std::uint64_t address, unsigned agent) const {
    const auto found = lines_.find(address / line_bytes_);
    if (found == lines_.end()) return false;
    for (const unsigned holder : found->second)
      if (holder == agent) return true;
    return false;
  }
  bool is_cached(std::uint64_t address) const { return lines_.contains(address / line_bytes_); }

  // The agent has read the line; others may have it too.
  void read(std::uint64_t address, unsigned agent) {
    if (!holds(address, agent)) lines_[address / line_bytes_].push_back(agent);
  }
  // The agent has written it; no other agent has it now.
  void wrote(std::uint64_t address, unsigned agent) { lines_[address / line_bytes_] = {agent}; }
  // The agent has written it and `keeper`, which had the line, has the new bytes.
  void wrote_through(std::uint64_t address, unsigned agent, unsigned keeper) {
    const bool kept = holds(address, keeper);
    wrote(address, agent);
    if (kept) read(address, keeper);
  }
  // Memory was written past all caches.
  void drop(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t first = address / line_bytes_;
    const std::uint64_t last = (address + bytes - 1) / line_bytes_;
    if (lines_.size() < last - first)
      std::erase_if(lines_, [&](const auto& l) { return l.first >= first && l.first <= last; });
    else
      for (std::uint64_t line = first; line <= last; ++line) lines_.erase(line);
  }
  // The agent no longer has room for it.
  void leave(std::uint64_t address, unsigned agent) {
    const auto found = lines_.find(address / line_bytes_);
    if (found == lines_.end()) return;
    std::erase(found->second, agent);
    if (found->second.empty()) lines_.erase(found);
  }

 private:
  std::uint64_t line_bytes_;
  std::unordered_map<std::uint64_t, std::vector<unsigned>> lines_;
};

}  // namespace lev::virt
