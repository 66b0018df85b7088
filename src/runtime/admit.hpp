// admit: the common steps of single and bulk submits before a task is queued.
#pragma once

#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "sync/hook_call.hpp"
#include "task/plain.hpp"
#include "task/validate.hpp"
#include "worker/complete.hpp"
#include "worker/enqueue.hpp"

namespace lev::detail {

// choose_grain() has a sliced task timed, and chooses its grain if the caller has not.
void choose_grain(runtime_state& c, draft& d, std::uint8_t* flags) noexcept;

// least_bytes() is what the smallest piece that can be cut from a task needs: one item of each
// sliced argument, and all of the rest. The pieces of a dice hook are not known: they may fit.
std::size_t least_bytes(const runtime_state& c, const draft& d) noexcept;

// has_size() tells whether the local store or the dicer concerns the task, check_size() how.
inline bool has_size(const runtime_state& c, const draft_facts& facts) noexcept {
  return facts.may_dice || facts.is_strided || (facts.has_address && c.copies.all);
}
bool check_size(const runtime_state& c, const draft& d, const draft_facts& facts,
                std::uint8_t* flags, refusal* why) noexcept;

[[gnu::noinline]] bool refuse_nobody(const runtime_state& c, refusal* why) noexcept;
[[gnu::noinline]] bool refuse_closed(refusal* why) noexcept;
[[gnu::noinline]] bool refuse_hook(refusal* why) noexcept;

// Whether the caller is in a filter or a hook of the runtime, where each submit is refused.
inline bool is_in_hook(const runtime_state& c) noexcept {
  return hook_call::calls_from(&c.sched);
}

// check_open() refuses submits from outside tasks once close() was called: draining includes the
// children of running tasks.
inline bool check_open(runtime_state& c, const participant* self, refusal* why) noexcept {
  if (self == nullptr) return refuse_nobody(c, why);
  if (is_in_hook(c)) [[unlikely]]
    return refuse_hook(why);
  if (c.closing.load(memory_order_relaxed) != 0 && self->running == nullptr)
    return refuse_closed(why);
  return true;
}

// Whether the crew can do this task.
inline bool check_crew(runtime_state& c, const draft& d, const draft_facts& facts,
                       refusal* why) noexcept {
  return !c.asks_crew || c.crew->can_do(d, facts, why);
}

// check_draft() says whether the runtime can run the task, chooses its grain where the caller has
// not, and adds to its flags.
inline bool check_draft(runtime_state& c, draft& d, std::uint8_t* flags, refusal* why) noexcept {
  const procedure_entry* const p = find_procedure(d.procedure);
  if (c.is_straight && p != nullptr && passes_plainly(d, *p)) return true;
  draft_facts facts;
  if (!validate(d, &facts, why) || !check_crew(c, d, facts, why)) return false;
  if (facts.is_sliced) choose_grain(c, d, flags);
  return !has_size(c, facts) || check_size(c, d, facts, flags, why);
}

// Checks the limits that a task asks for in place of the runtime's.
inline bool check_limits(const runtime_state& c, std::uint64_t task_ns_max,
                         std::uint32_t max_attempts, refusal* why) noexcept {
  if (task_ns_max != 0 && task_ns_max != no_time_limit && !c.crew->has_time_limits()) {
    return refuse(why, status::not_supported, -1,
                  "task_ns_max(): a task of the machine %s cannot be ended while it runs; take the "
                  "machine processes, or no time limit",
                  c.machine_name);
  }
  constexpr std::uint32_t most = 1000;
  return max_attempts <= most || refuse(why, status::bad_argument, -1,
                                        "max_attempts(): %u, at most %u", max_attempts, most);
}

inline bool refuse_after(status s, std::uint32_t i, refusal* why) noexcept {
  return refuse(why, s, -1,
                "after(): ticket %u is a %s; name tickets that were not waited for or released", i,
                status_name(s));
}

// Another thread may consume a ticket after this: start_after() then refuses it, too.
inline bool check_after(runtime_state& c, const std::uint64_t* after, std::uint32_t count,
                        bool foreign, refusal* why) noexcept {
  if (foreign) {
    return refuse(why, status::bad_ticket, -1,
                  "after(): a ticket of another runtime; name tickets of this one");
  }
  if (count > options::after_max) {
    return refuse(why, status::too_big, -1,
                  "after(): %u tickets, at most %u; chain through an empty task", count,
                  options::after_max);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    status s = check_ticket(&c, after[i]);
    if (s == status::ok &&
        c.task_slots.at(ticket_task(after[i])).state.peek(ticket_generation(after[i])) ==
            status::stale_ticket) {
      s = status::stale_ticket;
    }
    if (s != status::ok) return refuse_after(s, i, why);
  }
  return true;
}

inline bool check_locks(runtime_state& c, const mutex_id* locks, std::uint32_t count,
                        refusal* why) noexcept {
  if (count > mutexes_per_task_max) {
    return refuse(why, status::too_big, -1, "locks(): %u mutexes, at most %u per task", count,
                  mutexes_per_task_max);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!c.mutexes.exists(locks[i])) {
      return refuse(why, status::bad_argument, -1, "locks(): mutex %u was not made by make_mutex()",
                    locks[i]);
    }
  }
  return true;
}

// The edges that a submit has reserved: one for each predecessor.
struct edge_list {
  std::uint32_t count = 0;
  std::uint32_t nodes[options::after_max];
};

inline void give_edges(runtime_state& c, participant& self, const edge_list& edges,
                       std::uint32_t from, std::uint32_t to) noexcept {
  for (std::uint32_t i = from; i < to; ++i) give_edge(c, self, edges.nodes[i]);
}

// try_take_room() takes a slot, from the spare ones if `is_spare`, and the edges: all of it, or
// nothing, so that no submitter holds one and waits for the other.
std::uint32_t try_take_room(runtime_state& c, participant& self, edge_list& edges,
                            bool is_spare) noexcept;

// await_slot() gets a free slot, and edges, when there are none now: by helping or waiting, or it
// does not. Then refuse_full() says why. A host waits until `until_ns`.
[[gnu::noinline]] std::uint32_t await_slot(runtime_state& c, participant& self, edge_list& edges,
                                           std::uint64_t until_ns = no_deadline) noexcept;
bool refuse_full(runtime_state& c, const participant& self, const edge_list& edges,
                 refusal* why) noexcept;

inline task_parent parent_of(const job* by) noexcept {
  return by == nullptr ? task_parent{} : task_parent{by->task, generation_of(*by)};
}
// write_slot() writes a task that is submitted in the task `by`, or in none, and returns the number
// of its ticket.
[[gnu::always_inline]] inline std::uint64_t write_slot(runtime_state& c, const job* by,
                                                       std::uint32_t task, const draft& d,
                                                       std::uint8_t flags) noexcept {
  return opened_ticket(task, c.task_slots.write(task, d, flags, d.arguments, parent_of(by)));
}

// count_out() is for a task that was counted in vain: it gives its slot back and takes it out of
// the count.
[[gnu::noinline]] bool count_out(runtime_state& c, participant& self, std::uint32_t task,
                                 refusal* why) noexcept;

// A host that has counted its task calls is_closing(), or, where there is a heavy fence,
// is_closing_behind_fence().
inline bool is_closing_behind_fence(const runtime_state& c) noexcept {
  // Pairs with close_within(), which has the fence.
  return c.closing.load(memory_order_seq_cst) != 0;
}
inline bool is_closing(runtime_state& c) noexcept {
  if (c.has_heavy_fence) [[likely]]
    return is_closing_behind_fence(c);
  // Pairs with close_within(): a change of the word that adds nothing comes either before close()'s
  // and shows it the count, or after it.
  return c.closing.fetch_add(0, memory_order_seq_cst) != 0;
}

// count_in() counts a task as submitted, unless close() came between the look in check_open() and
// here: it must not drain the runtime and miss the task. This side counts, then looks at `closing`.
// close() sets `closing`, then looks at the counts, with the heavy fence in between that this side
// lacks.
inline bool count_in(runtime_state& c, participant& self, std::uint32_t task,
                     refusal* why) noexcept {
  self.counters.submitted.add(1);
  if (self.running != nullptr) return true;  // the drain waits for its parent
  return !is_closing(c) || count_out(c, self, task, why);
}

}  // namespace lev::detail
