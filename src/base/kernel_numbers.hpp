// Linux constants that the headers of glibc 2.28 and Linux 4.18 lack, with which packages for most
// systems are built. A kernel that does not know one answers ENOSYS or EINVAL, whatever the headers
// were. System calls have had the same number on all architectures since 5.1.
#pragma once

#include <cstdint>

namespace lev::kernel {

constexpr long pidfd_send_signal = 424;  // Linux 5.1
constexpr long pidfd_open = 434;         // 5.3
constexpr long close_range = 436;        // 5.9

constexpr int seal_future_write = 0x10;  // F_SEAL_FUTURE_WRITE, 5.1
constexpr int wait_for_pidfd = 3;        // P_PIDFD, 5.4
constexpr int peer_pidfd = 77;           // SO_PEERPIDFD, 6.5

}  // namespace lev::kernel
