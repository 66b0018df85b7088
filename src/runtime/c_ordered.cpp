// lev::ordered for C: the same calls, with statuses.
#include <leveret/leveret.h>
#include <leveret/ordered.hpp>

#include "runtime/c_call.hpp"
#include "runtime/c_status.hpp"

#include <algorithm>

using lev::bad_argument;
using lev::fail;
using lev::guarded;

namespace {

// What lev_last_message() says of a wait that has no exception to tell of. Null: what it says of
// any.
const char* meaning_of_wait(lev_status code) noexcept {
  switch (code) {
    case LEV_TIMED_OUT:
      return "lev_ordered_wait: the time was over before all tasks were; wait again";
    case LEV_BAD_ARGUMENT:
      return "lev_ordered_wait: timeout_ns is LEV_NO_TIMEOUT, 0 or more";
    case LEV_WOULD_BLOCK:
      return "lev_ordered_wait: another call of this scope is under way, in another thread or "
             "around this callback; or more threads call in than the config's host_threads";
    case LEV_TASK_FAILED:
      return "a task of the scope has failed; outcome.task_code is what it returned";
    default:
      return nullptr;
  }
}

}  // namespace

struct lev_ordered {
  explicit lev_ordered(lev::runtime& home) : tasks(home) {}
  lev::ordered tasks;
};

extern "C" {

lev_status lev_ordered_open(lev_runtime* runtime, lev_ordered** scope) {
  if (scope != nullptr) *scope = nullptr;
  if (runtime == nullptr || scope == nullptr)
    return bad_argument("lev_ordered_open: runtime and scope must not be NULL");
  return guarded([&] { *scope = new lev_ordered(runtime->runtime); });
}

lev_status lev_ordered_submit(lev_ordered* scope, lev_procedure_id procedure,
                              const lev_argument* arguments, unsigned count,
                              const lev_task_options* options, lev_ticket* ticket) {
  lev::options o;
  // Before the ticket is set to 0: a chain has the ticket of its last task among those of `after`.
  const lev_status read =
      options == nullptr ? LEV_OK : lev::read_options("lev_ordered_submit", *options, &o);
  if (ticket != nullptr) *ticket = 0;
  if (scope == nullptr)
    return bad_argument("lev_ordered_submit: scope must not be NULL; lev_ordered_open makes one");
  if (const lev_status s = lev::check_arguments("lev_ordered_submit", arguments, count);
      s != LEV_OK)
    return s;
  if (read != LEV_OK) return read;
  lev::descriptor task;
  task.procedure = procedure;
  task.argument_count = static_cast<std::uint8_t>(count);
  std::copy_n(reinterpret_cast<const lev::argument*>(arguments), count, task.arguments);
  return guarded([&] {
    const lev_ticket id = scope->tasks.submit_id(task, options == nullptr ? nullptr : &o);
    if (ticket != nullptr) *ticket = id;
  });
}

lev_status lev_ordered_wait(lev_ordered* scope, int64_t timeout_ns, lev_outcome* outcome) {
  if (scope == nullptr) return bad_argument("lev_ordered_wait: scope must not be NULL");
  const lev::outcome o = scope->tasks.wait_outcome(timeout_ns);
  const lev_status code = lev::report(o, outcome);
  const char* const meaning = o.exception ? nullptr : meaning_of_wait(code);
  return meaning == nullptr ? code : fail(o.code, meaning);
}

void lev_ordered_close(lev_ordered* scope) {
  delete scope;
}

}  // extern "C"
