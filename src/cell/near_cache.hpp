// The first-level data cache of a PPE: which lines a load finds without the second-level cache. It
// is written through, and a store that misses takes no room in it, so only loads fill it.
#pragma once

#include <leveret/cell.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace lev::cell {

class near_cache {
 public:
  explicit near_cache(std::uint64_t bytes)
      : sets_(std::max<std::uint64_t>(bytes / (line_bytes * ways), 1)) {}

  bool holds(ea_t ea) const {
    const set& s = sets_[of(ea)];
    return std::find(s.begin(), s.end(), tag(ea)) != s.end();
  }
  // A load: the line is the latest of its set, and the oldest has left if there was no room.
  void take(ea_t ea) {
    set& s = sets_[of(ea)];
    auto found = std::find(s.begin(), s.end(), tag(ea));
    if (found == s.end()) {
      is_empty_ = false;
      *--found = tag(ea);
    }
    std::rotate(s.begin(), found, found + 1);
  }
  // Another unit has written these bytes.
  void drop(ea_t ea, std::uint64_t bytes) {
    if (is_empty_) return;
    const std::uint64_t first = ea / line_bytes;
    const std::uint64_t last = (ea + bytes - 1) / line_bytes;
    for (std::uint64_t line = first; line <= last && line - first < sets_.size(); ++line)
      for (ea_t& each : sets_[line % sets_.size()])
        if (each > first && each <= last + 1) each = 0;
  }

 private:
  static constexpr unsigned ways = 4;
  using set = std::array<ea_t, ways>;  // tags, the latest first; 0: none

  static ea_t tag(ea_t ea) { return ea / line_bytes + 1; }
  std::size_t of(ea_t ea) const { return (ea / line_bytes) % sets_.size(); }

  std::vector<set> sets_;
  bool is_empty_ = true;  // nothing was ever loaded: most transfers are of machines without a PPE
};

}  // namespace lev::cell
