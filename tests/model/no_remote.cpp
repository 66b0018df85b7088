// The models have no workers in other processes, and no contexts: what the pipeline would call for
// contexts, and never does, ends the program. So does what is asked when no worker can be started.
#include "remote/straight_take.hpp"
#include "runtime/submit.hpp"
#include "share/role.hpp"
#include "share/shortage.hpp"
#include "sync/exiting.hpp"
#include "worker/contexts.hpp"

#include <cstdlib>

extern "C" void lev_context_switch(void**, void*) {
  std::abort();
}

namespace lev {

bool is_shortage(int) noexcept {
  std::abort();
}
const char* next_step(int) noexcept {
  std::abort();
}
memory_limit find_memory_limit(const char*) noexcept {
  std::abort();
}
const char* raise_memory_limit(memory_limit) noexcept {
  std::abort();
}

void pay_switch(contexts&) noexcept {
  std::abort();
}
void start_another(contexts&) noexcept {
  std::abort();
}
exception_state& exceptions_of_thread() noexcept {
  std::abort();
}
void tell_ends_aside(contexts&) noexcept {
  std::abort();
}
void finish_other_contexts(engine&, participant&) noexcept {
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
std::unique_ptr<crew> hire(engine& e) {
  return std::make_unique<crew>(e);
}
void* current_actor() noexcept {
  return nullptr;
}
bool is_exiting() noexcept {
  return false;
}
process_role role() noexcept {
  return process_role::host;
}
const char* procedure_name(procedure_id) noexcept {
  return "?";
}
unsigned end_turn_with_ends(remote_crew&, participant&, std::uint32_t, std::uint32_t, remote_ends,
                            awaited_tickets&) noexcept {
  std::abort();
}
bool owes_no_ends(remote_crew&, participant&) noexcept {
  std::abort();
}
void tend_all(remote_crew&, participant&) noexcept {
  std::abort();
}
bool is_uneven(remote_crew&) noexcept {
  std::abort();
}
namespace detail {
std::uint64_t submit_elsewhere(runtime_state& c, participant& self, const draft& d, bool detached,
                               std::uint64_t plain_kinds) {
  return submit_elsewhere_any_way(c, self, d, detached, plain_kinds);
}
}  // namespace detail

}  // namespace lev
