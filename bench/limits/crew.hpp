// The limit of parallel work without a runtime: one thread per core, each with a fixed share of a
// loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace bench {

// Threads on a core each that sleep between loops. The calling thread is one of them.
class crew {
 public:
  explicit crew(std::size_t thread_count);
  ~crew();
  crew(crew&&) = delete;

  // split() runs body(begin, end) on every thread, over equal parts of [0, count), and returns when
  // all are done.
  void split(std::size_t count, const std::function<void(std::size_t, std::size_t)>& body);

 private:
  void serve(std::size_t index);
  void run_part(std::size_t index) const;

  const std::size_t size_;
  // Set by split() before it advances epoch_, read by the threads after.
  std::size_t count_ = 0;
  const std::function<void(std::size_t, std::size_t)>* body_ = nullptr;
  // Written by split() and the destructor, read by the threads: publishes count_ and body_.
  alignas(128) std::atomic<std::uint32_t> epoch_{0};
  // Written by the threads, read by split(): parts still running.
  alignas(128) std::atomic<std::uint32_t> running_{0};
  std::vector<std::thread> threads_;
};

// copy_gbps() copies `bytes` bytes once with every thread of the crew: bytes read and written per
// nanosecond.
double copy_gbps(crew& threads, char* to, const char* from, std::size_t bytes);

}  // namespace bench
