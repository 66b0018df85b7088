// straight_take: from the lines of workers to consumed tickets, in one straight line, for a host
// that is about to wait. Tasks that succeeded and have nothing to notify are ended here; whatever
// else there is is left to tend_all(), in tend.cpp, with the steps of collect.cpp.
#pragma once

#include <leveret/ticket.hpp>

#include "base/anew.hpp"
#include "remote/line_turn.hpp"
#include "worker/complete.hpp"
#include "worker/worker.hpp"

namespace lev {

// The tickets of a caller that waits for all of them; none if there is no such caller. Workers end
// their tasks in order, and tickets mostly stand in that order: so only the next one is compared.
struct awaited_tickets {
  ticket* next = nullptr;
  ticket* end = nullptr;
  const detail::runtime_state* home = nullptr;

  void skip_empty() noexcept {
    while (next != end && !*next) ++next;
  }
  bool is_next(std::uint32_t task, std::uint32_t generation) const noexcept {
    return next != end && next->id() == (std::uint64_t{generation} << 32 | (task + 1)) &&
           next->home() == home;
  }
};

// Ends and collects the oldest of `count` tasks that succeeded, by one step each and without a
// call, as long as each is plain, nobody has announced anything for it, and its ticket is the next
// awaited one. Returns how many.
[[gnu::noinline]] inline std::uint32_t collect_awaited(engine& e, index_cache& free_slots,
                                                       remote_line& line, std::uint32_t count,
                                                       awaited_tickets& awaited) noexcept {
  ticket* next = awaited.next;
  std::uint32_t n = line.collected;
  const std::size_t tickets = static_cast<std::size_t>(awaited.end - next);
  const std::uint32_t last = n + static_cast<std::uint32_t>(smaller<std::size_t>(count, tickets));
  for (; n != last; ++n, ++next) {
    const job& j = line.job_at(n);
    const std::uint32_t task = j.task;  // no_slot: beyond all
    std::uint64_t seen = j.seen;
    // The word of such a task is its generation and `live`, its ticket's number is one with its
    // slot's number and 1.
    if (next->id() != seen - state_bits::live + task + 1 ||
        static_cast<std::uint32_t>(seen) != state_bits::live || next->home() != awaited.home ||
        !has_plain_end(j) || !e.task_slots.can_keep(free_slots, task))
      break;
    if (!e.task_slots.at(task).state.try_finish_pending(seen)) [[unlikely]]
      break;
    e.task_slots.keep(free_slots, task);
    next->forget();
  }
  awaited.next = next;
  return n - line.collected;
}

// What a look at a line has found, bit by bit: tasks that had nothing to notify, and are complete;
// that there may be more to do.
constexpr unsigned look_told = 1;
constexpr unsigned look_more = 2;

// The rest of a turn in which there are other ends than those `taken` by collect_awaited().
[[gnu::noinline]] unsigned end_turn_with_ends(remote_crew& r, participant& self,
                                              std::uint32_t worker, std::uint32_t taken,
                                              remote_ends there, awaited_tickets& awaited) noexcept;

// Takes the ends of one line that are there.
template <bool has_tickets>
[[gnu::always_inline]] inline unsigned look_at_line(remote_crew& r, participant& self,
                                                    std::uint32_t worker,
                                                    awaited_tickets& awaited) noexcept {
  remote_line& line = r.lines[worker];
  if (!line.is(remote_line::tasks_mask | remote_line::has_left)) return 0;
  if (!line.turn.try_hold()) return look_more;
  if (line.left != 0) [[unlikely]] {
    end_turn(line);
    return look_more;
  }
  const remote_ends there = r.remote->ends_of(worker);
  std::uint32_t taken = 0;
  if (has_tickets) taken = collect_awaited(r.e, self.free_slots, line, there.successes(), awaited);
  if (taken == 0 || there != remote_ends(taken)) [[unlikely]]
    return end_turn_with_ends(r, self, worker, taken, there, awaited);
  r.e.participants[worker].counters.executed.add(taken);
  anew(self).counters.completed.add(taken);
  r.remote->take_successes(worker, taken);
  line.shorten(taken);
  return end_turn(line) ? look_told | look_more : look_told;
}

// One look at each line. False: there may be more to do, which tend_all() does.
template <bool has_tickets>
[[gnu::always_inline]] inline bool take_plain_ends(remote_crew& r, participant& self,
                                                   awaited_tickets& awaited) noexcept {
  engine& e = r.e;
  LEV_DCHECK(!self.calls.is_tending && self.aside.ended_pieces == 0);
  unsigned found = 0;
  self.calls.is_tending = true;  // a part of a task that goes on is posted afterwards
  for (std::uint32_t w = 0; w < e.workers; ++w)
    found |= look_at_line<has_tickets>(r, self, w, awaited);
  self.calls.is_tending = false;
  if ((found & look_told) != 0) tell_barrier(e);
  // A host that has queued a task meanwhile found the lines full, and has left it to this one.
  return (found & look_more) == 0 && !e.sched.has_waiting() &&
         e.sched.ready().first().looks_empty() && (e.workers == 1 || !is_uneven(r));
}

// may_take_ends() tells whether a host may take ends now; then it owes none. owes_no_ends() is that
// for one that may owe some.
[[gnu::noinline]] bool owes_no_ends(remote_crew& r, participant& self) noexcept;
inline bool may_take_ends(remote_crew& r, participant& self) noexcept {
  const std::uint64_t any = reinterpret_cast<std::uintptr_t>(self.running) |
                            reinterpret_cast<std::uintptr_t>(self.draining);
  if (any == 0 && !is_any(self.aside) && !self.calls.is_tending) [[likely]]
    return true;
  return owes_no_ends(r, self);
}

// take_awaited() is for a host that waits for all of these tickets, of which the last is not empty;
// it is not the service, and no task is traced. It may consume those whose tasks have succeeded.
// True: it has, all of them.
[[gnu::always_inline]] inline bool take_awaited(remote_crew& r, participant& self, ticket* tickets,
                                                std::size_t count) noexcept {
  LEV_DCHECK(count != 0 && tickets[count - 1] && !r.is_service(self) && !r.is_traced);
  if (!may_take_ends(r, self)) return false;
  awaited_tickets awaited{tickets, tickets + count, tickets[count - 1].home()};
  if (!take_plain_ends<true>(r, self, awaited)) [[unlikely]]
    tend_all(r, self);
  awaited.skip_empty();
  return awaited.next == awaited.end;
}

}  // namespace lev
