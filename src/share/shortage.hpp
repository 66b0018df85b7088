// What the system does not give: how much memory there is, a signal that is an error instead, and
// what the user can do about each.
#ifndef LEVERET_SHARE_SHORTAGE_HPP
#define LEVERET_SHARE_SHORTAGE_HPP

#include <signal.h>

#include <cstdint>

namespace lev {

// How much memory could be taken before something has to be killed for it, by the kernel's own
// estimate, and whose limit it is.
struct memory_left {
  std::uint64_t bytes = ~std::uint64_t{0};  // not known
  const char* where = "this computer";
};
// Reads below `root`, which tests choose. About 50 us.
memory_left find_memory_left(const char* root = "") noexcept;

// While it lives, a file that would grow beyond the limit on files' size (ulimit -f) is an error
// (EFBIG), where the kernel would end the program by SIGXFSZ. Of this thread; keeps errno.
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

// What the user of a system that refuses with this errno can do; "" where nothing is known.
const char* next_step(int code) noexcept;

// Whether a moment later, or with less asked for, it may be there; all else is not to be had here.
bool is_shortage(int code) noexcept;

}  // namespace lev

#endif
