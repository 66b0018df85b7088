// Offers the core now and then; see pause.hpp.
#include "sync/pause.hpp"

#include <sched.h>

namespace lev {

void wait_for_holder() noexcept {
  constexpr unsigned tries_per_offer = 64;
  thread_local unsigned tries = 0;
  relax_core();
  if (++tries % tries_per_offer == 0) sched_yield();
}

}  // namespace lev
