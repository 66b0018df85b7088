// The models have no workers in other processes, and no contexts: what the pipeline would call for
// them, and never does, ends the program.
#include "worker/contexts.hpp"
#include "worker/tend.hpp"

#include "share/role.hpp"
#include "share/zone.hpp"

#include <cstdlib>

extern "C" void lev_context_switch(void**, void*) {
  std::abort();
}

namespace lev {

void pay_switch(contexts&) noexcept {
  std::abort();
}
void start_company(contexts&) noexcept {
  std::abort();
}
void context::adopt() {
  std::abort();
}
void tell_ends_aside(contexts&) noexcept {
  std::abort();
}
void finish_company(engine&, participant&) noexcept {
  std::abort();
}
void wake_waiters(contexts&) noexcept {
  std::abort();
}
void revive(contexts&) noexcept {
  std::abort();
}
void suspend(contexts&, awaited&, std::uint64_t) noexcept {
  std::abort();
}
bool start_tasks(contexts&) noexcept {
  std::abort();
}
// Tasks that wait have no memory for contexts: they take the other way.
contexts* contexts_of(participant&) noexcept {
  return nullptr;
}
void end_transfers(participant&, job&) noexcept {
  std::abort();
}
void close_contexts(participant&) noexcept {}
bool tend(engine&, participant&) noexcept {
  std::abort();
}
void send_ready(engine&) noexcept {
  std::abort();
}
void tend_all(engine&, participant&) noexcept {
  std::abort();
}
bool has_remote_work(engine&) noexcept {
  std::abort();
}
void cancel_posted(engine&, participant&) noexcept {
  std::abort();
}
void end_posted(engine&) noexcept {
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
void* shared_allocate_for_overwrite(std::size_t) noexcept {
  return nullptr;
}
void shared_free(void*) noexcept {}
void* current_actor() noexcept {
  return nullptr;
}
process_role role() noexcept {
  return process_role::host;
}
const char* procedure_name(procedure_id) noexcept {
  return "?";
}

}  // namespace lev
