// The mean of many ping-pongs.
#include "limits/pingpong.hpp"

#include <algorithm>

namespace bench {
namespace {

template <polling Polling>
double mean_ns(int answer_core, std::size_t count) {
  pingpong<Polling> pair(answer_core);
  for (std::size_t i = 0; i < count / 10; ++i) pair.round_trip();
  const std::uint64_t start_ns = now_ns();
  for (std::size_t i = 0; i < count; ++i) pair.round_trip();
  return static_cast<double>(now_ns() - start_ns) / static_cast<double>(count);
}

}  // namespace

double pingpong_ns(int answer_core, std::size_t count) {
  return std::min(mean_ns<polling::bare>(answer_core, count),
                  mean_ns<polling::paused>(answer_core, count));
}

}  // namespace bench
