// remote_line: the tasks on their way to and from one worker in another process, as the host keeps
// them. Whoever tends the line (tend.hpp) has its turn; what the worker process can write to is the
// machine's business and nothing of it is trusted here.
#ifndef LEVERET_WORKER_REMOTE_LINE_HPP
#define LEVERET_WORKER_REMOTE_LINE_HPP

#include "sync/pass_lock.hpp"
#include "worker/participant.hpp"

namespace lev {

constexpr std::uint32_t line_jobs_max = 16;  // a power of two

struct alignas(line_pair_bytes) remote_line {
  // Held by the participant that tends the line; protects all that follows.
  pass_lock<> turn;
  std::uint32_t posted = 0;     // tasks sent, ever
  std::uint32_t collected = 0;  // tasks that came back, ever
  bool is_up = true;            // false between a worker's death and its successor
  // Time limit: which task is timed, whether it was seen running, and since when.
  std::uint32_t timed = 0;
  bool timed_is_begun = false;
  std::uint64_t timed_since_ns = 0;
  std::uint64_t last_end_ns = 0;  // for the trace
  // Written by the turn's holder, read by those who look for room: tasks in the line. Publishes
  // nothing.
  atomic<std::uint32_t> load{0};
  // Written by the turn's holder, read by those who look for room: 1 while the store has none for
  // the next task, until an end frees some. Publishes nothing.
  atomic<std::uint32_t> is_full{0};
  job jobs[line_jobs_max];

  job& job_at(std::uint32_t n) noexcept { return jobs[n % line_jobs_max]; }
};

}  // namespace lev

#endif
