// A pass of the scheduler, step by step: collect_posted, apply_filters, dice, fill_ready.
#include "flow/scheduler.hpp"

#include "base/numbers.hpp"
#include "flow/built_in_filters.hpp"
#include "sync/hook_call.hpp"
#include "task/arguments.hpp"
#include "task/procedure_table.hpp"
#include "task/slice.hpp"

#include <cstring>

namespace lev {

namespace {
// keeps the rest where it can still be reordered and split
constexpr std::uint32_t ready_per_taker = 2;
}  // namespace

// A task that is run again must find its inputs as they were: an argument that it reads and writes
// is copied even from shared memory, unless the caller asked for `in_place`.
bool needs_copy(const argument& a, const copy_rule& rule) noexcept {
  if (!has_address(a) || is_empty(a) || is_far(a)) return false;
  const bool is_packed = !is_memory(a.what) || fits_in_place(a);
  if (!rule.all) return !is_packed;
  const bool is_shared = a.address >= rule.shared_begin && a.address < rule.shared_end &&
                         payload_bytes(a) <= rule.shared_end - a.address;
  if (!is_shared || !is_packed || (rule.shared_is_read_only && is_output(a))) return true;
  return a.what == kind::inout && !rule.shared_inout;
}

std::size_t staged_bytes(std::span<const argument> arguments, const copy_rule& rule) noexcept {
  std::size_t bytes = 0;
  for (const argument& a : arguments) {
    if (needs_copy(a, rule)) bytes = staged_end(a, bytes);
  }
  return bytes;
}

std::size_t staged_alignment(std::span<const argument> arguments) noexcept {
  std::size_t most = copied_alignment;
  for (const argument& a : arguments) most = larger(most, alignment_of(a));
  return most;
}

void read_descriptor(slot_pool& slots, std::uint32_t task, descriptor& d) noexcept {
  const slot& s = slots.at(task);
  detail::set_head(d, s);
  d.flags = 0;
  for (unsigned i = 0; i < s.argument_count; ++i) d.arguments[i] = slots.argument_at(task, i);
}

void write_task(slot_pool& slots, std::uint32_t task, const descriptor& d) noexcept {
  slot& s = slots.at(task);
  const std::uint8_t flags = s.flags;
  static_cast<detail::task_head&>(s) = detail::head_of(d);
  s.flags = flags;
  for (unsigned i = 0; i < d.argument_count; ++i) slots.argument_at(task, i) = d.arguments[i];
}

void scheduler::open(slot_pool* slots, const storage& s, const scheduler_limits& limits) noexcept {
  // A cell for every slot, but for the hosts' own: tasks in these are in no queue.
  LEV_ASSERT(limits.takers != 0 && s.count >= slots->listed_count());
  slots_ = slots;
  limits_ = limits;
  prefilter_.open(s.prefilter, s.count);
  ready_.open(s.ready, s.count, s.rings);
  tasks_.open(s.tasks, s.count);
  backup_ = s.backup;
}

void scheduler::pass(index_cache& cache, pass_report& report) noexcept {
  lock_.run([&]() noexcept { round(cache, report); });
}

void scheduler::round(index_cache& cache, pass_report& report) noexcept {
  LEV_DCHECK_LOOK(lock_.is_held());
  ++report.passes;
  collect_posted();
  if (tasks_.empty()) return;
  // While the ready queue has enough, no task moves on, and the first one need not be found. A
  // taker runs another pass before the queue is empty.
  if (filter_count_ != 0 && ready_.size() >= ready_target()) return;
  if (filter_count_ != 0) apply_filters(report);
  if (diceable_ != 0) dice(cache, report);
  fill_ready();
  while (has_big_front()) {
    dice_front(cache, report);
    fill_ready();
  }
  LEV_DCHECK(diceable_ <= tasks_.size());
  waiting_.store(static_cast<std::uint32_t>(tasks_.size()), memory_order_relaxed);
}

bool scheduler::has_big_front() noexcept {
  const bool wanted = ready_.size() < ready_per_taker * limits_.takers;
  return wanted && !tasks_.empty() && (slots_->at(tasks_.front().slot).flags & task_too_big) != 0;
}

// The size of a diceable task, to find the largest; a task with a hook and no slices counts as
// large until it is indivisible.
std::uint32_t scheduler::size_of(std::uint32_t task) noexcept {
  constexpr std::uint32_t large = 0xffffffff;
  const slot& s = slots_->at(task);
  if ((s.flags & task_diceable) == 0) return 0;
  const std::uint64_t items = slots_->items_of(task);
  if (items != 0) return static_cast<std::uint32_t>(smaller<std::uint64_t>(items, large));
  return large >> smaller<std::uint32_t>(s.dice_depth, 31);
}

waiting_task scheduler::describe(std::uint32_t task) noexcept {
  const slot& s = slots_->at(task);
  waiting_task w;
  w.sequence = sequence_++;
  w.key = s.key;
  for (unsigned i = 0; w.key == 0 && i < s.argument_count; ++i) {
    const argument& a = slots_->argument_at(task, i);
    if (is_memory(a.what)) w.key = static_cast<std::uint32_t>(a.address >> 12);  // its page
  }
  w.priority = s.priority;
  w.slot = task;
  w.procedure = s.procedure;
  w.items = size_of(task);
  return w;
}

void scheduler::collect_posted() noexcept {
  std::uint32_t posted[32];
  while (const std::uint32_t n = prefilter_.try_pop_some(posted, 32)) {
    for (std::uint32_t i = 0; i < n; ++i) {
      LEV_DCHECK((slots_->at(posted[i]).flags & task_is_join) == 0);
      if ((slots_->at(posted[i]).flags & task_diceable) != 0) ++diceable_;
      tasks_.push_back(describe(posted[i]));
    }
    waiting_.store(static_cast<std::uint32_t>(tasks_.size()), memory_order_relaxed);
  }
}

void scheduler::take_out(std::uint32_t task) noexcept {
  LEV_DCHECK_LOOK(lock_.is_held());
  const std::uint8_t flags = slots_->at(task).flags;
  LEV_DCHECK((flags & task_is_join) == 0);
  if ((flags & task_diceable) != 0) --diceable_;
}

void scheduler::pop_front() noexcept {
  if (in_order_ != 0) --in_order_;
  tasks_.pop_front();
}

// A filter must permute: sums of the mixed slot numbers tell whether one is lost or doubled.
std::uint64_t scheduler::fingerprint() noexcept {
  std::uint64_t sum = 0;
  for (const waiting_task& t : tasks_)
    sum += (std::uint64_t{t.slot} + 1) * 0x9e3779b97f4a7c15u ^ (t.slot * 0xff51afd7ed558ccdu);
  return sum;
}

// The work of a program's filter is undone unless it is a permutation and the filter returned.
bool scheduler::apply_foreign(const filter& f) noexcept {
  const std::uint64_t before = fingerprint();
  std::memcpy(backup_, tasks_.begin(), tasks_.size() * sizeof(waiting_task));
  try {
    const hook_call here(this);
    f.apply(tasks_.begin(), tasks_.size(), f.context);
    if (fingerprint() == before) return true;
  } catch (...) {  // undone, like the work of one that loses a task
  }
  std::memcpy(tasks_.begin(), backup_, tasks_.size() * sizeof(waiting_task));
  return false;
}

// Each filter of a chain has its own order, and puts the whole line in it; a filter of Leveret's
// that is alone finds the line as it has left it, but for the newest tasks.
void scheduler::apply_filters(pass_report& report) noexcept {
  const bool is_alone = filter_count_ == 1;
  for (std::size_t i = 0; i < filter_count_; ++i) {
    const filter& f = filters_[i];
    if (!filters::is_built_in(f)) {
      if (!apply_foreign(f)) ++report.bad_filters;
      continue;
    }
    filters::put_in_order(f, tasks_.begin(), is_alone ? in_order_ : 0, tasks_.size());
    in_order_ = is_alone ? tasks_.size() : 0;
  }
}

// Splits waiting tasks until there are enough for every taker to be busy to the end: always the
// largest one, so that sizes shrink evenly as the line gets shorter and the last pieces are small.
void scheduler::dice(index_cache& cache, pass_report& report) noexcept {
  const std::uint32_t wanted = limits_.threshold * limits_.takers;
  for (;;) {
    const auto waiting = static_cast<std::uint32_t>(tasks_.size()) + ready_.size();
    if (waiting >= wanted || diceable_ == 0) return;
    const waiting_task* largest = nullptr;
    for (const waiting_task& t : tasks_) {
      if ((slots_->at(t.slot).flags & task_diceable) == 0) continue;
      if (largest == nullptr || t.items >= largest->items) largest = &t;
    }
    if (largest == nullptr) return;
    const std::uint32_t share = (wanted - waiting) / smaller(diceable_, wanted - waiting) + 1;
    const auto place = static_cast<std::size_t>(largest - tasks_.begin());
    if (split(place, share, cache, report) == split_result::no_slots) return;
  }
}

// Too big for a local store: split the task that reaches the front until it fits. Without free
// slots the task goes to a worker as it is, strip by strip (worker/strips.hpp, remote/strip.hpp).
void scheduler::dice_front(index_cache& cache, pass_report& report) noexcept {
  const std::uint32_t task = tasks_.front().slot;
  const split_result result = split(0, pieces_per_dice_max, cache, report);
  if (result == split_result::done) return;
  pop_front();
  if (result == split_result::indivisible) {
    slot_extra& extra = slots_->extra(task);
    // Its hook decides: a sliced task whose smallest piece does not fit was refused at submit.
    LEV_DCHECK(procedure_at(slots_->at(task).procedure).diceable);
    extra.first_failure.store(static_cast<std::uint32_t>(status::dice_loop), memory_order_relaxed);
    extra.next_failing = report.failed;
    report.failed = task;
    return;
  }
  take_out(task);
  while (!ready_.first().try_push(task)) real_env::pause();
}

// Splits the task at `place`; the pieces take its place in order.
scheduler::split_result scheduler::split(std::size_t place, std::uint32_t share, index_cache& cache,
                                         pass_report& report) noexcept {
  LEV_DCHECK(place < tasks_.size());
  const waiting_task original = tasks_.begin()[place];
  // A task that is too big is asked for pieces again, though it was found indivisible before.
  const bool was_diceable = (slots_->at(original.slot).flags & task_diceable) != 0;
  LEV_DCHECK(!was_diceable || diceable_ != 0);
  cut_result p;
  const split_result result = cut(original.slot, share, cache, report, p);
  if (was_diceable && result != split_result::no_slots) --diceable_;
  if (result != split_result::done) return result;
  in_order_ = smaller(in_order_, place);
  waiting_task* entry = tasks_.insert_after(tasks_.begin() + place, p.made - 1) - 1;
  for (std::uint32_t i = 0; i < p.made; ++i) {
    entry[i] = original;
    entry[i].slot = p.slots[i];
    entry[i].items = size_of(p.slots[i]);
    if ((slots_->at(p.slots[i]).flags & task_diceable) != 0) ++diceable_;
  }
  return result;
}

// The wanted length of the ready queue. Filters want it short, so that order can still change;
// dicing wants its share of tasks kept back, where they can still be split; everything else goes
// through.
std::uint32_t scheduler::ready_target() const noexcept {
  const std::uint32_t least = ready_per_taker * limits_.takers;
  if (filter_count_ != 0) return least;
  if (diceable_ == 0) return 0xffffffffu;
  const std::uint32_t waiting = static_cast<std::uint32_t>(tasks_.size()) + ready_.size();
  const std::uint32_t kept = limits_.threshold * limits_.takers;
  return waiting > kept + least ? waiting - kept : least;
}

void scheduler::fill_ready() noexcept {
  const std::uint32_t target = ready_target();
  std::uint32_t batch[32];
  for (std::uint32_t size; !tasks_.empty() && (size = ready_.size()) < target;) {
    std::uint32_t n = 0;
    const std::uint32_t room = smaller(target - size, 32u);
    while (n < room && !tasks_.empty()) {
      const std::uint32_t task = tasks_.front().slot;
      if ((slots_->at(task).flags & task_too_big) != 0) break;
      take_out(task);
      pop_front();
      batch[n++] = task;
    }
    if (n == 0) return;
    // Slots outnumber neither cells nor tasks in flight: the ring is full only while a taker is
    // halfway through a pop.
    while (!ready_.first().try_push_all(batch, n)) real_env::pause();
  }
}

void scheduler::set_filters(const filter* chain, std::size_t count, index_cache& cache,
                            pass_report& report) noexcept {
  LEV_ASSERT(count <= filter_count_max);
  while (!lock_.try_hold()) real_env::pause();
  for (std::size_t i = 0; i < count; ++i) filters_[i] = chain[i];
  filter_count_ = count;
  in_order_ = 0;
  filter_count_hint_.store(static_cast<std::uint32_t>(count), memory_order_relaxed);
  while (!lock_.release_hold()) round(cache, report);
}

}  // namespace lev
