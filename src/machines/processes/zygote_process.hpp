// zygote_process: a zygote's state, and its steps. zygote_members.cpp has those that concern
// members, zygote_own.cpp those for workers that serve one member, zygote_workers.cpp those for
// workers that serve all.
#pragma once

#include "machines/processes/berth.hpp"
#include "machines/processes/trial.hpp"

#include <poll.h>

#include <deque>
#include <vector>

namespace lev::processes {

// A member of which a worker must still be told, with the file of its lane.
struct late_note {
  std::uint32_t member;
  int lane_file;
};

struct kept_worker {
  pid_t pid = 0;
  int notes = -1;
  std::uint32_t killed_for = 0;  // the member that wanted it, plus 1; 0: none
  bool is_for_gone = false;      // that has left since; another may have its number
  bool is_deaf = false;          // it has closed its end of the notes
  std::uint32_t unread = 0;      // members it was told of since it was last seen to have read all
  std::deque<late_note> late = {};
};

// The place of one member's lane to one worker; 0: none yet.
struct lane_place {
  std::uint64_t begin = 0;
  bool is_attached = false;
  pid_t own = 0;  // the worker, where it serves one member
};

struct member {
  int socket = -1;  // -1: there is no member of this number
  pid_t pid = 0;
  int pidfd = -1;
  bool is_met = false;
  bool is_leaving = false;  // it has nothing under way
  introduction about;
  int files[file_of::member_count] = {-1, -1, -1, -1, -1};
  const processes::board* board = nullptr;
  verdicts known;                 // of its book's libraries, for confined workers
  std::vector<lane_place> lanes;  // by worker
  std::deque<report> untold;      // its socket was full
};

class zygote_process {
 public:
  zygote_process(int socket, bool is_door, const fork_hooks& hooks) noexcept
      : listener_(is_door ? socket : -1), only_(is_door ? -1 : socket), hooks_(hooks) {}

  [[noreturn]] void run();

 private:
  void list_watched(std::vector<pollfd>& watched, std::vector<std::uint32_t>& whose) const;
  int longest_wait_ms(bool is_one_late) const noexcept;
  void hear_member(std::uint32_t m, const pollfd& socket, const pollfd& process);
  bool open() noexcept;
  bool open_door() noexcept;
  void admit();
  void answer_visitor(int socket) noexcept;
  void take_in(std::uint32_t m, int socket, pid_t pid, int pidfd) noexcept;
  void read_message(std::uint32_t m);
  void read_introduction(std::uint32_t m) noexcept;
  const char* objection(const introduction& about) const noexcept;
  bool is_taken(std::uint32_t m, std::uint64_t begin, std::uint64_t bytes) const noexcept;
  void refuse(std::uint32_t m, const char* why, int code,
              std::uint32_t how = report::refused) noexcept;
  const char* map_memory(member& it) noexcept;
  const char* try_out(const member& it) noexcept;
  void take_order(std::uint32_t m, const order& o, int file);
  void start(std::uint32_t m, const order& o, int file);
  bool ensure_worker(std::uint32_t worker);
  bool attach(std::uint32_t m, std::uint32_t worker, int lane_file) noexcept;
  void detach(std::uint32_t m, std::uint32_t worker) noexcept;
  // True: no worker is still to be told of a member.
  bool tell_late() noexcept;
  void tell_late(std::uint32_t worker) noexcept;
  bool forget_late(std::uint32_t m, std::uint32_t worker) noexcept;
  bool send_note(std::uint32_t worker, const note& n, std::span<const int> files = {}) noexcept;
  bool kill_if_serving(std::uint32_t m, std::uint32_t worker) noexcept;
  bool kill_if_free(std::uint32_t m, std::uint32_t worker) noexcept;
  std::uint32_t served_last(std::uint32_t worker) const noexcept;
  void end_task(std::uint32_t m, const order& o);
  void give_up(std::uint32_t m, std::uint32_t worker);
  void drop_member(std::uint32_t m) noexcept;
  void drop_dead_member(std::uint32_t m);
  void reap();
  void report_death(std::uint32_t worker, int how);
  // Whether workers serve one member: in a private pool, and confined ones.
  bool has_own_workers() const noexcept {
    return listener_ < 0 || rule_.level == lev::isolation::confined;
  }
  void kill_own(std::uint32_t m, std::uint32_t worker) noexcept;
  void start_own(std::uint32_t m, const order& o, int file);
  [[noreturn]] void begin_own(std::uint32_t m, const order& o, int lane_file);
  void leave_files() noexcept;
  bool report_own_death(pid_t pid, int how);
  void end_own(std::uint32_t m) noexcept;
  bool has_own(std::uint32_t m, std::uint32_t worker) const noexcept;
  void pass_turn(std::uint32_t worker) noexcept;
  berth<>* leave_common(std::uint32_t worker) noexcept;
  berth<>& leave_berths(std::uint32_t worker) noexcept;
  bool send(std::uint32_t m, const report& r, int pidfd) noexcept;
  void report_to(std::uint32_t m, const report& r, int pidfd = -1, bool is_full = false);
  void report_untold(std::uint32_t m);
  void end_if_alone() noexcept;
  [[noreturn]] void end_as_deaf(int code) noexcept;
  [[noreturn]] void begin_worker(std::uint32_t worker, int notes);

  int listener_;  // -1: the pool is not shared
  int only_;      // the socket of its only member, until that has joined
  fork_hooks hooks_;
  int signals_ = -1;
  int page_file_ = -1;
  int alarms_file_ = -1;
  pool_page* page_ = nullptr;  // of a shared pool, as the next
  pool_alarms* alarms_ = nullptr;
  member members_[members_max];
  kept_worker workers_[workers_max];
  std::uint32_t present_ = 0;
  bool had_visitors_ = false;  // hosts have connected, whether they became members or not
  bool had_members_ = false;
  bool lacks_for_visitor_ = false;  // a host waits that could not be admitted
  bool is_door_shut_ = false;       // no host can be
  introduction plan_of_;  // the host whose heap is mapped, for its test's plan; heap_begin 0: none
  introduction rule_;     // the first member's: others must agree with it
};

}  // namespace lev::processes
