// Messages between host and zygote, with files.
#include "machines/processes/berth.hpp"
#include "machines/processes/zygote.hpp"
#include "share/own_files.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lev::processes {

namespace {
constexpr unsigned files_max = file_of::note_count;
union control_room {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int) * files_max)];
};
}  // namespace

bool send_bytes(int socket, std::span<const std::byte> bytes, std::span<const int> files,
                int flags) noexcept {
  LEV_ASSERT(files.size() <= files_max);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  control_room control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(head), files.data(), files.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_bytes(int socket, std::span<std::byte> bytes, std::span<int> files) noexcept {
  LEV_ASSERT(files.size() <= files_max);
  iovec part{bytes.data(), bytes.size()};
  control_room control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  // If the other end was closed with something unread, that is told once, and before what was sent
  // from there.
  bool was_reset = false;
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))));
  std::fill(files.begin(), files.end(), -1);
  if (got < 0) return errno == ECONNRESET ? 0 : -1;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file;
      std::memcpy(&file, CMSG_DATA(head) + i * sizeof(int), sizeof file);
      if (i < files.size()) {
        files[i] = out_of_the_way(file);
      } else {
        close(file);
      }
    }
  }
  return got;
}

}  // namespace lev::processes
