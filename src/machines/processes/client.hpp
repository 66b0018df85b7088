// client: a host as one of its workers sees it: its lane, its book of procedures, and the way to
// tell it of ends. A worker has one, or, in a shared pool, one for each member.
#pragma once

#include "base/random.hpp"
#include "machine/machine.hpp"
#include "machines/processes/berth.hpp"
#include "machines/processes/output.hpp"
#include "share/faults.hpp"
#include "worker/columns.hpp"

namespace lev::processes {

// retire_worker() was called in this process.
[[gnu::visibility("hidden")]] inline bool is_retiring = false;

class client final : public column_watch {
 public:
  // How long an idle worker waits before it tells the host of an end that no thread seems to await.
  // A host that submits without a pause comes back sooner, and would only be disturbed.
  static constexpr std::uint64_t patience_ns = 5'000;

  // Of the host that a note tells of, whose memory is mapped.
  client(const note& n, const int* files, const board& mapped) noexcept
      : number_(n.member),
        prints_(files[file_of::output], files[file_of::error]),
        about_(n.about),
        board_(mapped),
        lane_(*reinterpret_cast<lane<>*>(n.lane_begin)),
        bell_(files[file_of::bell]),
        next_(lane_.first),
        procedures_(&mapped.procedures),
        is_tested_(about_.chaos != 0 || has_fault_plan()),
        is_plain_(!is_tested_ && !is_confined() && files[file_of::output] < 0),
        random_(about_.seed * 0x10001u ^ std::uint64_t{next_} << 20 ^
                static_cast<std::uint64_t>(getpid())) {}

  std::uint32_t number() const noexcept { return number_; }
  const introduction& about() const noexcept { return about_; }
  const board& its_board() const noexcept { return board_; }
  lane<>& its_lane() noexcept { return lane_; }
  int bell() const noexcept { return bell_; }
  const output& prints() const noexcept { return prints_; }
  bool is_confined() const noexcept { return about_.level == lev::isolation::confined; }

  // load_all() is for a worker that will be confined, while it can still open files.
  const char* load_all(const std::vector<std::string>& known) {
    return procedures_.load_all(known);
  }
  void forbid(const char* why) noexcept { unconfined_ = why; }
  void arrive() noexcept;

  bool has_task() noexcept { return lane_.has_record(next_) && is_ordered(); }
  bool lacks_library() noexcept { return is_confined() && lacks_library_of_next(); }
  // run() runs the lane's next task, from its claim to the publication of its end.
  void run() noexcept;
  // run_plainly() runs it and those behind it that are there by then, without what is_plain() tells
  // is not to be asked of each, and restores the floating-point mode after each. The worker serves
  // this host only. It returns when there is none, or the worker must retire.
  bool is_plain() const noexcept { return is_plain_; }
  void run_plainly(std::uint64_t mode) noexcept;
  // go_on() follows its end: the host is told at once if it wants that and there is more to do
  // here.
  void go_on() noexcept {
    if (lane_.has_record(next_) && (are_ends_wanted() || runs_low())) tell_of_ends();
  }
  // turn_away() comes before the worker of a shared pool turns to a task of another host, which may
  // never end: it rings as tell_idle() would later.
  void turn_away() noexcept {
    if (!has_rung_ && (!lane_.has_record(next_) || are_ends_wanted() || runs_low())) tell_of_ends();
  }
  // pass() is a step of the protocol, at which a worker of a test may end.
  void pass(chaos_step step, fault_name point) noexcept {
    if (is_tested_) pass_test(step, point);
  }

  // find() is for a piece of columns.
  const char* find(procedure_id id, callee* found) override { return procedures_.find(id, found); }
  bool begin(std::uint32_t index) noexcept override {
    end_if_forked(false);  // by the one before
    lane_.begin_index(next_, index);
    return !lane_.is_skipped(next_);
  }

  // For a worker with nothing to do. is_stopped(): the host wants the worker to end. tell_idle() is
  // called again and again, and rings once, when it is time.
  bool is_stopped() const noexcept { return order() == lane<>::order_stop; }
  void tell_idle(std::uint64_t waited_ns) noexcept;
  // may_sleep() is the last look, after the lane's word says that the worker sleeps.
  bool may_sleep() noexcept {
    const std::uint32_t now = lane_.orders.load(memory_order_seq_cst);  // Pairs with give_order()
    if (!is_ordered()) return now == lane<>::order_wait;
    return now != lane<>::order_stop && !lane_.has_record(next_);
  }

 private:
  bool lacks_library_of_next() noexcept;
  // The worker does nothing before the host has ordered it to work.
  bool is_ordered() noexcept {
    if (!is_ordered_ && order() == lane<>::order_work) {
      fault_at("worker.ordered");
      if (!is_confined()) leave_group();
      is_ordered_ = true;
    }
    return is_ordered_;
  }
  std::uint32_t order() const noexcept {
    return lane_.orders.load(memory_order_acquire);  // Pairs with give_order()
  }
  // While a waiter sleeps until an end, ends are told at once. Otherwise the host takes them when
  // it next tends the line, or when this lane runs dry.
  bool are_ends_wanted() const noexcept {
    return board_.watch.ends_wanted.load(memory_order_relaxed) != 0;
  }
  // The lane of a patient host must be filled before it runs dry: the service is woken while its
  // last task runs. (Six hosts that share two workers, 10 us tasks: 8.7 us a task; told three tasks
  // before the last 9.4, six 15, of each end 23.)
  static constexpr std::uint32_t low = 1;
  bool is_patient() const noexcept { return board_.watch.patient.load(memory_order_relaxed) != 0; }
  // Whether one of the two may be so: seldom, and one comparison.
  bool may_be_awaited() const noexcept {
    const end_watch<>& watch = board_.watch;
    return (watch.ends_wanted.load(memory_order_relaxed) |
            watch.patient.load(memory_order_relaxed)) != 0;
  }
  bool runs_low() const noexcept { return is_patient() && !lane_.has_record(next_ + low); }
  void tell_of_ends() noexcept {
    has_rung_ = true;
    notify_if_unwatched();
  }
  void pass_test(chaos_step step, fault_name point) noexcept;
  void notify_if_unwatched() noexcept;
  void notify() noexcept;
  template <bool is_plain>
  void run_task(lane<>& own, const lane<>::record& task, std::uint32_t number) noexcept;
  [[gnu::cold, gnu::noinline]] void tell_before(std::uint32_t number) noexcept;
  template <bool is_plain>
  status run_body(const lane<>::record& task, std::uint32_t number) noexcept;
  status run_unknown(const lane<>::record& task, std::uint32_t number) noexcept;
  template <bool is_plain>
  status call_body(const lane<>::record& task, const resolved& procedure,
                   std::uint32_t number) noexcept;

  const std::uint32_t number_;
  const output prints_;
  const introduction about_;
  const board& board_;
  lane<>& lane_;
  const int bell_;
  std::uint32_t next_;  // the number of its next task
  bool is_ordered_ = false;
  bool has_rung_ = true;  // for the end of its last task
  book_reader procedures_;
  const bool is_tested_;
  const bool is_plain_;
  random_source random_;
  const char* unconfined_ = nullptr;  // why the worker could not be confined; then it runs nothing
};

}  // namespace lev::processes
