// The steps of a runtime's life that other files of this room need.
#pragma once

#include "runtime/runtime_state.hpp"
#include "worker/complete.hpp"

namespace lev::detail {

// The list of open runtimes, which ending threads read (bind.cpp).
void announce_open(runtime_state& c);
void announce_close(runtime_state& c) noexcept;

// is_in_use() tells whether the caller, called by exit(), cannot wait for the tasks: exit() was
// called by one of them, by the function that makes them for a bulk, by a filter or by a hook; or
// another thread is in the middle of a runtime that has one host.
bool is_in_use(runtime_state& c) noexcept;

}  // namespace lev::detail
