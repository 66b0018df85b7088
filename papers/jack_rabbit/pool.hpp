// Jack Rabbit (S0, chapter 4): a thread pool over a work queue of three levels.
//
//   1. The PPE's caller posts tasks one by one into the prefilter, under its lock; the number of
//      jobs is an atomic counter. The prefilter is bounded: the caller waits while it is full.
//   2. The PPE's scheduler moves them to the reorder buffer (ROB), under both locks, and runs the
//      dicer over it (Figure 4.6), which goes through tasks that cannot be diced as well.
//   3. A worker checks out tasks into its inbox, which has room for two (Figure 4.4, section 4.8):
//      it gets the whole ready buffer under the fetch lock; when that is empty it gets the ROB,
//      under its lock, and moves a part of it.
//   4. The worker gets the task's object, its program when that is another than the last one's,
//      its arguments and its data; with double buffering the next task's meanwhile. It puts what
//      the task has written, and counts down. The worker that comes to 0, when the caller has
//      ended, closes the gate of the workers; the last to enter it opens the gate of the PPE. Gates
//      are built on top of the spin lock (section 4.4), which every change of one takes.
#pragma once

#include <leveret_papers/world.hpp>

#include <array>
#include <functional>

namespace leveret_papers {

// A place in memory and how many bytes are there; at most 16 KiB, a multiple of 16.
struct rabbit_bytes {
  cell::ea_t ea = 0;
  std::uint32_t bytes = 0;
};

struct rabbit_task {
  std::uint32_t kind = 0;  // which program
  std::int64_t work = 0;   // cycles
  std::array<rabbit_bytes, 2> in{};
  rabbit_bytes out{};  // from the last place of `in` that has bytes, or from the first
  std::uint32_t first = 0;
  std::uint32_t count = 1;  // pieces that it may be diced into: first, first + 1, ...
};

// Tasks until a barrier. serial: cycles of the PPE before them. is_relaunch: the caller has these
// tasks from the batch before, and posts them again.
struct rabbit_batch {
  std::vector<rabbit_task> tasks;
  std::int64_t serial = 0;
  bool is_relaunch = false;
};

struct rabbit_pool {
  unsigned spes = 6;
  bool is_double_buffered = false;
  bool has_dicer = true;  // the rival of section 5.3, MARS, has none
  // Not empty: tasks are diced, and this is the work of a piece, in cycles.
  std::vector<std::int64_t> pieces{};
  // What a task does with its data, where that matters: (task, first place, second place).
  std::function<void(const rabbit_task&, void*, void*)> body{};
};

// The batches of a run, whose data they make on the machine.
using rabbit_batches = std::function<std::vector<rabbit_batch>(cell::machine&)>;

struct rabbit_outcome {
  std::vector<double> seconds;  // of each batch
  std::uint64_t executed = 0;
  std::uint64_t diced = 0;  // tasks that became several
};

// look: at the data, before the machine is gone.
rabbit_outcome run_rabbit(world& w, const rabbit_pool& what, const rabbit_batches& make,
                          const std::function<void(cell::machine&)>& look = {});

// Figure 4.6: how many tasks the dicer asks each of the ROB's for; 0 when it does nothing.
std::uint32_t dicer_asks(std::uint32_t size, std::uint32_t threshold, std::uint32_t workers);

}  // namespace leveret_papers
