// Statuses in words; see meaning.hpp.
#include "runtime/meaning.hpp"

#include <leveret/this_task.hpp>

#include "runtime/runtime_state.hpp"

#include <cstdio>

namespace lev {

const char* meaning_of(status code) noexcept {
  static_assert(contexts_max == 16);  // as would_deadlock says
  switch (code) {
    case status::pending:
      return "the task has not ended";
    case status::would_block:
      return "more threads call in than config.host_threads allows; on sim only one may";
    case status::timed_out:
      return "the time was over before the task was; the ticket is still there";
    case status::cancelled:
      return "the task was cancelled before it began, or ended where it ran";
    case status::dependency_failed:
      return "a task that this one was to follow has failed";
    case status::bad_argument:
      return "a time-out is lev::no_timeout (-1), 0 or more, a policy one of wait_policy, and a "
             "set of tickets has one that is not empty";
    case status::stale_ticket:
      return "the ticket was used up: it was waited for or released before";
    case status::bad_ticket:
      return "this is no ticket of the runtime; a ticket that was waited for is empty";
    case status::closed:
      return detail::absent_after_fork;
    case status::would_deadlock:
      return "the wait cannot end: it is for a task below the caller, for everything and inside a "
             "task, or inside a hook; or more tasks wait than the workers have contexts (16 each); "
             "see docs/how-to/wait.md";
    case status::too_deep:
      return "tasks that wait are stacked as deep as config.nest_max allows; raise it. The ticket "
             "is still there";
    case status::not_supported:
      return "a task that runs cannot be ended here, as it runs in this process; it goes on";
    case status::exists:
      return "the ticket has a callback already";
    case status::too_late:
      return "the task has its outcome";
    default:
      return nullptr;
  }
}

void write_meaning(const outcome& o, char* text, std::size_t bytes) noexcept {
  if (o.code == status::task_failed && o.failures == 0) {
    std::snprintf(text, bytes, "the task has failed; a wait for its ticket says how");
  } else if (o.code == status::task_failed) {
    std::snprintf(text, bytes, "the procedure returned %d; %u task(s) failed behind this ticket",
                  o.task_code, o.failures);
  } else if (const char* meaning = meaning_of(o.code)) {
    std::snprintf(text, bytes, "%s", meaning);
  } else {
    std::snprintf(text, bytes, "the task ended with %s", status_name(o.code));
  }
}

}  // namespace lev
