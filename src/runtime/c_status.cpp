// Outcomes and codes in words, for C: see c_status.hpp.
#include "runtime/c_status.hpp"

#include <cstdio>
#include <exception>

namespace lev {

namespace {

void describe_exception(const std::exception_ptr& exception, char* text,
                        std::size_t bytes) noexcept {
  text[0] = 0;
  if (!exception) return;
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    copy_text(text, bytes, text_of(e));
  } catch (...) {
    std::snprintf(text, bytes, "an exception that is no std::exception");
  }
}

}  // namespace

const char* meaning_of(status code) noexcept {
  switch (code) {
    case status::pending:
      return "the task has not ended";
    case status::timed_out:
      return "the time was over before the task was; the ticket is still there";
    case status::cancelled:
      return "the task was cancelled before it began";
    case status::task_failed:
      return "the task has failed; lev_wait says how";
    case status::dependency_failed:
      return "a task that this one was to follow has failed";
    case status::stale_ticket:
      return "the ticket was used up, by a wait or lev_release";
    case status::bad_ticket:
      return "this is no ticket of the runtime";
    case status::too_late:
      return "the task has its outcome";
    case status::not_supported:
      return "a task that runs cannot be ended here, as it runs in this process; it goes on";
    case status::closed:
      return "the runtime is closed, or the parent's of this process";
    default:
      return status_name(code);
  }
}

lev_status report(const outcome& o, lev_outcome* out) noexcept {
  lev_outcome local;
  lev_outcome& to = out == nullptr ? local : *out;
  to.code = static_cast<lev_status>(o.code);
  to.task_code = o.task_code;
  to.failures = o.failures;
  describe_exception(o.exception, to.message, sizeof to.message);
  if (o.code != status::ok) fail(o.code, to.message[0] != 0 ? to.message : meaning_of(o.code));
  return to.code;
}

}  // namespace lev
