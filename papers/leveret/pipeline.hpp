// Leveret's own pipeline on the hardware of a paper: the machine `sim` with that machine file.
//
// A task is what a row of a paper says of it: how long its body takes, and what it reads and
// writes. Queues, stages and copies are Leveret's own. The machine prices copies, polls and
// wake-ups; what the pipeline does beside them is priced here, by amounts of work: lines of memory
// that another core wrote last, at the price of the machine file, and instructions (costs.toml).
#pragma once

#include <leveret/leveret.hpp>
#include <leveret_papers/world.hpp>

#include <span>

namespace leveret_papers {

struct pipeline_set_up {
  const char* machine = "cell-ps3";
  unsigned workers = 6;
  // Tasks whose arguments are fetched ahead, with the one that runs: 1 is a single buffer.
  unsigned depth = 2;
};

// Memory that a task reads, and that it writes; the second may be a part of the first.
struct pipeline_task {
  std::int64_t work = 0;  // cycles
  std::span<char> first{};
  std::span<char> second{};
  std::span<char> written{};
};

class pipeline {
 public:
  pipeline(world& w, const pipeline_set_up& what);
  ~pipeline() { world_.note_run(runtime_.trace_hash()); }
  pipeline(pipeline&&) = delete;

  // By the host, which pays for it.
  void post(const pipeline_task& t);
  lev::ticket submit(const pipeline_task& t);
  // Pieces [first, first + count), each with a row of bytes that it writes, to be diced. `before`:
  // sums of the pieces' cycles, as long as the pipeline lives.
  void post_pieces(const std::vector<std::int64_t>& before, std::uint32_t first,
                   std::uint32_t count, std::span<char> rows);
  // One has ended, of tickets that are not empty; which one.
  std::size_t wait_any(std::span<lev::ticket> open);
  // Until all have ended. Throws std::runtime_error when a task failed.
  void finish();

  // The host's own work.
  void pass(cycles n) { runtime_.pass_time(static_cast<std::uint64_t>(n.count)); }
  double seconds() const { return static_cast<double>(runtime_.now_ns()) * 1e-9; }

 private:
  lev::descriptor draft(const pipeline_task& t) const;

  world& world_;
  cycles of_host_;    // what a submit takes
  cycles of_worker_;  // what a task takes beside its body and its copies
  lev::runtime runtime_;
};

}  // namespace leveret_papers
