// scheduler: the staged path. Tasks are posted to the prefilter; a pass moves them to the reorder
// buffer, lets the filters permute it, dices where too few tasks wait, and fills the ready queue.
// Posting, reordering and taking touch different lines, so they do not contend.
//
// A pass is run by the thread that needs it, a submitter or an idle worker, under a lock that no
// thread waits for.
//
// Paper: Jack Rabbit section 4.2 (three-level queue) and 4.4 (dicer: threshold of 16 tasks per
// worker).
#pragma once

#include <leveret/filter.hpp>

#include "base/numbers.hpp"
#include "flow/ready_queue.hpp"
#include "flow/slot_pool.hpp"
#include "queue/reorder_buffer.hpp"
#include "sync/pass_lock.hpp"
#include "task/arguments.hpp"

namespace lev {

// Which arguments are copied to the local store. `all`: the worker cannot reach the caller's
// memory, or that memory must not change before the task is complete; but arguments in shared
// memory, [shared_begin, shared_end), are used where they are.
struct copy_rule {
  bool all = false;
  std::uint64_t shared_begin = 0;
  std::uint64_t shared_end = 0;
  bool shared_inout = false;         // those that are read and written, too
  bool shared_is_read_only = false;  // the worker cannot write there
};

struct scheduler_limits {
  std::uint32_t takers = 1;           // workers, and host threads that help
  std::uint32_t threshold = 16;       // dice until this many tasks per taker wait
  std::size_t local_store_bytes = 0;  // a task that needs more must be diced
  copy_rule copies;                   // which arguments go through the local store
};

// The results of a pass, for the counters of the participant that ran it.
struct pass_report {
  explicit pass_report(owned_counter& counter) noexcept : submitted(counter) {}
  owned_counter& submitted;  // pieces are counted here before any thread can take them
  std::uint64_t diced = 0;
  std::uint64_t bad_filters = 0;
  std::uint64_t passes = 0;
  bool has_freed = false;  // slots went back to the pool's ring: see tell_space()
  // Tasks that must be diced and cannot be, linked by slot_extra::next_failing with the reason in
  // first_failure; the caller completes them when the lock is no longer held.
  std::uint32_t failed = no_slot;
};

constexpr std::uint32_t pieces_per_dice_max = 32;        // descriptors on the stack of one split
constexpr std::uint32_t pieces_per_taker_max = 1 << 14;  // about; of 0.1 us at least, each

class scheduler {
 public:
  struct storage {
    index_ring<>::cell* prefilter;  // `count` cells
    index_ring<>::cell* ready;      // `count` cells for each ring
    waiting_task* tasks;            // `count` entries
    waiting_task* backup;           // `count` entries
    std::uint32_t count;
    std::uint32_t rings;  // of the ready queue
  };
  void open(slot_pool* slots, const storage& s, const scheduler_limits& limits) noexcept;

  ready_queue<>& ready() noexcept { return ready_; }

  // post() puts a task on the staged path; run a pass afterwards.
  void post(std::uint32_t task) noexcept {
    while (!prefilter_.try_push(task)) real_env::pause();
  }
  // pass() runs a pass, or leaves it to the thread that runs one. `cache` is the caller's.
  void pass(index_cache& cache, pass_report& report) noexcept;

  // take_if() takes the first tasks of the reorder buffer that are wanted, up to `most` and in
  // their order, whatever the filters would have before them. Returns how many; 0 also if another
  // thread runs a pass. A search goes through the whole buffer, so a caller that wants one of many
  // takes several.
  template <class Wanted>
  std::uint32_t take_if(const Wanted& is_wanted, index_cache& cache, pass_report& report,
                        std::uint32_t* tasks, std::uint32_t most) noexcept {
    if (!lock_.try_hold()) return 0;
    std::uint32_t count = 0;
    const waiting_task* const in_order_end = tasks_.begin() + in_order_;
    tasks_.remove_if([&](const waiting_task& t) noexcept {
      if (count == most || !is_wanted(t.slot)) return false;
      if (&t < in_order_end) --in_order_;
      take_out(t.slot);
      tasks[count++] = t.slot;
      return true;
    });
    waiting_.store(static_cast<std::uint32_t>(tasks_.size()), memory_order_relaxed);
    while (!lock_.release_hold()) round(cache, report);
    return count;
  }

  // Whether tasks wait on the staged path. Exact enough for a sleeper's last look.
  bool looks_empty() const noexcept {
    return prefilter_.looks_empty() && waiting_.load(memory_order_relaxed) == 0;
  }
  bool has_filters() const noexcept { return filter_count_hint_.load(memory_order_relaxed) != 0; }
  // Whether a pass would move or split something for a worker that found the ready queue empty.
  bool has_waiting() const noexcept { return !looks_empty(); }

  // cut() splits a task that is in no queue, at once, into up to `share` pieces that are in none.
  // Any thread may call it; it takes no lock, and touches nothing but the task and its pieces.
  struct cut_result {
    std::uint32_t made = 0;
    std::uint32_t slots[pieces_per_dice_max];
  };
  enum class split_result { done, no_slots, indivisible };
  split_result cut(std::uint32_t task, std::uint32_t share, index_cache& cache, pass_report& report,
                   cut_result& p) noexcept;

  // Tasks are cut until this many wait for each taker; 0: only tasks that do not fit are cut.
  std::uint32_t threshold() const noexcept { return limits_.threshold; }

  void set_filters(const filter* chain, std::size_t count, index_cache& cache,
                   pass_report& report) noexcept;

 private:
  void round(index_cache& cache, pass_report& report) noexcept;
  void collect_posted() noexcept;
  void take_out(std::uint32_t task) noexcept;
  std::uint64_t fingerprint() noexcept;
  void pop_front() noexcept;
  bool apply_foreign(const filter& f) noexcept;
  void apply_filters(pass_report& report) noexcept;
  void dice(index_cache& cache, pass_report& report) noexcept;
  void dice_front(index_cache& cache, pass_report& report) noexcept;
  split_result split(std::size_t place, std::uint32_t share, index_cache& cache,
                     pass_report& report) noexcept;
  split_result cut_by_hook(std::uint32_t task, std::uint32_t have, index_cache& cache,
                           pass_report& report, cut_result& p) noexcept;
  void count_pieces(std::uint32_t task, std::uint32_t made, pass_report& report) noexcept;
  struct origin {  // of a piece
    std::uint32_t task;
    std::uint32_t parent;
    std::uint8_t depth;
    std::uint8_t flags;
  };
  void write_pieces(std::uint32_t task, const cut_result& p, const descriptor* cuts) noexcept;
  void write_slice(std::uint32_t piece, std::uint32_t whole, std::uint64_t begin,
                   std::uint64_t end) noexcept;
  void open_piece(std::uint32_t piece, const origin& from) noexcept;
  void mark_piece(std::uint32_t piece, const origin& from) noexcept;
  std::uint32_t pieces_possible(std::uint32_t task, bool too_big) noexcept;
  bool has_big_front() noexcept;
  std::uint32_t ready_target() const noexcept;
  void fill_ready() noexcept;
  std::uint32_t size_of(std::uint32_t task) noexcept;
  waiting_task describe(std::uint32_t task) noexcept;

  slot_pool* slots_ = nullptr;
  scheduler_limits limits_;
  index_ring<> prefilter_;
  ready_queue<> ready_;
  pass_lock<> lock_;
  // The rest is protected by lock_.
  reorder_buffer tasks_;
  waiting_task* backup_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::uint32_t diceable_ = 0;  // diceable tasks in tasks_
  filter filters_[filter_count_max];
  std::size_t filter_count_ = 0;
  std::size_t in_order_ = 0;  // tasks at the front that a filter of Leveret's, alone, has ordered
  // Written under lock_, read by workers about to sleep: tasks in the reorder buffer. Publishes
  // nothing else.
  atomic<std::uint32_t> waiting_{0};
  // Written under lock_, read by submitters: the length of the filter chain. Publishes nothing
  // else.
  atomic<std::uint32_t> filter_count_hint_{0};
};

// halving 2^40 items; a hook that needs more does not shrink its pieces
constexpr std::uint8_t dice_depth_max = 40;

static_assert(dice_depth_max < 0xff);  // slot::dice_depth is a byte

// cut_pieces() asks the procedure's hook, or slices evenly; returns the number of pieces, below 2
// when it cannot be split. The caller has said that a hook runs.
std::uint32_t cut_pieces(const descriptor& whole, descriptor* cuts, std::uint32_t pieces) noexcept;

// read_descriptor() and write_task() copy a task between its slot and a plain descriptor.
void read_descriptor(slot_pool& slots, std::uint32_t task, descriptor& d) noexcept;
void write_task(slot_pool& slots, std::uint32_t task, const descriptor& d) noexcept;

// staged_bytes() is a task's need of a local store: its copied arguments one behind the other, each
// at a multiple of its alignment, rounded up to cache lines. staged_alignment() is that of the
// whole.
std::size_t staged_bytes(std::span<const argument> arguments, const copy_rule& rule) noexcept;
std::size_t staged_alignment(std::span<const argument> arguments) noexcept;
constexpr std::size_t staged_begin(const argument& a, std::size_t offset) noexcept {
  return round_up(offset, alignment_of(a));
}
constexpr std::size_t staged_end(const argument& a, std::size_t offset) noexcept {
  return staged_begin(a, offset) + round_up(payload_bytes(a), line_bytes);
}
bool needs_copy(const argument& a, const copy_rule& rule) noexcept;

}  // namespace lev
