// The slow half of an asymmetric fence.
//
// A thread that is about to sleep must see every task that was queued before its sleepers' count
// became visible. The queuing thread would need a full fence per task for that. Instead the
// sleeper, which is about to make a system call anyway, makes all other threads of this process
// execute one (Linux membarrier, private expedited). Where the kernel refuses, the queuing side
// uses a locked instruction: see inbox::try_push(). Where it refuses later, the sleeper waits
// instead, for longer than a core keeps back what it wrote.
#pragma once

namespace lev {

// Whether heavy_fence() works here. Decided once per process; cheap.
bool asymmetric_fences() noexcept;

// After it, every access that another thread of this process made before is visible here, and the
// other way round.
void heavy_fence() noexcept;

}  // namespace lev
