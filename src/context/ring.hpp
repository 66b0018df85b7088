// A ring of strands: contexts that run the items of one interleave() in turns, on one thread.
//
//   1. run_ring() takes as many strands as it needs from the thread's pool and links them.
//   2. It switches to the first, which runs items; when an item gives way, it switches to the
//      next strand directly, and so on round the ring.
//   3. A strand that finds no item left takes itself out of the ring and switches to the next; the
//      last one switches back to the caller.
// Nested calls take other strands from the same pool, and their caller is a strand of the outer
// ring.
#pragma once

#include <leveret/interleave.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "context/context.hpp"

namespace lev {

// One context of a ring. The pool owns it while it runs nothing.
struct strand_stack : strand {
  strand_stack() noexcept : strand(&strand_stack::give_way) {}

  // Links this strand behind `before`; the opposite is unlink().
  void link_after(strand_stack& before) noexcept;
  void unlink() noexcept;
  bool is_alone() const noexcept { return next == this; }

  void** place() noexcept { return &stack_pointer_; }

  // Goes on with the next strand. Precondition: it runs.
  static void give_way(strand* from);

  strand_stack* next = this;
  // The thread's; empty between two hops: a strand that gives way while it handles an exception
  // keeps it meanwhile.
  exception_state* exceptions = nullptr;
  context own;
  strand_stack* before = this;
  struct ring* call = nullptr;
};

// One call of run_ring(), on the stack of its caller.
struct ring {
  detail::cursor& items;
  detail::run_items run;
  void* fn;
  context caller;
  void* caller_place = nullptr;
  std::exception_ptr failure;
};

// Strands with their stacks, for one thread.
class strand_stack_pool {
 public:
  // take() fills strands[0..count) with strands that have a stack; false when there is no memory,
  // and then none is taken.
  bool take(unsigned count, strand_stack** strands) noexcept;
  void give_back(unsigned count, strand_stack** strands) noexcept;
  std::size_t idle_count() const noexcept { return idle_.size(); }

 private:
  bool make_one() noexcept;

  std::vector<std::unique_ptr<strand_stack>> idle_;
  std::size_t made_count_ = 0;
};

}  // namespace lev
