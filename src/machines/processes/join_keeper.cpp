// How a host becomes a member of a shared pool: it connects to the pool's name; if no process
// answers, it binds the name itself, starts a keeper behind it, and connects again.
//
// The name is a socket's in the abstract namespace, which the kernel takes back with the last
// process that holds it. So one of several hosts that start together gets it, and a host that dies
// leaves none behind.
#include "machines/processes/berth.hpp"
#include "machines/processes/poll_until.hpp"
#include "machines/processes/pool.hpp"
#include "share/faults.hpp"
#include "share/own_files.hpp"
#include "share/role.hpp"
#include "share/socket_name.hpp"
#include "sync/futex.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace lev::processes {

namespace {

int open_socket() noexcept {
  if (fault_at("host.socketpair")) return -1;
  return out_of_the_way(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

// Another user may have taken the name, to be given our memory.
bool is_ours(int socket) noexcept {
  ucred who{};
  return made_by(socket, &who) && who.uid == geteuid();
}

std::uint64_t mix(std::uint64_t mark, const void* data, std::size_t bytes) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) mark = (mark ^ p[i]) * 0x100000001b3;  // FNV-1a
  return mark;
}

}  // namespace

// A number that tells the worker programs of two hosts apart: functions are found by their offsets
// in a program.
std::uint64_t pool::program_mark() const noexcept {
  std::uint64_t mark = 0xcbf29ce484222325;
  struct stat about{};
  const char* const* command = settings_.processes.worker_command;
  if (command == nullptr && stat("/proc/thread-self/exe", &about) == 0) {
    mark = mix(mark, &about.st_dev, sizeof about.st_dev);
    mark = mix(mark, &about.st_ino, sizeof about.st_ino);
  }
  for (; command != nullptr && *command != nullptr; ++command)
    mark = mix(mark, *command, std::strlen(*command) + 1);
  return mark;
}

// Gives the name to a new keeper. False: another process has it by now, or why() says more.
bool pool::start_keeper() {
  const socket_name name("pool", settings_.processes.pool);
  int listener = open_socket();
  if (listener < 0) return fail("socket");
  if (bind(listener, name.address(), name.bytes()) != 0) {
    if (errno != EADDRINUSE) fail("naming the pool's socket");
    close_file(&listener);
    return false;
  }
  constexpr int backlog = members_max;
  LEV_ASSERT(is_shared() && socket_ < 0);  // no keeper is asked while one starts
  bool is_started = listen(listener, backlog) == 0 || fail("listening on the pool's socket");
  is_started = is_started && spawn_zygote(listener);
  close_file(&listener);
  return is_started;
}

// Connects once. False with why(): the pool refuses. False without: there is no keeper, or it is
// gone.
bool pool::knock() noexcept {
  const socket_name name("pool", settings_.processes.pool);
  socket_ = open_socket();
  if (socket_ < 0) return fail("socket");
  bool is_member = connect(socket_, name.address(), name.bytes()) == 0;
  if (is_member && !is_ours(socket_)) {
    errno = EACCES;
    is_member = fail("the pool's name is taken by another user");
  }
  is_member = is_member && introduce() && await_ready();
  if (!is_member) close_file(&socket_);
  return is_member;
}

bool pool::join_keeper() {
  why_[0] = 0;  // the reason of an earlier failure
  constexpr int keepers_max = 3;
  const std::uint64_t deadline_ns = in_ms(start_ms_max);
  int keepers = 0;
  do {
    if (knock()) return true;
    if (why_[0] != 0) return false;
    if (keepers == keepers_max) return fail("the pool's keeper ends as soon as it is started");
    if (start_keeper()) {
      ++keepers;
    } else if (why_[0] != 0) {
      return false;
    } else {
      pause_for_ms(1);  // another process is about to listen
    }
    // Its first process is over when the keeper is on its own, or could not be started. A program
    // of worker_command that starts no keeper may go on for ever.
    pollfd over{zygote_file_, POLLIN, 0};
    if (zygote_file_ >= 0 && poll_until({&over, 1}, deadline_ns) != 1) kill_zygote();
    reap_zygote();
  } while (monotonic_ns() < deadline_ns);
  errno = ETIMEDOUT;
  return fail("waiting for the pool's keeper");
}

// Maps the page of the next keeper in place of the last one's, which other threads may be reading.
template <class Page>
bool pool::map_page(int* file, int rights, Page** page) noexcept {
  const int how = *page == nullptr ? MAP_SHARED : MAP_SHARED | MAP_FIXED;
  if (*file < 0) errno = EMFILE;  // no number was free for the file
  auto* place = const_cast<std::remove_const_t<Page>*>(*page);
  void* p = *file < 0 ? MAP_FAILED : mmap(place, sizeof(Page), rights, how, *file, 0);
  close_file(file);
  if (p == MAP_FAILED) return fail("mapping the pool's page");
  *page = static_cast<Page*>(p);
  return true;
}

bool pool::map_pages(int (&files)[2]) noexcept {
  const bool is_there = map_page(&files[0], PROT_READ, &page_);
  return map_page(&files[1], PROT_READ | PROT_WRITE, &alarms_) && is_there;
}

bool pool::is_away(std::uint32_t worker) const noexcept {
  LEV_DCHECK(worker < workers_);
  return page_ != nullptr && page_->berths[worker].is_away_from(member_.load(memory_order_relaxed));
}

bool pool::has_left_us(std::uint32_t worker, std::uint32_t number) const noexcept {
  LEV_DCHECK(worker < workers_);
  if (is_confined()) return is_away(worker) && !states_[worker].lane->was_claimed(number);
  const std::uint32_t process = board_->shown.worker_signs[worker].pid.load(memory_order_relaxed);
  return page_ != nullptr && process != 0 &&
         page_->berths[worker].is_away_from(member_.load(memory_order_relaxed), process);
}

// Two cores, tasks of 30 us, one by one: two hosts that poll for 50 us before they sleep take 31 to
// 80 us a task, those that sleep at once 44; six hosts 52 and 28.
bool pool::is_crowded() const noexcept {
  return page_ != nullptr && page_->members.load(memory_order_relaxed) >= cores_;
}

// Tasks that were taken back do not count: the worker skips them.
bool pool::has_task_under_way(std::uint32_t worker) const noexcept {
  const worker_state& s = at(worker);
  for (std::uint32_t n = s.collected.load(memory_order_relaxed);
       n != s.posted.load(memory_order_relaxed);) {
    if ((s.taken_back & bit_of(++n)) == 0) return true;
  }
  return false;
}

// The keeper sees the end of the socket, and takes this host out of all workers. If the runtime is
// down, workers may still be in its tasks: the keeper kills those.
void pool::leave_keeper() noexcept {
  bool is_idle = true;
  for (std::uint32_t i = 0; i < workers_; ++i) is_idle &= !has_task_under_way(i);
  const order o{order::leave, 0, 0};
  if (is_idle) send_message(socket_, o);
  shutdown(socket_, SHUT_RDWR);  // also if a child of this process holds it, too
  close_file(&socket_);
  for (std::uint32_t i = 0; i < workers_; ++i) close_file(&states_[i].pidfd);
}

}  // namespace lev::processes
