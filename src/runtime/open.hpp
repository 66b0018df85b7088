// The steps of a runtime's life that other files of this room need.
#ifndef LEVERET_RUNTIME_OPEN_HPP
#define LEVERET_RUNTIME_OPEN_HPP

#include "runtime/runtime_state.hpp"
#include "worker/complete.hpp"

namespace lev::detail {

// The list of open runtimes, which ending threads read (bind.cpp).
void announce_open(runtime_state& c);
void announce_close(runtime_state& c) noexcept;

}  // namespace lev::detail

#endif
