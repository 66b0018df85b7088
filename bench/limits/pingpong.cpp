// The time of one ping-pong among many.
#include "limits/pingpong.hpp"

#include <algorithm>

namespace bench {
namespace {

template <polling Polling>
double typical_trip_ns(int answer_core, std::size_t count) {
  pingpong<Polling> pair(answer_core);
  return typical_ns(count, [&] { pair.round_trip(); });
}

}  // namespace

double pingpong_ns(int answer_core, std::size_t count) {
  return std::min(typical_trip_ns<polling::bare>(answer_core, count),
                  typical_trip_ns<polling::paused>(answer_core, count));
}

}  // namespace bench
