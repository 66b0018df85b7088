// made_range: a bulk whose tasks a function makes, or a piece of it, in the thread that runs it.
//
//   1. The first task is made. If it declares memory, the piece looks ahead.
//   2. For each index: tasks up to `reach` further on are made, and their memory is prefetched;
//      then the task runs in place if it is plain, otherwise as a task of its own.
//   3. A failure is counted, and the first failure names its index.
#pragma once

#include "base/text.hpp"
#include "runtime/admit.hpp"
#include "task/plain.hpp"
#include "worker/columns.hpp"
#include "worker/execute.hpp"
#include "worker/take.hpp"

#include <cstdio>
#include <utility>

namespace lev::detail {

// The argument of the range form: a function that makes the tasks, as one value.
struct made_tasks {
  fill make;
  void* context;
};

// The tasks of one piece of such a range, made and run one after the other. If they declare memory,
// some are made ahead, so that it is in flight while earlier tasks run. A task that fails keeps
// none of the others from running. The first failure names its task.
class made_range {
 public:
  made_range(participant& self, made_tasks tasks, range r) noexcept
      : state_(static_cast<runtime_state&>(*self.engine)),
        self_(self),
        tasks_(tasks),
        all_(r),
        made_(r.begin),
        makes_to_(r.end) {
    LEV_DCHECK(self.running != nullptr && (self.running->flags & task_is_join) == 0);
  }
  // The code of the first failure; 0 where it has none.
  int run() noexcept {
    ::new (&places_[0].task) descriptor();
    if (made_ != all_.end) {
      if (declares_memory(make_next()) && state_.depth > 1) {
        run_ahead();
      } else {
        run_each();
      }
    }
    if (failures_ != 0) tell_first();
    return first_code_;
  }

 private:
  static constexpr std::uint64_t tasks_per_look = 16;
  static constexpr std::uint32_t no_procedure = 0xffffffffu;  // wider than any id
  // A piece's stack frame has room for this many: 2.4 KiB, and pieces run on top of each other.
  static constexpr std::uint32_t places = 4;
  static_assert((places & (places - 1)) == 0);

  // Each is made right before it runs; the first is made already.
  void run_each() noexcept {
    std::uint64_t i = all_.begin;
    if (is_unwanted()) return cancel();
    run_one(i, places_[0].task);
    while (++i != all_.end) {
      if (i % tasks_per_look == 0 && is_unwanted()) return cancel();
      try {
        tasks_.make(tasks_.context, i, places_[0].task);
        run_plainly(i, places_[0].task);
      } catch (...) {
        note_thrown(i);
      }
      end_one();
    }
  }
  void run_ahead() noexcept {
    open_ahead();
    for (std::uint64_t i = all_.begin; i != all_.end; ++i) {
      if (i % tasks_per_look == 0 && is_unwanted()) return cancel();
      while (made_ != makes_to_ && made_ - i < reach_) fetch_memory(make_next());
      run_one(i, place_of(i));
    }
  }
  void cancel() noexcept {
    if (failures_ == 0) self_.running->result = status::cancelled;
  }
  descriptor& place_of(std::uint64_t i) noexcept { return places_[i & place_mask_].task; }
  bool is_unwanted() const noexcept { return lev::is_unwanted(state_, *self_.running); }
  bool is_piece() const noexcept { return (self_.running->flags & task_is_piece) != 0; }
  static bool declares_memory(const descriptor& d) noexcept {
    for (unsigned i = 0; i < d.argument_count && i < argument_count_max; ++i) {
      if (is_memory(d.arguments[i].what)) return true;
    }
    return false;
  }
  // The first task of the piece stays where it is.
  void open_ahead() noexcept {
    const descriptor first = places_[0].task;
    reach_ = smaller(state_.depth, places);
    place_mask_ = places - 1;
    for (std::uint32_t i = 0; i < places; ++i) ::new (&places_[i].task) descriptor();
    place_of(all_.begin) = first;
  }
  // A task that cannot be made is reported when its turn comes; until then no task behind it is
  // made.
  descriptor& make_next() noexcept {
    const std::uint64_t i = made_++;
    descriptor& d = place_of(i);
    try {
      tasks_.make(tasks_.context, i, d);
    } catch (...) {
      unmade_ = std::current_exception();
      makes_to_ = made_;
      d = descriptor();
    }
    return d;
  }
  // Fetches as much as a worker looks ahead: the beginning of each of the first three.
  [[gnu::always_inline]] static void fetch_memory(const descriptor& d) noexcept {
    unsigned rows = 0;
    for (unsigned i = 0; i < d.argument_count && i < argument_count_max; ++i) {
      const argument& a = d.arguments[i];
      if (!is_memory(a.what)) continue;
      if (++rows > near_arguments) return;
      prefetch_rows(row_to_fetch(a));
    }
  }
  // Most tasks have the procedure of the one before.
  bool learn(procedure_id id) noexcept {
    const procedure_entry* const p = find_procedure(id);
    if (p == nullptr) return false;
    known_ = id;
    entry_ = p;
    return true;
  }
  [[gnu::always_inline]] void run_plainly(std::uint64_t i, const descriptor& task) {
    if (task.procedure != known_ && !learn(task.procedure)) [[unlikely]]
      return run_apart(i, task);
    const procedure_info& p = entry_->info;
    if (!passes_plainly(draft_of(task), *entry_)) return run_apart(i, task);
    const int code = p.run(call{task.arguments, task.argument_count, p.context});
    if (code != 0) [[unlikely]]
      note_code(i, code);
  }
  [[gnu::always_inline]] void run_one(std::uint64_t i, const descriptor& task) noexcept {
    try {
      run_plainly(i, task);
    } catch (...) {
      note_thrown(i);
    }
    end_one();
  }
  // In a handler.
  [[gnu::noinline, gnu::cold]] void note_thrown(std::uint64_t i) noexcept {
    note(i, {status::task_failed, -1, text_of_thrown()});
  }
  [[gnu::always_inline]] void end_one() noexcept {
    if (state_.why_absent != nullptr) [[unlikely]]
      end_if_forked(state_, failures_ != 0);
    restore_float_mode(self_.float_mode);
  }
  // A task whose memory is strided, sliced or far is run by itself, and so is one to be refused.
  [[gnu::noinline]] void run_apart(std::uint64_t i, const descriptor& task) {
    if (unmade_ != nullptr && i + 1 == makes_to_) {
      makes_to_ = all_.end;
      std::rethrow_exception(std::exchange(unmade_, nullptr));
    }
    refusal why;
    const std::uint64_t id = try_submit(&state_, draft_of(task), nullptr, false, &why);
    if (id == 0) return note(i, {why.code, why.argument, why.message});
    const outcome o = wait_surely(&state_, id);
    if (o.code == status::cancelled && is_unwanted()) return cancel();
    if (o.task_code != 0) return note_code(i, o.task_code);
    if (o.code != status::ok) throw_outcome(o);
  }
  [[gnu::noinline, gnu::cold]] void note_code(std::uint64_t i, int code) noexcept {
    char text[64];
    std::snprintf(text, sizeof text, "its procedure returned %d", code);
    if (failures_ == 0) first_code_ = code;
    note(i, {status::task_failed, -1, text});
  }
  [[gnu::noinline, gnu::cold]] void note(std::uint64_t i, const error& how) noexcept {
    if (failures_++ != 0) return;
    first_ = std::make_exception_ptr(
        error(how.code(), how.argument(), text_of_bulk(i, how.what()).text));
  }
  // The join counts the piece itself as one. A bulk that was not cut becomes the join of its tasks.
  void tell_first() noexcept {
    const std::uint32_t whole = whole_of(*self_.running);
    slot_extra& counts = state_.task_slots.extra(whole);
    if (is_piece()) {
      counts.failures.fetch_add(failures_ - 1, memory_order_relaxed);
    } else {
      state_.task_slots.at(whole).flags |= task_is_join;
      counts.failures.store(failures_, memory_order_relaxed);
    }
    self_.running->result = status::task_failed;
    state_.task_slots.keep_exception(self_.running->task, std::move(first_));
  }

  runtime_state& state_;
  participant& self_;
  made_tasks tasks_;
  range all_;
  std::uint32_t known_ = no_procedure;      // the procedure of the last task that had one, and
  const procedure_entry* entry_ = nullptr;  // its entry
  std::uint64_t made_;                      // those before it are made
  std::uint64_t makes_to_;                  // those before it may be made
  std::uint32_t reach_ = 1;                 // tasks made and not yet run, with the running one
  std::uint32_t place_mask_ = 0;
  std::uint32_t failures_ = 0;
  int first_code_ = 0;  // of the first failure
  std::exception_ptr first_;
  std::exception_ptr unmade_;  // that of the task before makes_to_
  union place {
    place() noexcept {}
    descriptor task;
  };
  place places_[places];  // without looking ahead only the first is used
};

}  // namespace lev::detail
