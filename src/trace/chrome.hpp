// Export of trace events as Chrome trace JSON, which Perfetto reads too.
#pragma once

#include "trace/events.hpp"

#include <cstdio>

namespace lev {

class chrome_writer {
 public:
  explicit chrome_writer(std::FILE* file) noexcept;
  // The events of one participant under a name: a lane, and one more for each of its other contexts
  // that has events, as those overlap.
  void write_lanes(std::uint32_t lane, const char* name, const event_ring& events) noexcept;
  // finish() ends the document; false when something could not be written.
  bool finish() noexcept;

 private:
  void write_name(std::uint32_t lane, const char* name) noexcept;
  void write_event(std::uint32_t lane, const event& e) noexcept;

  std::FILE* file_;
};

}  // namespace lev
