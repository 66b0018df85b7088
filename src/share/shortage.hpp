// Shortages of the system: how much memory is left, a signal turned into an error, and what the
// user can do about each.
#pragma once

#include <signal.h>

#include <cstdint>

namespace lev {

// How much memory could be taken before the kernel has to kill a process for it, by its own
// estimate, and whose limit that is.
struct memory_left {
  std::uint64_t bytes = ~std::uint64_t{0};  // not known
  const char* where = "this computer";
};
// Reads below `root`, which tests choose. About 50 us.
memory_left find_memory_left(const char* root = "") noexcept;

// Which limit the kernel may have kept to when it had no memory (ENOMEM): it does not say, so only
// one that this process is under is named. `not_seen`: there is none, but memory is short, perhaps
// in a control group.
enum class memory_limit { not_seen, address_space, data, mappings, promises };
memory_limit find_memory_limit(const char* root = "") noexcept;
// What to do about that, behind what else would help.
const char* raise_memory_limit(memory_limit found) noexcept;

// While it lives, a write of this thread that fails returns an error where the kernel would
// otherwise end the program by a signal. A file that would grow beyond the limit on file size
// (ulimit -f) gives EFBIG, not SIGXFSZ; a pipe without a reader gives EPIPE, not SIGPIPE. Keeps
// errno.
class no_write_signals {
 public:
  no_write_signals() noexcept;
  ~no_write_signals();
  no_write_signals(no_write_signals&&) = delete;

 private:
  sigset_t before_;
  sigset_t taken_;  // those of the two that were not pending before
};

// Advice for the user of a system that refuses a worker with this errno, or shared memory that is
// no worker's; "" if there is none.
const char* next_step(int code) noexcept;
const char* next_step_of_memory(int code) noexcept;

// Whether the request may succeed a moment later, or if it is smaller; other errors are final.
bool is_shortage(int code) noexcept;

}  // namespace lev
