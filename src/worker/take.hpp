// take: the next task for this participant, from the nearest place that has one.
//
//   1. the mailbox: a submitter sent it here
//   2. its own inbox, youngest first
//   3. the ready queue, a batch at a time, into the inbox    (Jack Rabbit, checkout, Figure 4.4);
//      one by one by a host that is alone there (take_alone.hpp)
//   4. a pass of the scheduler, if tasks wait on the staged path
//   5. the backlog: tasks that found no slot get one, and go to the queues
//   6. another one's inbox, oldest first; a task that another has staged ahead    (Sol MT)
#pragma once

#include "worker/enqueue.hpp"
#include "worker/take_alone.hpp"

#include <cstddef>
#include <cstring>

namespace lev {

// Arguments that do not lie one behind the other, or will be changed.
[[gnu::noinline]] inline void copy_arguments(engine& e, job& j) noexcept {
  for (unsigned i = 0; i < j.argument_count; ++i)
    j.arguments[i] = e.task_slots.argument_at(j.task, i);
  j.body.arguments = j.arguments;
  j.store_offset = arena::none;
  j.spill = nullptr;
}

// The procedure, the number of arguments and the flags, as one word: GCC reads and writes each of
// them otherwise.
inline void copy_shape(const slot& from, ending& to) noexcept {
  constexpr std::size_t bytes = sizeof(std::uint32_t);
  static_assert(offsetof(ending, procedure) % bytes == 0 &&
                offsetof(ending, argument_count) == offsetof(ending, procedure) + 2 &&
                offsetof(ending, flags) == offsetof(ending, procedure) + 3);
  static_assert(offsetof(detail::task_head, procedure) == 0 &&
                offsetof(detail::task_head, argument_count) == 2 &&
                offsetof(detail::task_head, flags) == 3);
  const detail::task_head& head = from;
  std::memcpy(reinterpret_cast<char*>(&to) + offsetof(ending, procedure), &head, bytes);
}

// Reads a task in a queue from its slot. `seen` is its state word.
inline void read_job(const slot& s, job& j, std::uint32_t task, std::uint64_t seen) noexcept {
  j.task = task;
  j.parent = s.parent;
  j.seen = seen;
  copy_shape(s, j);
  j.result = status::ok;
  j.is_direct = false;
  j.has_transfers = false;
  j.spare = 0;
  j.task_code = 0;
  j.body.arguments = s.arguments;
  // A queued task has no other owner, and a join is in no queue.
  LEV_DCHECK(state_bits::phase(seen) == state_bits::live && (j.flags & task_is_join) == 0);
}

inline void load_job(engine& e, job& j, std::uint32_t task) noexcept {
  const slot& s = e.task_slots.at(task);
  read_job(s, j, task, s.state.word());
  LEV_DCHECK((j.flags & task_is_piece) == 0 || j.parent < e.task_slots.count());
  if (s.argument_count > near_arguments || (s.flags & task_staged) != 0) copy_arguments(e, j);
}

// Whether the task must not run any more: it, or the task it is a piece of, was cancelled, or the
// runtime closes and cancels waiting tasks.
inline bool is_cancelled(engine& e, const job& j) noexcept {
  if (e.cancelling.load(memory_order_relaxed) != 0) return true;
  if (j.is_direct) return false;  // it is at its worker already
  std::uint64_t w = j.seen;
  if (j.parent != no_slot && (j.flags & task_is_piece) != 0)
    w = e.task_slots.at(j.parent).state.word();
  return (w & state_bits::cancel_asked) != 0 && state_bits::phase(w) == state_bits::live;
}

// The same for a task that runs, and looks now and then.
inline bool is_unwanted(const engine& e, const job& running) noexcept {
  return e.cancelling.load(memory_order_relaxed) != 0 ||
         (e.task_slots.at(whole_of(running)).state.word() & state_bits::cancel_asked) != 0;
}

// The letter stays as it is until the task's outcome has been collected.
inline bool take_letter(engine& e, participant& self, job& j) noexcept {
  const letter* const there = self.mailbox.try_receive(&self.letters_seen);
  if (there == nullptr) return false;
  const letter& l = *there;
  LEV_DCHECK(self.is_worker && runs_here(self));
  LEV_DCHECK_LOOK(e.task_slots.at(l.task).state.generation() == l.generation);
  LEV_DCHECK_LOOK(e.task_slots.at(l.task).state.is_live());
  j.task = l.task;
  j.parent = no_slot;
  j.seen = state_bits::make(l.generation, state_bits::live);
  j.procedure = l.procedure;
  j.argument_count = l.argument_count;
  j.flags = l.flags;
  j.result = status::ok;
  j.is_direct = true;
  j.has_transfers = false;
  j.spare = 0;
  j.task_code = 0;
  j.body.arguments = l.arguments;
  if (l.argument_count > l.arguments_max || (l.flags & task_staged) != 0) copy_arguments(e, j);
  return true;
}

// Always inlined: GCC 12 takes a function that only prefetches for one without effects and drops
// calls to it.
[[gnu::always_inline]] inline void prefetch_rows(const row_place& rows) noexcept {
  const std::uint64_t end = rows.address + rows.bytes;
  for (std::uint64_t p = rows.address; p < end; p += line_bytes)
    __builtin_prefetch(reinterpret_cast<const char*>(p), 0, 3);
  // Does no harm if there is nothing, wherever that would be.
  __builtin_prefetch(reinterpret_cast<const char*>(end - 1), 0, 3);
}
// The same for one place of a task, of which only the beginning is noted to be a row. Most are
// within two lines.
[[gnu::always_inline]] inline void prefetch_place(const row_place& row) noexcept {
  __builtin_prefetch(reinterpret_cast<const char*>(row.address), 0, 3);
  std::uint64_t bytes = row.bytes;
  if (bytes > line_bytes) [[unlikely]] {
    bytes = smaller(bytes, burst_lines_max * line_bytes);
    for (std::uint64_t at = line_bytes; at < bytes; at += line_bytes)
      __builtin_prefetch(reinterpret_cast<const char*>(row.address + at), 0, 3);
  }
  __builtin_prefetch(reinterpret_cast<const char*>(row.address + bytes - 1), 0, 3);
}
[[gnu::always_inline]] inline void prefetch(const task_hint& h) noexcept {
  if ((h.which & 1) != 0) prefetch_place(h.places[0]);
  if ((h.which & 2) != 0) prefetch_place(h.places[1]);
  if ((h.which & 4) != 0) prefetch_place(h.places[2]);
}
// Of the task at a place of its own inbox.
[[gnu::always_inline]] inline void prefetch_place(const participant& self,
                                                  std::uint32_t place) noexcept {
  if (place < self.hints_below) prefetch(self.hints[place & (hint_count - 1)]);
}
// Whether any task in its own inbox may have such a hint.
inline bool has_hints(const participant& self) noexcept {
  return self.hints_below != 0;
}

inline std::uint32_t take_own(engine& e, participant& self) noexcept {
  LEV_DCHECK(runs_here(self));
  std::uint32_t task = 0;
  if (!self.inbox.try_pop(&task)) return no_slot;
  // The hint `depth - 1` tasks from now; whatever is there, prefetching it does no harm.
  if (has_hints(self)) prefetch_place(self, self.inbox.bottom() - (e.depth - 1));
  return task;
}

// How many tasks are ready. After a few small catches in a row a worker lets the submitter get
// ahead (README.md; gcell section 3.3: the pullers back off). If no task comes meanwhile, it does
// not wait again for a while.
inline std::uint32_t count_ready(engine& e, participant& self, const index_ring<>& ready) noexcept {
  constexpr std::uint32_t catch_min = 4;
  constexpr std::int32_t catches_max = 4;
  constexpr std::int32_t catches_forgiven = 64;
  constexpr std::uint32_t looks = 4;
  const std::uint32_t waiting = ready.size();
  if (waiting == 0 || !self.is_worker) return waiting;
  if (waiting >= catch_min) return self.small_catches = 0, waiting;
  if (++self.small_catches <= catches_max) return waiting;
  for (std::uint32_t turn = 0; turn < looks * e.turns_per_look; ++turn) e.machine->relax();
  const std::uint32_t now = ready.size();
  if (now <= waiting) self.small_catches = -catches_forgiven;
  return now;
}

// Tasks that are not cut come first. A task that is cut becomes many, which go on top of the inbox:
// what waits there would wait for the end of a loop.
[[gnu::noinline]] inline void put_uncut_first(engine& e, std::uint32_t* batch,
                                              std::uint32_t count) noexcept {
  std::uint32_t last[checkout_max];
  std::uint32_t cut = 0;
  std::uint32_t uncut = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_cut = (e.task_slots.at(batch[i]).flags & task_diceable) != 0;
    (is_cut ? last[cut++] : batch[uncut++]) = batch[i];
  }
  for (std::uint32_t i = 0; i < cut; ++i) batch[uncut + i] = last[i];
  const std::uint32_t ready = e.pieces_ready.load(memory_order_relaxed);
  e.pieces_ready.store(ready - smaller(ready, larger(cut, 1u)), memory_order_relaxed);
}

// Moves a fair share of the ready queue into the inbox, except for the first task, which is
// returned.
[[gnu::noinline]] inline std::uint32_t take_ready(engine& e, participant& self) noexcept {
  index_ring<>& ready = e.sched.ready().nearest(self.ready, !self.is_worker);
  const std::uint32_t waiting = count_ready(e, self, ready);
  if (waiting == 0) return no_slot;
  if (const std::uint32_t task = begin_alone(e, self, ready, waiting); task != no_slot) return task;
  // A short queue in front of waiting tasks is taken one by one: tasks behind it may still be
  // split.
  const bool is_short = e.sched.has_waiting() && waiting <= checkout_max * e.takers;
  std::uint32_t share = is_short ? 1 : smaller(waiting / e.takers, checkout_max);
  share = larger(smaller(share, self.inbox.room()), 1u);
  std::uint32_t batch[checkout_max];
  const std::uint32_t n = ready.try_pop_some(batch, share);
  if (n == 0) return no_slot;
  LEV_DCHECK(n <= share && share <= checkout_max);
  for (std::uint32_t i = 1; i < n; ++i) e.task_slots.prefetch(batch[i]);
  if (!self.is_worker) note_taken(e, self, ready, batch[0]);
  if (n == 1) return batch[0];
  if (e.pieces_ready.load(memory_order_relaxed) != 0) put_uncut_first(e, batch, n);
  // There is room, which only this participant uses up.
  const bool is_in = push_all_own(e, self, batch + 1, n - 1);
  LEV_ASSERT(is_in);
  for (std::uint32_t i = 1; i < n && i < e.depth; ++i)
    prefetch_place(self, self.inbox.bottom() - i);
  // Between the two queues they were in none: a sleeper's last look may have missed them.
  wake_worker(e, self);
  return batch[0];
}

// Whether a participant has staged a task that it has not begun.
inline bool shows_staged(const engine& e, const participant& p) noexcept {
  for (std::uint32_t i = 0; p.frames != nullptr && i < frames_of(e); ++i) {
    // Pairs with show_staged(). Sequentially consistent: the sleeper's last look comes after its
    // announcement.
    if (p.staged[i].load(memory_order_seq_cst) != no_slot) return true;
  }
  return false;
}

// A worker that is busy for long would keep its staged tasks to itself. It drops the fetched data
// of a stolen task later.
inline bool try_steal_staged(engine& e, participant& from, std::uint32_t* task) noexcept {
  for (std::uint32_t i = 0; from.frames != nullptr && i < frames_of(e); ++i) {
    if (from.staged[i].load(memory_order_relaxed) == no_slot) continue;
    // Pairs with show_staged(), and with the owner's claim: one of the two runs it.
    *task = from.staged[i].exchange(no_slot, memory_order_acq_rel);
    if (*task != no_slot) return true;
  }
  return false;
}

[[gnu::noinline]] inline std::uint32_t take_stolen(engine& e, participant& self) noexcept {
  const std::uint32_t used = e.participants_used.load(memory_order_relaxed);
  if (used < 2) return no_slot;
  LEV_DCHECK(used <= e.participant_count && self.index < used);
  const std::uint32_t first = self.random.below(used);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint32_t victim = first + i < used ? first + i : first + i - used;
    std::uint32_t task = 0;
    participant& from = e.participants[victim];
    if (victim == self.index || (!from.inbox.try_steal(&task) && !try_steal_staged(e, from, &task)))
      continue;
    self.counters.stolen.add(1);
    return task;
  }
  return no_slot;
}

// take_queued() takes a task that any participant could take: no letter, and none that
// another one holds. For staging ahead.
inline bool take_queued(engine& e, participant& self, job& j) noexcept {
  std::uint32_t task = take_own(e, self);
  if (task == no_slot) task = take_ready(e, self);
  if (task == no_slot && e.sched.has_waiting()) {
    run_pass(e, self);
    wake_worker(e, self);
    task = take_ready(e, self);
  }
  if (task != no_slot) load_job(e, j, task);
  return task != no_slot;
}

// Queues a task of the backlog, which has a slot now.
inline void queue_admitted(engine& e, participant& self, std::uint32_t task,
                           const backlog_task& head, const argument* arguments) noexcept {
  e.task_slots.write(task, head, head.flags, arguments, {head.parent, head.parent_generation});
  if ((head.flags & task_has_locks) != 0) {
    e.mutexes.note(e.task_slots.extra(task), head.locks, head.lock_count);
    if (!e.mutexes.acquire(e.task_slots, task)) return;
  }
  enqueue(e, self, task);
}

// Gives slots to some tasks of the backlog.
inline void admit_some(engine& e, participant& self, bool with_locks) noexcept {
  constexpr std::uint32_t backlog_share_max = 8;
  backlog_task head;
  argument arguments[argument_count_max];
  for (std::uint32_t i = 0; i < backlog_share_max && e.backlog.has(with_locks); ++i) {
    std::uint32_t task = no_slot;
    const auto take_slot = [&]() noexcept {
      task = e.task_slots.try_take(self.free_slots);
      if (task == no_slot) task = e.task_slots.try_take_last(with_locks);
      return task != no_slot;
    };
    if (!e.backlog.pop(with_locks, &head, arguments, take_slot)) return;
    queue_admitted(e, self, task, head, arguments);
  }
}
inline void admit_backlog(engine& e, participant& self) noexcept {
  const bool with_locks_first = ++self.turns_of_piles % 2 != 0;
  admit_some(e, self, with_locks_first);
  admit_some(e, self, !with_locks_first);
}

// Step 5, and step 3 again. The backlog has its turn, too, while there are always tasks in the
// ready queue.
[[gnu::noinline]] inline std::uint32_t take_ready_or_backlog(engine& e,
                                                             participant& self) noexcept {
  constexpr std::uint32_t turns_for_backlog = 16;
  if (e.sched.ready().looks_empty() || ++self.turns_of_backlog % turns_for_backlog == 0)
    admit_backlog(e, self);
  return take_ready(e, self);
}

// Steps 3 to 5.
[[gnu::always_inline]] inline std::uint32_t take_shared(engine& e, participant& self) noexcept {
  if (e.sched.has_waiting() && e.sched.ready().size() < e.takers) {
    run_pass(e, self);
    wake_worker(e, self);
  }
  if (!e.backlog.looks_empty()) [[unlikely]]
    return take_ready_or_backlog(e, self);
  return take_ready(e, self);
}

// take_task() takes a task from the queues, take() from the mailbox, too; no_slot, or false: there
// is none.
[[gnu::always_inline]] inline std::uint32_t take_task(engine& e, participant& self) noexcept {
  std::uint32_t task = take_own(e, self);
  if (task == no_slot && !take_alone(e, self, &task)) task = take_shared(e, self);
  return task != no_slot ? task : take_stolen(e, self);
}

// After a few pieces in a row, takes the first task of the shared queues; seldom, the oldest one of
// its own inbox, which may be the piece of a loop that newer loops keep from its end. That one is
// taken less often, because it is large as a rule, and its pieces fill the inbox. no_slot: there is
// none.
[[gnu::noinline]] inline std::uint32_t take_other(engine& e, participant& self) noexcept {
  constexpr std::uint32_t turns_for_oldest = 16;
  self.aside.pieces_in_a_row = 0;
  if (++self.turns_of_others % turns_for_oldest != 0) return take_shared(e, self);
  std::uint32_t task = no_slot;
  return self.inbox.try_steal(&task) ? task : no_slot;
}

// Takes in turn for a participant that cuts its own pieces: these end only with the whole, and
// other waiting tasks would wait that long.
[[gnu::always_inline]] inline std::uint32_t take_in_turn(engine& e, participant& self) noexcept {
  constexpr std::uint32_t pieces_max = 4;
  if (self.aside.pieces_in_a_row >= pieces_max) [[unlikely]] {
    const std::uint32_t task = take_other(e, self);
    if (task != no_slot) return task;
  }
  return take_task(e, self);
}

inline bool take(engine& e, participant& self, job& j) noexcept {
  if (take_letter(e, self, j)) return true;
  const std::uint32_t task = take_task(e, self);
  if (task != no_slot) load_job(e, j, task);
  return task != no_slot;
}

// Whether all participants' own inboxes look empty, and none shows a task that it has staged.
inline bool inboxes_look_empty(const engine& e) noexcept {
  for (const participant& p : e.in_use()) {
    if (!p.inbox.looks_empty() || shows_staged(e, p)) return false;
  }
  return true;
}

// looks_idle(): nothing to take anywhere. A sleeper's last look, after it announced its sleep.
inline bool looks_idle(engine& e, participant& self) noexcept {
  if (self.mailbox.letter_announced(self.letters_seen) || !e.sched.ready().looks_empty() ||
      !e.sched.looks_empty() || has_backlog(e))
    return false;
  return inboxes_look_empty(e);
}

}  // namespace lev
