// Export of trace events as Chrome trace JSON, which Perfetto reads too.
#ifndef LEVERET_TRACE_CHROME_HPP
#define LEVERET_TRACE_CHROME_HPP

#include "trace/events.hpp"

#include <cstdio>

namespace lev {

class chrome_writer {
 public:
  explicit chrome_writer(std::FILE* file) noexcept;
  // One lane: the events of one participant under a name.
  void write_lane(std::uint32_t lane, const char* name, const event_ring& events) noexcept;
  // finish() ends the document; false when something could not be written.
  bool finish() noexcept;

 private:
  std::FILE* file_;
};

}  // namespace lev

#endif
