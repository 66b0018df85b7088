// Where virtual time ends: before 63 bits do, so that the times of a machine's parts can be added
// to any time of its clock.
#pragma once

#include <leveret/virtual_time.hpp>

namespace lev::virt {

// The last time that an event can have. Steps of any length end here at the latest, and with them
// the run.
constexpr virtual_time clock_end = virtual_time::max() - std::chrono::minutes(2);
// Later than that: when what cannot end in time ends.
constexpr virtual_time behind_end = virtual_time::max() - std::chrono::minutes(1);

}  // namespace lev::virt
