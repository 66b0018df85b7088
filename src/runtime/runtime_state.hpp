// runtime_state: the state behind a lev::runtime: the engine and its memory, all of which open()
// reserves.
#pragma once

#include <leveret/runtime.hpp>

#include "base/zeroed_array.hpp"
#include "runtime/bulk_census.hpp"
#include "runtime/scope_list.hpp"
#include "worker/crew.hpp"
#include "worker/engine.hpp"
#include "worker/serve.hpp"

#include <unistd.h>

#include <memory>

namespace lev::detail {

struct runtime_state : engine {
  explicit runtime_state(const config& c) { settings = c; }

  std::unique_ptr<lev::machine> machine_owner;
  zeroed_array<slot> slots;
  zeroed_array<slot_rest> rests;
  zeroed_array<slot_extra> extras;
  zeroed_array<index_ring<>::cell> cells;   // free list, prefilter, ready, free edges
  std::unique_ptr<waiting_task[]> waiting;  // reorder buffer and its backup
  std::unique_ptr<dependant[]> nodes;
  std::unique_ptr<participant[]> participants_owner;
  std::unique_ptr<lev::doorbell<>::flag*[]> flags;
  std::unique_ptr<task_hint[]> hints;
  std::unique_ptr<job[]> frames;
  std::unique_ptr<kept_event[]> events;
  std::unique_ptr<lev::crew> crew_owner;
  const char* machine_name = "";
  scope_list scopes;
  bulk_census bulks;
  bool is_started = false;
  bool is_closed = false;
  // Written and read by host threads that call in for the first time: whether one has called
  // watch_exit(). Publishes nothing.
  atomic<bool> is_watched{false};
  pid_t owner = getpid();  // the process that opened it
};

// here() returns the participant of the calling thread, binding it to one if it never called in
// before. Null when config::host_threads threads are bound already, and in a process that has no
// part in the runtime (engine::why_absent).
participant* here(runtime_state& c) noexcept;

// is_noted() tells whether the thread's notes have its participant, which is noted_here() then;
// else ask here(). They are for a function that begins with them and asks no more, and is not
// inlined: so no place of the notes is kept across a switch of stacks.
[[gnu::always_inline]] inline bool is_noted(runtime_state& c) noexcept {
#ifdef LEVERET_MODEL_CHECKER
  return here(c) != nullptr;  // its threads are one thread
#else
  return this_thread_notes.runtime_id == c.id;
#endif
}
[[gnu::always_inline]] inline participant& noted_here([[maybe_unused]] runtime_state& c) noexcept {
#ifdef LEVERET_MODEL_CHECKER
  return *here(c);
#else
  auto* const self = static_cast<participant*>(this_thread_notes.self);
  LEV_DCHECK(self != nullptr && self->engine == &c);
  return *self;
#endif
}

// begin_service() says that the calling thread is this service for as long as it lives.
void begin_service(participant& self) noexcept;

constexpr const char* absent_after_fork =
    "this runtime belongs to the process that opened it; open one of your own after fork()";
constexpr const char* absent_in_zygote =
    "this runtime was opened while its process was started to give another one its workers; open "
    "one in a function that the task calls";

// The status of a call for which here() finds no participant.
inline status status_of_absence(const runtime_state& c) noexcept {
  return c.why_absent != nullptr ? status::closed : status::would_block;
}

// is_absent() is for slow paths: it also detects a process that was made by other means than
// fork().
inline bool is_absent(runtime_state& c) noexcept {
  if (c.why_absent == nullptr && c.owner != getpid()) c.why_absent = absent_after_fork;
  return c.why_absent != nullptr;
}

// The list of open runtimes, which ending threads read (bind.cpp).
void announce_open(runtime_state& c);
void announce_close(runtime_state& c) noexcept;

// is_in_use() tells whether the caller, called by exit(), cannot wait for the tasks: exit() was
// called by one of them, by the function that makes them for a bulk, by a filter or by a hook; or
// another thread is in the middle of a runtime that has one host.
bool is_in_use(runtime_state& c) noexcept;

// closer() returns the participant that is kept for close() when all others are bound.
participant* closer(runtime_state& c) noexcept;

// A ticket's number: generation and slot.
constexpr std::uint64_t ticket_id(std::uint32_t task, std::uint32_t generation) noexcept {
  LEV_DCHECK(task != no_slot);
  return std::uint64_t{generation} << 32 | (task + 1);
}
// The same of a slot whose task_state::open() returned `opened`.
constexpr std::uint64_t opened_ticket(std::uint32_t task, std::uint64_t opened) noexcept {
  LEV_DCHECK(task != no_slot && static_cast<std::uint32_t>(opened) == 0);
  return opened | (task + 1);
}
constexpr std::uint32_t ticket_task(std::uint64_t id) noexcept {
  LEV_DCHECK(static_cast<std::uint32_t>(id) != 0);  // check_ticket() has let it pass
  return static_cast<std::uint32_t>(id) - 1;
}
constexpr std::uint32_t ticket_generation(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id >> 32);
}

}  // namespace lev::detail
