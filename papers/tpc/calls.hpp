// TPC (S2): a queue of descriptors in each SPE's local store, filled by the PPE; a completion queue
// in memory, a line for each slot, filled by the SPE.
//
//   1. The PPE takes the next SPE in turn whose slot is free, and stores the descriptor there over
//      MMIO, or has the SPE's MFC fetch it.
//   2. The SPE sees the descriptor, builds the list of its arguments and gets them; before it runs
//      one task it fetches for the next. Arguments with a stride are lists of the MFC's.
//   3. It runs the task, puts results back, and writes the completion, by putqlluc or a plain put.
//   4. The PPE sees the completion when it needs the slot, or waits for all.
#pragma once

#include <leveret_papers/world.hpp>

namespace leveret_papers {

// Tasks that may run in any order; the next step begins when all have ended.
struct tpc_step {
  std::uint32_t tasks = 0;
  unsigned arguments = 0;
  std::uint32_t bytes_in = 0;
  std::uint32_t bytes_out = 0;
  std::int64_t work = 0;
  std::int64_t serial = 0;  // cycles of the PPE's own work before the step
  // Of arguments with a stride: as many rows each way, which begin that many bytes apart.
  std::uint32_t rows = 1;
  std::uint32_t stride = 0;
};

struct tpc_calls {
  unsigned spes = 6;
  unsigned queue = 1;
  unsigned tasks = 400;
  unsigned arguments = 0;
  std::uint32_t bytes_in = 0;  // of all arguments
  std::uint32_t bytes_out = 0;
  std::int64_t work = 0;    // cycles of a task
  bool is_generic = false;  // tpc_call() rather than tpc_callN()
  bool starts_by_dma = false;
  bool ends_by_dma = false;
  bool waits_for_each = false;
  std::vector<tpc_step> steps{};  // in place of the one that the fields above are
};

struct tpc_outcome {
  double seconds = 0;
  double cycles_each = 0;       // of a task
  double bytes_per_second = 0;  // in and out
  double waiting_share = 0;     // of the SPEs' time: for arguments that are not there, or not gone
};

tpc_outcome run_tpc(world& w, const tpc_calls& what);

}  // namespace leveret_papers
