// pool: the host's side of the worker processes: zygote, lanes, book, and the state of each worker.
// It knows nothing of tasks.
#pragma once

#include "machine/machine.hpp"
#include "machines/processes/berth.hpp"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lev::processes {

// How long a zygote, or a worker of a runtime that opens, may take to answer, and any worker to be
// ready for its first task.
constexpr int start_ms_max = 20'000;

// How long a host that lacks something waits before it asks for it again. A shortage may last a
// second in all: a server that has used up its files closes some.
constexpr int shortage_pause_ms = 10;
constexpr int shortage_ms_max = 1'000;

class pool {
 public:
  static constexpr const char* two_users =
      "the program's effective user or group is not its real one (seteuid, setegid), and its "
      "worker processes would not trust it; have one user, or use the machine threads";
  explicit pool(const config& c) noexcept;
  ~pool();
  pool(pool&&) = delete;

  // open() reserves lanes and starts the zygote and the workers; false leaves why().
  bool open(std::uint32_t workers);
  const char* why() const noexcept { return why_; }
  // close() ends all processes. The pool may not be used any more.
  void close() noexcept;
  // abandon() is for a forked process: it gives up its hold on its parent's pool.
  void abandon() noexcept;

  status why_status() const noexcept { return why_status_; }
  // worker_state: what the host keeps of one worker; callers take turns (remote_workers). The host
  // relies on its numbers, because a worker can overwrite all of its lane.
  struct alignas(line_pair_bytes) worker_state {
    processes::lane<>* lane = nullptr;
    int file = -1;
    // Written by the holder of the turn, read by the service when the worker has died: the last
    // number given out. Publishes the records up to it.
    atomic<std::uint32_t> posted{0};
    std::uint32_t first = 1;       // the number of the present worker's first task
    std::uint32_t taken_back = 0;  // bit_of() each task that the worker will not begin
    // Written by the holder of the turn, read by any host thread: the last number taken back.
    // Publishes nothing.
    atomic<std::uint32_t> collected{0};
    // Written by the service, read by the holder of the turn: 1 when the worker was ready, and then
    // ordered to work. Before that it has begun nothing. Sequentially consistent: see take_back().
    atomic<std::uint32_t> has_arrived{0};
    // Only the service uses these.
    pid_t pid = 0;
    int pidfd = -1;
    bool is_alive = false;     // started, or about to be
    bool is_awaited = false;   // start_worker() was called, and no report has come
    int start_code = 0;        // why it could not be started, or not be watched: errno
    bool is_late = false;      // given up, as it did not arrive
    bool was_ordered = false;  // kill() was called for this process
    bool is_owed = false;      // when last looked at, a report was to come; see rouse_zygote()
    bool is_spared = false;    // the keeper did not kill it, and spared() has not said so yet
    std::uint32_t kills = 0;   // orders to a keeper: its answer names the one that it is for
    std::uint32_t roused = 0;  // the task that it was woken for once more; see revisit()
    std::uint64_t awaited_since_ns = 0;  // until it has arrived: when it began to

    // The numbers of the oldest task of the line and of the next one to post, and how many there
    // are.
    std::uint32_t oldest() const noexcept { return collected.load(memory_order_relaxed) + 1; }
    std::uint32_t next() const noexcept { return posted.load(memory_order_relaxed) + 1; }
    std::uint32_t tasks() const noexcept { return next() - oldest(); }
  };
  // A task's place in worker_state::taken_back.
  static constexpr std::uint32_t bit_of(std::uint32_t number) noexcept {
    return 1u << (number % lane_records);
  }
  worker_state& at(std::uint32_t worker) noexcept {
    LEV_DCHECK(worker < workers_);
    return states_[worker];
  }
  const worker_state& at(std::uint32_t worker) const noexcept {
    LEV_DCHECK(worker < workers_);
    return states_[worker];
  }
  void* store_of(std::uint32_t worker) noexcept;
  board& its_board() noexcept { return *board_; }
  book_writer& procedures() noexcept { return procedures_; }
  const book_writer& procedures() const noexcept { return procedures_; }

  // has_begun_none(): the worker has begun no task, and will begin none that was taken back before
  // the call.
  bool has_begun_none(std::uint32_t worker) const noexcept {
    // Pairs with order_to_work(): the worker is ordered to work after this, and sees the request.
    return at(worker).has_arrived.load(memory_order_seq_cst) == 0;
  }
  void give_order(std::uint32_t worker, std::uint32_t order) noexcept;
  void wake(std::uint32_t worker) noexcept;
  void notify() noexcept;
  // wait() sleeps until a worker rings, the zygote reports, or the time is over.
  void wait(std::uint64_t deadline_ns) noexcept;
  bool next_death(remote_death* death);
  bool replace(std::uint32_t worker) noexcept;
  bool kill(std::uint32_t worker, bool is_lost) noexcept;
  // rouse_zygote() continues a zygote that has owed a report since the call before. rouse_tracer()
  // continues one that is stopped, for a worker that does not end its task: a body may have made
  // the zygote its tracer, and have been stopped by a signal, which only the zygote can give it.
  void rouse_zygote() noexcept;
  void rouse_tracer() noexcept;
  bool spared(std::uint32_t worker) noexcept {
    return std::exchange(states_[worker].is_spared, false);
  }
  // is_away(), of a shared pool: the worker serves another host now.
  bool is_away(std::uint32_t worker) const noexcept;
  // has_left_us() is certain: the process that has the line's tasks serves another host, so it is
  // not in task `number`, and has published the end if it ran it.
  bool has_left_us(std::uint32_t worker, std::uint32_t number) const noexcept;
  // is_crowded(): it has as many hosts as there are cores, or more.
  bool is_crowded() const noexcept;

 private:
  bool is_shared() const noexcept { return settings_.processes.pool != nullptr; }
  bool is_confined() const noexcept {
    return settings_.processes.isolation == lev::isolation::confined;
  }
  // False for confined ones: each belongs to one host.
  bool shares_workers() const noexcept { return is_shared() && !is_confined(); }
  bool open_files(std::uint32_t workers);
  bool open_heap() noexcept;
  bool open_board() noexcept;
  bool open_lane(std::uint32_t worker) noexcept;
  void show_lane(std::uint32_t worker) noexcept;
  void show_pool() noexcept;
  void show_victim(std::uint32_t worker) noexcept;
  bool start_zygote();
  const char* why_not_itself() const;
  bool spawn_zygote(int socket);
  // For a shared pool, in place of the zygote's start and end.
  bool join_keeper();
  bool start_keeper();
  bool knock() noexcept;
  template <class Page>
  bool map_page(int* file, int rights, Page** page) noexcept;
  bool map_pages(int (&files)[2]) noexcept;
  void leave_keeper() noexcept;
  bool has_task_under_way(std::uint32_t worker) const noexcept;
  std::uint64_t program_mark() const noexcept;
  bool introduce() noexcept;
  bool await_ready() noexcept;
  bool start_worker(std::uint32_t worker) noexcept;
  bool take_start_reports(int wait_ms);
  ssize_t receive_report(report* r, int* file) noexcept;
  bool end_process(std::uint32_t worker) noexcept;
  bool await_death(std::uint32_t worker) noexcept;
  void end_workers() noexcept;
  void end_zygote() noexcept;
  void drop_zygote() noexcept;
  void hang_up() noexcept;
  bool signal_zygote(int number) noexcept;
  void kill_zygote() noexcept;
  void reap_zygote() noexcept;
  void reap_untold(pid_t group) noexcept;
  void reap_workers() noexcept;
  void order_to_work(std::uint32_t worker) noexcept;
  void await_arrival(std::uint32_t worker, std::uint64_t now) noexcept;
  std::uint64_t late_ns() const noexcept;
  void take_report(const report& r, int file);
  void refuse_worker(const report& r) noexcept;
  void zygote_is_gone();
  bool restart_zygote();
  void note_death(std::uint32_t worker, int how, const report* told = nullptr);
  bool fail(const char* what) noexcept;

  void keep_names();

  config settings_;  // its strings are the members below
  std::string pool_name_;
  std::vector<std::string> command_words_;
  std::vector<const char*> command_;
  std::unique_ptr<worker_state[]> states_;
  std::uint32_t workers_ = 0;
  std::size_t lane_bytes_ = 0;
  introduction about_;
  // Written by the service, read by any host thread as a hint. Publishes nothing.
  atomic<std::uint32_t> member_{0};  // this host's number, of a shared pool
  const pool_page* page_ = nullptr;
  pool_alarms* alarms_ = nullptr;
  unsigned cores_ = available_cores();
  board* board_ = nullptr;
  int board_file_ = -1;
  int heap_file_ = -1;
  bool owns_heap_file_ = false;
  int bell_ = -1;
  int socket_ = -1;
  pid_t zygote_ = 0;
  int zygote_file_ = -1;         // its pidfd; -1 for a keeper, and if the system gave none
  bool is_zygote_over_ = false;  // it has ended, whatever its socket says
  std::uint32_t arriving_ = 0;   // workers alive that were not ordered to work
  bool is_zygote_lost_ = false;  // it could not be started again
  book_writer procedures_;
  std::vector<remote_death> deaths_;
  const char* why_not_itself_ = nullptr;  // set by open()
  char why_[240] = "";
  status why_status_ = status::out_of_memory;
};

}  // namespace lev::processes
