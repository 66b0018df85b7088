// this_task() for a body: data, waiting, threads of its own; answered by its worker.
#include <leveret/interleave.hpp>
#include <leveret/status.hpp>

#include "worker/batch.hpp"
#include "worker/contexts.hpp"
#include "worker/wait_in_task.hpp"
#include "worker/worker.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace lev {

namespace {

// The contexts for gets of so many lines: enough to cover a memory access, and at least 4. Even
// with blocks that the hardware prefetches by itself, the task waits for the first lines. With 4
// contexts blocks of 2 and 4 KiB take a seventh to a third less time than with one, those of 16 KiB
// as long (bench get-compute-put, at most one cycle a byte).
constexpr std::uint32_t lines_in_flight = 16;
constexpr std::uint32_t contexts_min = 4;
static_assert(contexts_min <= contexts_max && lines_in_flight >= contexts_min);
static_assert(detail::line_bytes == line_bytes && detail::burst_lines_max == burst_lines_max);
static_assert(task_tags < 32);  // wait_all() takes one bit a tag

// Declared memory of this size stays in a core's own cache: switching costs more than waiting.
// Measured with a cache of 1 MiB, chains of 64-byte blocks: in 1 MiB, 21 ns a block with one
// context and 26 with 16; in 2 MiB, 48 and 26 (2026-11-21).
std::size_t near_bytes_max() noexcept {
  static const long own_cache_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return own_cache_bytes > 0 ? static_cast<std::size_t>(own_cache_bytes) : std::size_t{1} << 20;
}

[[gnu::noinline]] std::uint32_t limit_for(const contexts& c, std::size_t bytes,
                                          std::size_t from_bytes) noexcept {
  if (c.copies) {
    const std::size_t room = c.engine->settings.local_store_bytes / 2;
    return static_cast<std::uint32_t>(larger<std::size_t>(
        1, smaller<std::size_t>(contexts_max, room / larger<std::size_t>(bytes, 1))));
  }
  if (from_bytes <= near_bytes_max()) return 1;
  const auto lines = static_cast<std::uint32_t>((bytes + line_bytes - 1) / line_bytes);
  return smaller(larger(lines_in_flight / larger(lines, 1u), contexts_min), contexts_max);
}

// Most gets are like the one before.
void choose_limit(contexts& c, std::size_t bytes, std::size_t from_bytes) noexcept {
  if (c.chosen_bytes == bytes && c.chosen_from_bytes == from_bytes) return;
  if (!c.is_automatic) return;
  c.limit = limit_for(c, bytes, from_bytes);
  LEV_DCHECK(c.limit >= 1 && c.limit <= contexts_max);
  c.chosen_bytes = bytes;
  c.chosen_from_bytes = from_bytes;
}

// A task that polls may wait for another thread on this core; and in virtual time nothing happens
// elsewhere until some time has passed. (Six workers on two cores that meet at a barrier: 26 to 39
// ms without an offer; std::barrier 0.55. EPYC, 2026-11-22.)
constexpr std::uint32_t yields_per_offer = 256;
[[gnu::cold, gnu::noinline]] void offer_core(contexts& c) noexcept {
  // The awaited task could be one staged ahead here, which no other participant can take.
  if (c.live >= c.limit) give_back_ahead(*c.engine, *c.self);
  if (owes_ends(*c.self)) tell_ends_aside(c);
  if (!c.virtual_time) return c.engine->machine->yield_core();
  const bool is_alone = c.live == 1 || c.self->staying != 0;
  if (is_alone) c.engine->machine->relax();
}

[[noreturn]] void refuse_tag(unsigned tag) {
  char message[120];
  std::snprintf(message, sizeof message, "tag %u: a task has the tags 0 to %u", tag, task_tags - 1);
  throw error(status::bad_argument, -1, message);
}

[[gnu::cold, gnu::noinline]] transfer_set& first_set_of(contexts& c) {
  transfer_set* set = make_transfers(c);
  if (set == nullptr) throw error(status::out_of_memory, -1, "no memory for a task's tags");
  return *set;
}

transfer_set& set_of(contexts& c, unsigned tag) {
  if (tag >= task_tags) [[unlikely]]
    refuse_tag(tag);
  LEV_DCHECK(runs_here(*c.self) && c.self->contexts == &c);
  transfer_set* const set = transfers_of(*c.self->running);
  if (set == nullptr) [[unlikely]]
    return first_set_of(c);
  return *set;
}

argument rows_of(const void* address, std::size_t bytes, kind what) noexcept {
  argument a;
  a.address = reinterpret_cast<std::uintptr_t>(address);
  a.row_bytes = bytes;
  a.stride_bytes = static_cast<std::int64_t>(bytes);
  a.what = what;
  return a;
}

[[gnu::noinline]] const void* copy_in(contexts& c, transfer_set& set, unsigned tag,
                                      const void* from, std::size_t bytes) {
  char* buffer = find_buffer(*c.self, set.tags[tag], bytes);
  if (buffer == nullptr) throw error(status::out_of_memory, -1, "no memory for a get()");
  c.engine->machine->get(set.tag_base + tag, buffer, rows_of(from, bytes, kind::in));
  return buffer;
}

}  // namespace

task_context this_task() {
  auto* self = static_cast<participant*>(current_actor());
  if (self == nullptr || self->running == nullptr || self->running->task == no_slot ||
      hook_call::calls_from(&self->engine->sched)) {
    throw error(status::not_in_task, -1,
                "this_task(): no task runs here; call it in a procedure's body, and not in a hook");
  }
  contexts* c = contexts_of(*self);
  if (c == nullptr) throw error(status::out_of_memory, -1, "no memory for a worker's contexts");
  return task_context(c);
}

const void* task_context::start_get(const void* from, std::size_t bytes, std::size_t from_bytes,
                                    unsigned tag) {
  contexts& c = *contexts_;
  transfer_set& set = set_of(c, tag);
  choose_limit(c, bytes, from_bytes);
  if (bytes == 0) return from;
  set.pending |= 1u << tag;
  if (c.copies) return copy_in(c, set, tag, from, bytes);
  start_prefetch(set.tags[tag], static_cast<const char*>(from), bytes);
  return from;
}

void task_context::start_put(void* to, const void* values, std::size_t bytes, unsigned tag) {
  contexts& c = *contexts_;
  transfer_set& set = set_of(c, tag);
  if (bytes == 0) return;
  set.pending |= 1u << tag;
  // In place, the values may be the task's own part of the same memory, which the target overlaps.
  if (!c.copies) return static_cast<void>(std::memmove(to, values, bytes));
  c.engine->machine->put(set.tag_base + tag, values, rows_of(to, bytes, kind::out));
}

void task_context::refuse_range(std::size_t first, std::size_t count, std::size_t size) {
  char message[160];
  std::snprintf(message, sizeof message,
                "elements %zu to %zu of far memory that was declared with %zu; declare more, or "
                "check the index",
                first, first + count, size);
  throw error(status::bad_range, -1, message);
}

void task_context::wait(unsigned tag) {
  transfer_set& set = set_of(*contexts_, tag);
  if ((set.pending & 1u << tag) != 0) await_tag(*contexts_, set, tag);
}

void task_context::wait_all(std::uint32_t tags) {
  if (tags >= 1u << task_tags) refuse_tag(task_tags);
  for (unsigned tag = 0; tag < task_tags; ++tag) {
    if ((tags & 1u << tag) != 0) wait(tag);
  }
}

void task_context::yield() noexcept {
  contexts& c = *contexts_;
  LEV_DCHECK(runs_here(*c.self));
  if (c.is_automatic) {
    c.limit = c.limit_max;
    c.chosen_bytes = 0;
  }
  if (c.self->batches != nullptr) [[unlikely]]
    detail::batch::send_all(*c.self);
  give_way(c);
  if (++c.yields % yields_per_offer == 0 || c.virtual_time) offer_core(c);
}

void task_context::pass_time(std::uint64_t cycles) noexcept {
  // In a hook no time passes: others need what its thread holds.
  if (hook_call::is_here_of(&contexts_->engine->sched)) return;
  contexts_->engine->machine->cost(cycles);
}

void task_context::start(task_thread& t) {
  t.contexts_ = contexts_;
  if (start_thread(*contexts_, t)) return;
  t.is_done_ = true;
  throw error(status::too_many_contexts, -1,
              "spawn(): all contexts of this worker are in use; join some, or raise "
              "config.contexts (at most 16)");
}

unsigned task_context::id() const noexcept {
  return contexts_->current->number;
}

std::size_t task_context::stack_left() const noexcept {
  // Not the address of a variable: AddressSanitizer keeps those elsewhere.
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  const context& own = contexts_->current->own;
  const auto* bottom = static_cast<const char*>(own.stack_bottom());
  // An item of interleave() has a stack of its own, of which nothing is known here.
  const bool is_here = bottom != nullptr && here >= bottom && here < bottom + own.stack_bytes();
  return is_here ? static_cast<std::size_t>(here - bottom) : 0;
}

void task_thread::run() noexcept {
  try {
    call_(*this);
  } catch (...) {
    failure_ = std::current_exception();
  }
  is_done_ = true;
}

void task_thread::await() noexcept {
  struct await_thread final : awaited {
    explicit await_thread(const bool& done) noexcept : is_done(done) {}
    bool is_there() noexcept override { return is_done; }
    bool arm() noexcept override { return true; }  // the thread runs on this participant
    const bool& is_done;
  } what(is_done_);
  while (!is_done_) wait_in_task(*contexts_->engine, *contexts_->self, what, no_deadline);
}

bool detail::is_in_task() noexcept {
  const auto* self = static_cast<const participant*>(current_actor());
  return self != nullptr && self->running != nullptr;
}

bool detail::is_in_virtual_task() noexcept {
  const auto* self = static_cast<const participant*>(current_actor());
  return self != nullptr && self->engine->caps.virtual_time && self->running != nullptr &&
         self->running->task != no_slot;
}

void detail::stay_on_stack() noexcept {
  auto* self = static_cast<participant*>(current_actor());
  if (self == nullptr || self->running == nullptr) return;
  contexts* c = contexts_of(*self);
  if (c == nullptr) return;  // its stack is the only one
  transfer_set* set = transfers_of(*self->running);
  // Without memory it is a task like any other.
  if (set == nullptr && (set = make_transfers(*c)) == nullptr) return;
  if (!std::exchange(set->stays, true)) ++self->staying;
}

}  // namespace lev
