// A handler of exit() notes the thread that it runs on.
#include "sync/exiting.hpp"

#include "sync/env.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace lev {

namespace {

// Each takes 32 bytes of the C library for ever. It cannot be known which runtimes are static, and
// many may come and go before one that is.
constexpr unsigned watches_max = 1u << 14;

// Written by watch_exit(), read by it: how many there are of each kind. Publishes nothing.
constinit atomic<unsigned> all_watches[2] = {};
// Written by the handler, read by is_exiting(): the thread's number. Publishes nothing.
constinit atomic<long> exiting_thread{0};

void note_exit() noexcept {
  exiting_thread.store(syscall(SYS_gettid), memory_order_relaxed);
}

}  // namespace

void watch_exit(exit_watcher of) noexcept {
  atomic<unsigned>& watches = all_watches[static_cast<unsigned>(of)];
  if (watches.load(memory_order_relaxed) >= watches_max) return;
  watches.fetch_add(1, memory_order_relaxed);
  std::atexit(&note_exit);  // if there is no memory for it, exits go unnoticed
}

bool is_exiting() noexcept {
  const long thread = exiting_thread.load(memory_order_relaxed);
  return thread != 0 && thread == syscall(SYS_gettid);
}

}  // namespace lev
