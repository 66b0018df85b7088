// Shortages of the system: how much memory is left, a signal turned into an error, and what the
// user can do about each.
#ifndef LEVERET_SHARE_SHORTAGE_HPP
#define LEVERET_SHARE_SHORTAGE_HPP

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

// While it lives, a file that would grow beyond the limit on file size (ulimit -f) is an error
// (EFBIG), where the kernel would otherwise end the program by SIGXFSZ. For this thread; keeps
// errno.
class no_size_signal {
 public:
  no_size_signal() noexcept;
  ~no_size_signal();
  no_size_signal(const no_size_signal&) = delete;
  no_size_signal& operator=(const no_size_signal&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

// Advice for the user of a system that refuses with this errno; "" if there is none.
const char* next_step(int code) noexcept;

// Whether the request may succeed a moment later, or if it is smaller; other errors are final.
bool is_shortage(int code) noexcept;

}  // namespace lev

#endif
