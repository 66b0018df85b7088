// What the calls of the C API that hand in tasks have in common: the runtime behind its handle, and
// a task as C says it.
#pragma once

#include <leveret/leveret.h>
#include <leveret/runtime.hpp>

#include "runtime/c_status.hpp"

struct lev_runtime {
  explicit lev_runtime(const lev::config& c) : runtime(c) {}
  lev::runtime runtime;
};

namespace lev {

// `call` is the function's name, for the message.
inline lev_status check_arguments(const char* call, const lev_argument* arguments,
                                  unsigned count) noexcept {
  if (count > LEV_ARGUMENTS_MAX) return fail_in(call, status::too_big, "more than 18 arguments");
  if (count != 0 && arguments == nullptr)
    return fail_in(call, status::bad_address, "arguments is NULL, count is not 0");
  return LEV_OK;
}

inline detail::draft draft_of(lev_procedure_id procedure, const lev_argument* arguments,
                              unsigned count) noexcept {
  return {{procedure, static_cast<std::uint8_t>(count)},
          reinterpret_cast<const argument*>(arguments)};
}

inline lev_status read_options(const char* call, const lev_task_options& from,
                               options* to) noexcept {
  if (from.after_count != 0 && from.after == nullptr)
    return fail_in(call, status::bad_argument, "after is NULL, after_count is not 0");
  if (from.after_count > options::after_max)
    return fail_in(call, status::too_big, "after_count: more than 32 predecessors");
  for (unsigned i = 0; i < from.after_count; ++i) to->after_id(from.after[i]);
  to->priority(from.priority).key(from.key).grain(from.grain);
  to->task_ns_max(from.task_ns_max).max_attempts(from.max_attempts);
  return LEV_OK;
}

}  // namespace lev
