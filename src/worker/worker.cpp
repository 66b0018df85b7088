// The pipeline: take, stage, execute, write back, complete. With asynchronous copies three tasks
// are in flight at once: one executes, the next ones are staged, the last one's outputs are written
// back.
//
// Papers: TPC section 3.1 (task states; fetch as many as the local store allows), Jack Rabbit
// section 4.5 (multi-buffering).
#include "worker/worker.hpp"

#include "base/anew.hpp"
#include "task/slice.hpp"
#include "worker/close_mailbox.hpp"
#include "worker/complete.hpp"
#include "worker/contexts.hpp"
#include "worker/execute.hpp"
#include "worker/idle.hpp"
#include "worker/serving.hpp"
#include "worker/stage.hpp"
#include "worker/straight.hpp"
#include "worker/strips.hpp"
#include "worker/take.hpp"
#include "worker/traced.hpp"
#include "worker/wait_in_task.hpp"
#include "worker/write_back.hpp"

#include <utility>

namespace lev {

namespace {

[[gnu::always_inline]] inline bool stage_job(engine& e, participant& self, job& j,
                                             bool must) noexcept {
  if ((j.flags & task_staged) == 0 || (j.flags & task_too_big) != 0) return true;
  // It will not run: the rest of a large task must not be fetched to be dropped.
  if (is_cancelled(e, j)) return true;
  const traced t(e, self, step::stage, j);
  return stage(e, self, j, must);
}

// A task larger than the local store.
[[gnu::noinline]] void execute_in_strips(engine& e, participant& self, job& j) noexcept {
  LEV_DCHECK((j.flags & task_staged) != 0 && j.store_offset == arena::none);
  const traced t(e, self, step::execute, j);
  descriptor whole;
  read_descriptor(e.task_slots, j.task, whole);
  run_strips(e, self, j, whole, 0);
}

[[gnu::noinline]] void write_back_job(engine& e, participant& self, job& j) noexcept {
  const traced t(e, self, step::write_back, j);
  write_back(e, j,
             [&](unsigned i) -> const argument& { return e.task_slots.argument_at(j.task, i); });
}

// Times the items of a sliced task, for the grain of the next one. Virtual time has unit costs.
[[gnu::noinline]] void execute_timed(engine& e, participant& self, job& j) noexcept {
  const std::uint64_t items = items_of(std::span(j.body.arguments, j.argument_count));
  if (items == 0 || e.caps.virtual_time) return execute(e, self, j);
  const std::uint32_t place = item_costs::place_of(j.procedure, j.body.arguments, j.argument_count);
  const std::uint64_t begin_ns = e.machine->now_ns();
  execute(e, self, j);
  e.costs.note(place, items, e.machine->now_ns() - begin_ns);
}

// Others run while a task's data is on its way.
inline void await_staged(engine& e, participant& self, std::uint32_t tag) noexcept {
  while (has_turns(self) && self.staying == 0 && !e.machine->is_tag_done(tag))
    let_others_run(*self.contexts);
  e.machine->wait_tag(tag);
}

// A callback may wait for the task that is in hand.
[[gnu::noinline]] void tell_before_work(engine& e, participant& self) noexcept {
  if (has_callback(e, self.ended_pieces_join) && contexts_of(self) != nullptr)
    return tell_ends_aside(*self.contexts);
  count_ended_pieces(e, self);
}

// From staged to executed, with the outputs on their way.
[[gnu::always_inline]] inline void execute_job(engine& e, participant& self, job& j) noexcept {
  if (self.aside.ended_pieces != 0 &&
      (self.ended_pieces_join != j.parent || (j.flags & task_is_piece) == 0))
    tell_before_work(e, self);
  if (is_cancelled(e, j)) {
    j.result = status::cancelled;
    return;
  }
  if ((j.flags & task_too_big) != 0) return execute_in_strips(e, self, j);
  if ((j.flags & task_staged) != 0) await_staged(e, self, j.tag);
  {
    const traced t(e, self, step::execute, j);
    if ((j.flags & task_timed) != 0) {
      execute_timed(e, self, j);
    } else {
      execute(e, self, j);
    }
  }
  if ((j.flags & task_staged) != 0) write_back_job(e, self, j);
}

[[gnu::always_inline]] inline void complete_job(engine& e, participant& self, job& j) noexcept {
  if ((j.flags & task_staged) != 0) {
    e.machine->wait_tag(j.tag);
    release_room(e, self, j);
  }
  complete(e, self, j);
}

// A task whose data found no room waits for its turn in the queue, where others may take it.
void put_back(engine& e, participant& self, std::uint32_t task) noexcept {
  push_ready(e, self, task);
  wake_worker(e, self);
}

// The number of the context that runs, which is that of its task's transfers.
inline std::uint32_t tag_here(const participant& self) noexcept {
  return self.contexts == nullptr ? 0 : self.contexts->current->number;
}

// Whether a piece is noted with others of its join, and none of them was cancelled.
inline bool is_next_piece(const engine& e, const participant& self, std::uint32_t join) noexcept {
  return (self.aside.ended_pieces == 0 || self.ended_pieces_join == join) &&
         (e.task_slots.at(join).state.word() & state_bits::cancel_asked) == 0;
}

// Whether a task has its memory in place, is not timed and holds no mutex, and nothing else has to
// be done or noted before it. Most tasks are so. `Task` is a slot or a job.
template <class Task>
inline bool is_run_plainly(const engine& e, const participant& self, const Task& t,
                           std::uint32_t shape, std::uint64_t seen) noexcept {
  static_assert((near_arguments & (near_arguments + 1)) == 0);  // all bits of what is below
  if (e.runs_plainly.load(memory_order_relaxed) == 0 || (seen & state_bits::cancel_asked) != 0)
    return false;
  const std::uint32_t more = shape & ~shape_of(task_detached, near_arguments);
  if (more == 0) [[likely]]
    return self.aside.ended_pieces == 0;
  return more == shape_of(task_is_piece, 0) && is_next_piece(e, self, t.parent);
}

// `by`, if not null, holds the task's ticket. True: the ticket is consumed.
inline bool execute_plainly(engine& e, participant& self, slot& s, job& j,
                            const child* by) noexcept {
  execute_body(e, self, j, procedure_at(j.procedure).info);
  slot& ended = anew(s);
  if (by != nullptr && try_complete_collected(e, self, ended, j, by->generation())) return true;
  complete(e, self, ended, j);
  return false;
}

// There is no memory for its data.
[[gnu::noinline, gnu::cold]] void fail_unstaged(engine& e, participant& self, job& j) noexcept {
  j.result = status::out_of_memory;
  j.task_code = 0;
  complete(e, self, j);
}

[[gnu::always_inline]] inline void run_job(engine& e, participant& self, job& j) noexcept {
  if (is_run_plainly(e, self, j, shape_of(j.flags, 0), j.seen)) {
    execute_plainly(e, self, e.task_slots.at(j.task), j, nullptr);
    return;
  }
  if (!stage_job(e, self, j, true)) return fail_unstaged(e, self, j);
  execute_job(e, self, j);
  complete_job(e, self, j);
}

// A piece that takes long is cut however many wait: the last piece makes the whole late by its own
// time, which may be many times the estimate where items differ.
inline bool is_long(engine& e, std::uint32_t task) noexcept {
  constexpr std::uint64_t long_ns = 20'000;
  const std::uint64_t time_ns = time_of(e, task);
  return (e.task_slots.at(task).flags & task_timed) != 0 && (time_ns == 0 || time_ns > long_ns);
}

// Cuts a task that was taken, while few wait in its own inbox. Others find the pieces there, and no
// taker waits for a dicer; so pieces are large first, and small in the end. False: the task must be
// run as it is.
bool divide(engine& e, participant& self, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  if (!is_cut_by_takers(e, s)) return false;
  const std::uint32_t enough = e.sched.threshold();
  const std::uint32_t waiting = self.inbox.size();
  std::uint32_t share = 2 * waiting < enough ? enough - waiting + 1 : 0;
  if (share == 0 && enough != 0 && is_long(e, task)) share = 2;
  const std::uint64_t whole = e.task_slots.at(whole_of(s, task)).state.word();
  if (share == 0 || (whole & state_bits::cancel_asked) != 0 || !dice_own(e, self, task, share))
    return false;
  wake_worker(e, self);
  return true;
}

[[gnu::noinline]] void run_with_care(engine& e, participant& self, std::uint32_t task) noexcept {
  const std::uint32_t flags = e.task_slots.at(task).flags;
  if ((flags & task_diceable) != 0 && divide(e, self, task)) return;
  // The tasks of a bulk are no slices: they keep their order.
  constexpr std::uint8_t counted_max = 0xff;
  if ((flags & task_is_piece) != 0 && (flags & task_timed) != 0 &&
      self.aside.pieces_in_a_row != counted_max)
    ++self.aside.pieces_in_a_row;
  job j{job::to_be_taken{}};
  load_job(e, j, task);
  j.tag = tag_here(self);
  run_job(e, self, j);
}

// Runs a task that was taken from a queue, of that word.
[[gnu::always_inline]] inline bool run_seen(engine& e, participant& self, slot& s,
                                            std::uint32_t task, std::uint64_t seen,
                                            const child* by) noexcept {
  if (!is_run_plainly(e, self, s, shape_of(s.flags, s.argument_count), seen)) {
    run_with_care(e, self, task);
    return false;
  }
  job j{job::to_be_taken{}};
  read_job(s, j, task, seen);
  return execute_plainly(e, self, s, j, by);
}

[[gnu::always_inline]] inline void run_taken(engine& e, participant& self,
                                             std::uint32_t task) noexcept {
  slot& s = e.task_slots.at(task);
  const std::uint64_t seen = s.state.word();
  if (static_cast<std::uint32_t>(seen) == state_bits::live && is_straight(s) && runs_straight(e) &&
      !is_any_due(self.aside)) [[likely]]
    return run_straight(e, self, s, task, seen);
  run_seen(e, self, s, task, seen, nullptr);
}

job* new_frame(engine& e, participant& self) noexcept {
  for (std::uint32_t i = 0; i < frames_of(e); ++i) {
    if ((self.frames_used & std::uint64_t{1} << i) != 0) continue;
    self.frames_used |= std::uint64_t{1} << i;
    self.frames[i].tag = i;
    return &self.frames[i];
  }
  return nullptr;
}
void free_frame(participant& self, const job* j) noexcept {
  LEV_DCHECK((self.frames_used & std::uint64_t{1} << j->tag) != 0 && j == &self.frames[j->tag]);
  LEV_DCHECK(j->store_offset == arena::none && j->spill == nullptr);
  self.frames_used &= ~(std::uint64_t{1} << j->tag);
}

}  // namespace

bool run_plainly(engine& e, participant& self, slot& s, std::uint32_t task, std::uint64_t seen,
                 const child* by) noexcept {
  return run_seen(e, self, s, task, seen, by);
}

[[gnu::noinline]] void end_otherwise(engine& e, participant& self, job& j, int code) noexcept {
  if (code != 0) {
    j.task_code = code;
    j.result = status::task_failed;
  }
  if (j.has_transfers) end_transfers(self, j);
  restore_float_mode(self.float_mode);
  end_body(self, j);
  complete(e, self, j);
}

void help_itself(engine& e, participant& self, std::uint32_t task) noexcept {
  const serving s(self);
  run_taken(e, self, task);
  take_turns(self);
}

bool has_tail(engine& e, const job& j) noexcept {
  return has_callback(e, whole_of(j));
}

// A completion may run a callback, which may wait: then other contexts go on, and there may be
// another such task.
bool drain(engine& e, participant& self) noexcept {
  const bool has_one = self.draining != nullptr;
  while (job* j = std::exchange(self.draining, nullptr)) {
    complete_job(e, self, *j);
    free_frame(self, j);
  }
  return has_one;
}

namespace {

// From here on an idle worker may take the job.
void show_staged(engine& e, participant& self, job& j) noexcept {
  j.is_shown = true;
  // Pairs with shows_staged() and try_steal_staged(). Sequentially consistent: the look at the
  // doorbell comes after it.
  self.staged[j.tag].exchange(j.task, memory_order_seq_cst);
  wake_worker(e, self);
}

// Gives the room and the frame of a staged task back.
void drop_staged(engine& e, participant& self, job& j) noexcept {
  e.machine->wait_tag(j.tag);
  release_room(e, self, j);
  free_frame(self, &j);
}

// Takes a task and stages it: the next one to be begun, or one behind it. If the next one cannot be
// staged, it has ended.
bool take_ahead(engine& e, participant& self, bool is_next) noexcept {
  job* j = new_frame(e, self);
  if (j == nullptr) return false;
  if (!(is_next ? take(e, self, *j) : take_queued(e, self, *j))) {
    free_frame(self, j);
    return false;
  }
  turn_to_work(e, self, j->is_direct);
  // The next job must get room, if need be that of the task before; those behind it only if there
  // is some.
  bool is_staged = stage_job(e, self, *j, false);
  if (!is_staged && is_next) {
    drain(e, self);
    is_staged = stage_job(e, self, *j, true);
  }
  if (!is_staged) {
    is_next ? fail_unstaged(e, self, *j) : put_back(e, self, j->task);
    free_frame(self, j);
    return is_next;
  }
  if (!is_next) show_staged(e, self, *j);
  self.ahead[self.ahead_count++] = j;
  return true;
}

// The oldest staged job that no thief has taken; null when there is none.
job* next_ahead(engine& e, participant& self) noexcept {
  while (self.ahead_count != 0) {
    job* j = self.ahead[0];
    --self.ahead_count;
    for (std::uint32_t i = 0; i < self.ahead_count; ++i) self.ahead[i] = self.ahead[i + 1];
    // Pairs with try_steal_staged(): one of the two runs it.
    if (!std::exchange(j->is_shown, false) ||
        self.staged[j->tag].exchange(no_slot, memory_order_acq_rel) != no_slot)
      return j;
    drop_staged(e, self, *j);
  }
  return nullptr;
}

// Tells of tasks that a pass found to be too big, while another is in hand.
[[gnu::noinline]] void tell_failures(engine& e, participant& self) noexcept {
  if (contexts_of(self) != nullptr) return tell_ends_aside(*self.contexts);
  fail_rest(e, self);
}

// One turn with asynchronous copies: slot n executes, n+1 and on are being staged, n-1 is being
// written back. One that leaves takes no more tasks.
bool run_ahead(engine& e, participant& self, bool takes_more) noexcept {
  if (self.draining != nullptr && has_tail(e, *self.draining)) drain(e, self);
  job* j = next_ahead(e, self);
  if (j == nullptr) {
    if (!takes_more || !take_ahead(e, self, true)) return drain(e, self);
    if ((j = next_ahead(e, self)) == nullptr) return true;
  }
  // While another participant is idle, tasks are left in the queue.
  while (takes_more && self.ahead_count + 1 < e.depth && !e.doorbell.someone_idle() &&
         take_ahead(e, self, false)) {
  }
  if (owes_failures(self)) tell_failures(e, self);
  execute_job(e, self, *j);
  const bool may_drain = (j->flags & task_staged) != 0 && !has_tail(e, *j);
  // First let go of this job, then complete the one before: its callback may wait for this one.
  job* const before = std::exchange(self.draining, j);
  if (before != nullptr) {
    complete_job(e, self, *before);
    free_frame(self, before);
  }
  if (self.ahead_count == 0 || !may_drain) drain(e, self);
  return true;
}

}  // namespace

void give_back_ahead(engine& e, participant& self) noexcept {
  while (job* j = next_ahead(e, self)) {
    const std::uint32_t task = j->task;
    drop_staged(e, self, *j);
    put_back(e, self, task);
  }
}

namespace {

[[gnu::noinline]] bool run_letter(engine& e, participant& self) noexcept {
  job j{job::to_be_taken{}};
  if (!take_letter(e, self, j)) return false;
  j.tag = tag_here(self);
  turn_to_work(e, self, true);
  run_job(e, self, j);
  return true;
}

// Goes on after a task with those of its own inbox, and with those that a host takes alone.
constexpr std::uint32_t more_tasks_max = 32;
inline bool take_more(engine& e, participant& self, std::uint32_t* task) noexcept {
  if (!self.inbox.has_any()) return take_alone(e, self, task);
  *task = take_own(e, anew(self));
  return *task != no_slot;
}
// For a participant that has something to see to, but nothing that has its turn now: pieces that
// have ended, as a rule.
[[gnu::noinline]] void run_more_with_care(engine& e, participant& self, awaited& what) noexcept {
  std::uint32_t task = no_slot;
  for (std::uint32_t i = 0; i < more_tasks_max; ++i) {
    if (is_turn_due(self.aside) || is_over(what) || !take_more(e, self, &task)) return;
    slot& s = e.task_slots.at(task);
    run_seen(e, self, s, task, s.state.word(), nullptr);
  }
}
// `awaits_one`: the end of one task.
template <bool awaits_one>
[[gnu::always_inline]] inline void run_more(engine& e, participant& self, awaited& what) noexcept {
  std::uint32_t task = no_slot;
  for (std::uint32_t left = more_tasks_max; left != 0; --left) {
    participant& taker = anew(self);
    if (is_any(taker.aside)) return run_more_with_care(e, taker, what);
    if (awaits_one ? is_one_over(what) : what.is_there()) return;
    if (!take_more(e, taker, &task)) return;
    slot& s = e.task_slots.at(task);
    const std::uint64_t seen = s.state.word();
    if (static_cast<std::uint32_t>(seen) == state_bits::live && is_straight(s) && runs_straight(e))
        [[likely]] {
      run_straight(e, taker, s, task, seen);
    } else {
      run_seen(e, taker, s, task, seen, nullptr);
    }
  }
}

}  // namespace

void run_staged(engine& e, participant& self) noexcept {
  LEV_DCHECK(runs_here(self) && self.ahead_count != 0);
  run_ahead(e, self, false);
}

bool run_some(engine& e, participant& self, awaited* what) noexcept {
  LEV_DCHECK(runs_here(self));
  if (self.frames != nullptr) return run_ahead(e, self, true);
  if (self.mailbox.has_letter(self.letters_seen) && run_letter(e, self)) return true;
  const std::uint32_t task = take_in_turn(e, self);
  if (task == no_slot) return false;
  turn_to_work(e, self, false);
  run_taken(e, self, task);
  if (what == nullptr) return true;
  what->one != nullptr ? run_more<true>(e, self, *what) : run_more<false>(e, self, *what);
  return true;
}

// One task, from beginning to end, or one turn of those in flight.
bool run_one(engine& e, participant& self) noexcept {
  return run_some(e, self, nullptr);
}

}  // namespace lev
