// Names of status codes, the error class, the version.
#include <leveret/status.hpp>
#include <leveret/version.hpp>

#include "base/text.hpp"

namespace lev {

const char* status_name(status code) noexcept {
  static const char* const names[] = {"ok",
                                      "pending",
                                      "would_block",
                                      "timed_out",
                                      "cancelled",
                                      "task_failed",
                                      "dependency_failed",
                                      "bad_procedure",
                                      "bad_argument",
                                      "bad_argument_count",
                                      "too_big",
                                      "bad_address",
                                      "bad_range",
                                      "overlap",
                                      "stale_ticket",
                                      "bad_ticket",
                                      "closed",
                                      "would_deadlock",
                                      "dice_loop",
                                      "unavailable",
                                      "exists",
                                      "bad_config",
                                      "out_of_memory",
                                      "too_deep",
                                      "not_supported",
                                      "bad_filter",
                                      "poison",
                                      "worker_died",
                                      "overran",
                                      "pool_down",
                                      "not_in_task",
                                      "too_many_contexts",
                                      "too_late"};
  const auto i = static_cast<unsigned>(code);
  return i < sizeof names / sizeof names[0] ? names[i] : "unknown";
}

error::error(status code, int argument, const char* message) noexcept
    : code_(code), argument_(argument) {
  copy_text(message_, sizeof message_, message == nullptr ? "" : message);
}

void detail::throw_error(status code, const char* message) {
  throw error(code, -1, message);
}

#define LEV_TEXT(x) #x
#define LEV_DOTTED(a, b, c) LEV_TEXT(a) "." LEV_TEXT(b) "." LEV_TEXT(c)
const char* version() noexcept {
  return LEV_DOTTED(LEV_VERSION_MAJOR, LEV_VERSION_MINOR, LEV_VERSION_PATCH);
}

}  // namespace lev
