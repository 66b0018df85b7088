// role: whether this process is a host, or was started to give another one its workers. A program
// that is started as a zygote runs the constructors of its static objects like any other. Runtimes
// that they open must not start a zygote in turn, which would do the same.
#pragma once

#include <sys/socket.h>

namespace lev {

enum class process_role {
  host,
  starting,  // of a zygote that still runs constructors, or has not called run_worker_program()
  worker     // a zygote, or a process that was forked from one
};

// role() reads the environment when it is first called, while the program loads: later the number
// in a variable may be that of another socket. take_role() is called before a process that becomes
// a zygote has threads.
process_role role() noexcept;
void take_role(process_role now) noexcept;

// The number of this process among its pool's workers, from 0; -1 when it is not one. Set once, by
// a worker that has just been forked.
int worker_number() noexcept;
void take_worker_number(int number) noexcept;

// The variables that tell a started program to be a zygote: the host program itself, or one named
// by config.processes.worker_command. Their value is a socket's number.
constexpr const char* started_again_variable = "LEVERET_ZYGOTE";
constexpr const char* worker_program_variable = "LEVERET_WORKER_SOCKET";

// host_socket() returns the socket that a variable names, or -1: there is none, or it was not made
// by a process of this user for a zygote. The holder of that socket decides what code this process
// runs.
int host_socket(const char* variable) noexcept;

// made_by() tells which process has made the socket, or its other end. False: the system does not
// say.
bool made_by(int socket, ucred* who) noexcept;

// open_host() returns a pidfd of the process that made the socket. -1, with ESRCH in errno: it has
// ended; with another number: it cannot be watched.
int open_host(int socket) noexcept;

// can_watch_processes() tells whether the kernel has pidfds (Linux 5.3), and lets them be used.
bool can_watch_processes() noexcept;

// is_privileged() tells that the program has rights that its user does not have (set-user-id,
// set-group-id, file capabilities), while the user has chosen its environment and its files.
bool is_privileged() noexcept;

// acts_for_another() tells that the effective user or group is not the real one (seteuid, setegid).
// A program that such a process starts is privileged.
bool acts_for_another() noexcept;

}  // namespace lev
