// Messages between host and zygote, with files.
#include "machines/processes/keeper.hpp"
#include "machines/processes/zygote.hpp"
#include "share/zone.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace lev::processes {

namespace {
constexpr unsigned files_max = 6;
static_assert(files_max == member_files + 1);  // a keeper's note: the member's, and a lane
union control_room {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int) * files_max)];
};
}  // namespace

bool send_message(int socket, const void* data, std::size_t bytes, const int* files,
                  unsigned file_count, int flags) noexcept {
  LEV_ASSERT(file_count <= files_max);
  iovec part{const_cast<void*>(data), bytes};
  control_room control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file_count != 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * file_count);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * file_count);
    std::memcpy(CMSG_DATA(head), files, sizeof(int) * file_count);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

ssize_t receive_message(int socket, void* data, std::size_t bytes, int* files, unsigned file_max,
                        int flags) noexcept {
  LEV_ASSERT(file_max <= files_max);
  iovec part{data, bytes};
  control_room control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got;
  do {
    got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  for (unsigned i = 0; i < file_max; ++i) files[i] = -1;
  if (got < 0) return errno == ECONNRESET ? 0 : -1;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file;
      std::memcpy(&file, CMSG_DATA(head) + i * sizeof(int), sizeof file);
      if (i < file_max) {
        files[i] = out_of_the_way(file);
      } else {
        close(file);
      }
    }
  }
  return got;
}

}  // namespace lev::processes
