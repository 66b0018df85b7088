// The role that the environment gives a process, and how much of that it believes.
#include "share/role.hpp"

#include "base/kernel_numbers.hpp"

#include <sys/auxv.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace lev {

namespace {

constinit process_role role_now = process_role::host;
constinit bool is_role_known = false;
constinit int own_worker_number = -1;

int socket_option(int socket, int name) noexcept {
  int value = -1;
  socklen_t bytes = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

// Whether an end of a connection has no name, like both ends of a socketpair().
bool is_unnamed(int (*name_of)(int, sockaddr*, socklen_t*), int socket) noexcept {
  sockaddr_un name{};
  socklen_t bytes = sizeof name;
  return name_of(socket, reinterpret_cast<sockaddr*>(&name), &bytes) == 0 &&
         bytes == sizeof name.sun_family;
}

// A pair's other end, or the socket of a shared pool; made by a process of this user.
bool is_from_host(int socket) noexcept {
  ucred who{};
  if (socket_option(socket, SO_DOMAIN) != AF_UNIX ||
      socket_option(socket, SO_TYPE) != SOCK_SEQPACKET || !made_by(socket, &who) ||
      who.uid != geteuid() || who.pid == getpid())
    return false;
  return socket_option(socket, SO_ACCEPTCONN) == 1 ||
         (is_unnamed(&getsockname, socket) && is_unnamed(&getpeername, socket));
}

}  // namespace

process_role role() noexcept {
  if (is_role_known) return role_now;
  const bool is_to_be_zygote =
      host_socket(started_again_variable) >= 0 || host_socket(worker_program_variable) >= 0;
  take_role(is_to_be_zygote ? process_role::starting : process_role::host);
  return role_now;
}

void take_role(process_role now) noexcept {
  is_role_known = true;
  role_now = now;
}

int worker_number() noexcept {
  return own_worker_number;
}

void take_worker_number(int number) noexcept {
  own_worker_number = number;
}

int host_socket(const char* variable) noexcept {
  // Not getenv(): the user of a privileged program has chosen the variable and the socket.
  const char* text = secure_getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*end != 0 || number > INT_MAX) return -1;
  const auto socket = static_cast<int>(number);
  return is_from_host(socket) ? socket : -1;
}

bool made_by(int socket, ucred* who) noexcept {
  socklen_t bytes = sizeof *who;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, who, &bytes) == 0 && bytes == sizeof *who;
}

int open_host(int socket) noexcept {
  int file = -1;
  socklen_t bytes = sizeof file;
  if (getsockopt(socket, SOL_SOCKET, kernel::peer_pidfd, &file, &bytes) == 0) return file;
  ucred who{};
  if (errno == ESRCH || !made_by(socket, &who)) return -1;
  if (who.pid <= 0) return errno = ENOENT, -1;  // a host of another pid namespace
  return static_cast<int>(syscall(kernel::pidfd_open, who.pid, 0));
}

bool can_watch_processes() noexcept {
  const int file = static_cast<int>(syscall(kernel::pidfd_open, getpid(), 0));
  if (file >= 0) close(file);
  return file >= 0 || (errno != ENOSYS && errno != EPERM);  // EPERM: a container's filter
}

bool is_privileged() noexcept {
  return getauxval(AT_SECURE) != 0;
}

bool acts_for_another() noexcept {
  return getuid() != geteuid() || getgid() != getegid();
}

}  // namespace lev
