// socket_name: a name in the abstract namespace of sockets, one for each user. The process that
// binds it has it until its last holder is gone, however that ends: the kernel frees it, and no
// process has to clean up.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace lev {

class socket_name {
 public:
  // "leveret-KIND-USER-WHICH"; at most 100 bytes.
  socket_name(const char* kind, const char* which) noexcept {
    name_.sun_family = AF_UNIX;
    const int length =
        std::snprintf(name_.sun_path + 1, sizeof name_.sun_path - 1, "leveret-%s-%u-%s", kind,
                      static_cast<unsigned>(geteuid()), which);
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    static_cast<std::size_t>(length));
  }
  const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&name_); }
  socklen_t bytes() const noexcept { return bytes_; }

 private:
  sockaddr_un name_{};
  socklen_t bytes_ = 0;
};

}  // namespace lev
