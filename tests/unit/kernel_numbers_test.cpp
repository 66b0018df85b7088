// Our own numbers of Linux, and names of signals, beside those of the headers that are here.
#include "base/kernel_numbers.hpp"

#include "base/signal_name.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstring>

namespace lev {
namespace {

TEST(kernel_numbers, are_those_of_the_headers) {
#ifdef SYS_pidfd_send_signal
  EXPECT_EQ(kernel::pidfd_send_signal, SYS_pidfd_send_signal);
#endif
#ifdef SYS_pidfd_open
  EXPECT_EQ(kernel::pidfd_open, SYS_pidfd_open);
#endif
#ifdef SYS_close_range
  EXPECT_EQ(kernel::close_range, SYS_close_range);
#endif
#ifdef F_SEAL_FUTURE_WRITE
  EXPECT_EQ(kernel::seal_future_write, F_SEAL_FUTURE_WRITE);
#endif
#ifdef SO_PEERPIDFD
  EXPECT_EQ(kernel::peer_pidfd, SO_PEERPIDFD);
#endif
}

TEST(signal_name, is_without_sig) {
  EXPECT_STREQ(signal_name(SIGSEGV), "SEGV");
  EXPECT_STREQ(signal_name(SIGIOT), "ABRT");
  for (const int none : {-1, 0, 32, 64, 1000}) EXPECT_STREQ(signal_name(none), "RT") << none;
#if __GLIBC_PREREQ(2, 32)
  for (int number = 0; number <= 64; ++number) {
    const char* known = sigabbrev_np(number);
    EXPECT_STREQ(signal_name(number), known == nullptr ? "RT" : known) << number;
  }
#endif
}

}  // namespace
}  // namespace lev
