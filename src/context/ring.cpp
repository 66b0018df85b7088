// Running, ending and keeping of strands; see ring.hpp.
#include "context/ring.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace lev {
namespace {

// The thread's strands. A destructor of another thread_local may run later than this one's: it
// finds `has_ended` set and works with strands of its own.
thread_local bool has_ended = false;
struct kept_stacks : strand_stack_pool {
  ~kept_stacks() { has_ended = true; }
};
thread_local kept_stacks kept;

// A strand on the caller's own stack: there is no other to give way to.
struct lone_strand : strand {
  lone_strand() noexcept : strand([](strand*) {}) {}
};

// Runs items on this strand's stack; the first failure ends the starting of items.
void work(ring& call, strand_stack& self) noexcept {
  try {
    call.run(call.fn, call.items, self);
  } catch (...) {
    call.items.next = call.items.end;
    if (call.failure == nullptr) call.failure = std::current_exception();
  }
}

void enter(void* argument) {
  strand_stack& self = *static_cast<strand_stack*>(argument);
  ring& call = *self.call;
  work(call, self);
  if (self.is_alone()) context::finish_hop(self.own, call.caller, &call.caller_place);
  strand_stack& to = *self.next;
  self.unlink();
  context::finish_hop(self.own, to.own, to.place());
}

// A strand that is inside a catch block, or in a destructor during unwinding.
[[gnu::noinline]] void give_way_handling(strand_stack& self) {
  const exception_state mine = std::exchange(*self.exceptions, {});
  context::hop(self.own, self.place(), self.next->own, self.next->place());
  *self.exceptions = mine;
}

bool run_with(strand_stack_pool& pool, unsigned width, ring& call) {
  strand_stack* strands[strand_count_max] = {};
  if (!pool.take(width, strands)) return false;
  exception_state& exceptions = exceptions_of_thread();
  for (unsigned i = 0; i < width; ++i) {
    strand_stack& one = *strands[i];
    const bool is_open = one.own.open(strand_stack_bytes, enter, &one);
    LEV_ASSERT(is_open);  // it has a stack, so this cannot fail
    *one.place() = one.own.hop_start();
    one.call = &call;
    one.exceptions = &exceptions;
    if (i > 0) one.link_after(*strands[i - 1]);
  }
  const exception_state callers = std::exchange(exceptions, {});
  context::hop(call.caller, &call.caller_place, strands[0]->own, strands[0]->place());
  exceptions = callers;
  pool.give_back(width, strands);
  return true;
}

}  // namespace

void strand_stack::link_after(strand_stack& other) noexcept {
  next = other.next;
  before = &other;
  next->before = this;
  other.next = this;
}

void strand_stack::unlink() noexcept {
  before->next = next;
  next->before = before;
  next = before = this;
}

// Without a sanitizer the hop is a tail call: one return instruction for the whole. The core must
// hold the instructions of 16 turns to run ahead of the memory, so each one here counts (README of
// this room).
void strand_stack::give_way(strand* from) {
  strand_stack& self = static_cast<strand_stack&>(*from);
  const exception_state& exceptions = *self.exceptions;
  const auto caught = reinterpret_cast<std::uintptr_t>(exceptions.caught);
  if ((caught | exceptions.uncaught_count) != 0) [[unlikely]]
    return give_way_handling(self);
  context::hop(self.own, self.place(), self.next->own, self.next->place());
}

bool strand_stack_pool::make_one() noexcept {
  try {
    auto made = std::make_unique<strand_stack>();
    if (!made->own.open(strand_stack_bytes, enter, made.get())) return false;
    // Room for strands that are taken, too: giving back cannot fail.
    idle_.reserve(made_count_ + 1);
    idle_.push_back(std::move(made));
    ++made_count_;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool strand_stack_pool::take(unsigned count, strand_stack** strands) noexcept {
  while (idle_.size() < count) {
    if (!make_one()) return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    strands[i] = idle_.back().release();
    idle_.pop_back();
  }
  return true;
}

void strand_stack_pool::give_back(unsigned count, strand_stack** strands) noexcept {
  // In this order take() finds the same strand at the same place: its stack is warm.
  for (unsigned i = count; i-- > 0;) idle_.emplace_back(strands[i]);
}

namespace detail {

bool run_ring(unsigned width, cursor& items, run_items run, void* fn) {
  const std::size_t count = items.end - items.next;
  width = static_cast<unsigned>(std::min<std::size_t>(width, count));
  ring call{.items = items, .run = run, .fn = fn, .caller = {}, .failure = {}};
  if (has_ended) {
    strand_stack_pool own;
    if (!run_with(own, width, call)) return false;
  } else if (!run_with(kept, width, call)) {
    return false;
  }
  if (call.failure != nullptr) std::rethrow_exception(std::move(call.failure));
  return true;
}

void run_alone(cursor& items, run_items run, void* fn) {
  lone_strand s;
  run(fn, items, s);
}

std::exception_ptr idlers_failure() noexcept {
  return std::make_exception_ptr(error(
      status::bad_argument, -1,
      "interleave_flat(): what it starts is no coroutine, or ends without taking an item; let "
      "each loop over the lev::items that it is given"));
}

void refuse_width() {
  throw error(status::too_big, -1, "interleave: n is above 64, the most items in flight");
}

void refuse_stacks() {
  throw error(status::out_of_memory, -1,
              "interleave: no stacks for the items in flight; use a smaller n, or raise the limits "
              "of address space or of mappings");
}

}  // namespace detail
}  // namespace lev
