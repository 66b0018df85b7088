// The counters of a runtime since it was opened.
#ifndef LEVERET_COUNTERS_HPP
#define LEVERET_COUNTERS_HPP

#include <cstdint>

namespace lev {

// Events since open, summed over all workers and host threads. Reading does not disturb them. A
// wait for a ticket may return before its task is counted as completed, as the callbacks come
// first; wait_for_completion() returns afterwards.
struct counters {
  std::uint64_t submitted;  // tasks accepted: pieces of diced tasks, and one for a whole bulk, too
  std::uint64_t completed;
  std::uint64_t failed;
  std::uint64_t direct;  // tasks written straight into an idle worker's mailbox
  std::uint64_t stolen;
  std::uint64_t diced;         // pieces cut off by dicing
  std::uint64_t passes;        // scheduler passes run
  std::uint64_t parks;         // times a worker went to sleep
  std::uint64_t staged_bytes;  // copied into local stores
  std::uint64_t bad_filters;
  std::uint64_t helped;  // tasks run by waiting host threads
  std::uint64_t deaths;  // worker processes that died and were replaced
  std::uint64_t reruns;  // tasks run again because their worker died in them
};

// One worker's share. Index workers() is the sum over helping host threads.
struct worker_counters {
  std::uint64_t completed;
  std::uint64_t busy_ns;  // inside procedures; counted while tracing is on, else 0
};

}  // namespace lev

#endif
