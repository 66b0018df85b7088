// Waiting for everything.
#ifndef LEVERET_RUNTIME_WAIT_HPP
#define LEVERET_RUNTIME_WAIT_HPP

#include "runtime/core.hpp"

namespace lev::detail {

// wait_quiescent() waits until every task is complete and no submit phase is open. False: the
// deadline passed.
bool wait_quiescent(core& c, participant& self, std::uint64_t deadline_ns) noexcept;

// wait_space() waits until a task slot may be free.
void wait_space(core& c, participant& self, bool helps) noexcept;

}  // namespace lev::detail

#endif
