// Checks of a task beyond its arguments: abilities of the crew, tickets, mutexes. validate() checks
// the arguments (task/validate.hpp).
#pragma once

#include "runtime/runtime_state.hpp"
#include "runtime/submit.hpp"
#include "runtime/wait.hpp"
#include "task/validate.hpp"

namespace lev::detail {

// Whether the crew can do this task.
inline bool check_crew(runtime_state& c, const draft& d, const draft_facts& facts,
                       refusal* why) noexcept {
  return !c.asks_crew || c.crew->can_do(d, facts, why);
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

}  // namespace lev::detail
