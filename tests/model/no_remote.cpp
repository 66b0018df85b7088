// The models have no workers in other processes: what the pipeline would call for them, and never
// does, ends the program.
#include "worker/tend.hpp"

#include "share/zone.hpp"

#include <cstdlib>

namespace lev {

bool tend(engine&, participant&) noexcept {
  std::abort();
}
bool has_remote_work(engine&) noexcept {
  std::abort();
}
void cancel_posted(engine&, participant&, std::uint32_t) noexcept {
  std::abort();
}
void attend(engine&, participant&) noexcept {
  std::abort();
}
std::uint64_t service_deadline(engine&) noexcept {
  std::abort();
}
const zone* open_zone() noexcept {
  return nullptr;
}
bool is_shared(const void*, std::size_t) noexcept {
  return false;
}
void* shared_allocate(std::size_t) noexcept {
  return nullptr;
}
void shared_free(void*) noexcept {}
const char* procedure_name(procedure_id) noexcept {
  return "?";
}

}  // namespace lev
