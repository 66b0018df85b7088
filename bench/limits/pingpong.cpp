// The time of one ping-pong among many.
#include "limits/pingpong.hpp"

#include <algorithm>

namespace bench {
namespace {

template <polling Polling, layout Layout>
double typical_trip_ns(int answer_core, std::size_t count) {
  pingpong<Polling, Layout> pair(answer_core);
  return typical_ns(count, [&] { pair.round_trip(); });
}

template <layout Layout>
double faster_trip_ns(int answer_core, std::size_t count) {
  return std::min(typical_trip_ns<polling::bare, Layout>(answer_core, count),
                  typical_trip_ns<polling::paused, Layout>(answer_core, count));
}

}  // namespace

double pingpong_ns(int answer_core, std::size_t count, layout lines) {
  return lines == layout::one_line ? faster_trip_ns<layout::one_line>(answer_core, count)
                                   : faster_trip_ns<layout::line_each_way>(answer_core, count);
}

}  // namespace bench
