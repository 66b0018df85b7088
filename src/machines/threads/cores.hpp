// cores: on which of the cores that this process may use a thread runs.
#pragma once

#include "machine/machine.hpp"

#include <cstdint>

namespace lev {

// core_at() returns the system's number of the i-th core this process may use; -1 when there are
// fewer.
int core_at(unsigned index) noexcept;
// bind_to_core() keeps the calling thread on one core; failure is harmless and ignored.
void bind_to_core(int core) noexcept;

// The steps of a sleeper and its waker (machine/machine.hpp). keep_off() keeps the sleeper off a
// core, the caller's, if it may run on another; with `only_if_there` only if it slept on that core.
// give_back() undoes that, unless the sleeper has. Failures of the system are harmless and ignored.
void begin_sleep(sleeper_thread& s) noexcept;
void end_sleep(sleeper_thread& s) noexcept;
void keep_off(sleeper_thread& s, std::uint32_t core, bool only_if_there) noexcept;
void give_back(sleeper_thread& s) noexcept;

}  // namespace lev
