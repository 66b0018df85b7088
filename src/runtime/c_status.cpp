// Outcomes and codes in words, for C: see c_status.hpp.
#include "runtime/c_status.hpp"

#include "runtime/meaning.hpp"

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
  } catch (...) {
    copy_text(text, bytes, text_of_thrown());
  }
}

}  // namespace

lev_status fail_in(const char* call, status code, const char* what) noexcept {
  std::snprintf(last_c_message, sizeof last_c_message, "%s: %s", call, what);
  return static_cast<lev_status>(code);
}

lev_status answer(status code) noexcept {
  if (code == status::ok) return LEV_OK;
  write_meaning({code}, last_c_message, sizeof last_c_message);
  return static_cast<lev_status>(code);
}

lev_status report(const outcome& o, lev_outcome* out) noexcept {
  lev_outcome local;
  lev_outcome& to = out == nullptr ? local : *out;
  to.code = static_cast<lev_status>(o.code);
  to.task_code = o.task_code;
  to.failures = o.failures;
  describe_exception(o.exception, to.message, sizeof to.message);
  if (o.code == status::ok) return LEV_OK;
  if (to.message[0] != 0) return fail(o.code, to.message);
  write_meaning(o, last_c_message, sizeof last_c_message);
  return to.code;
}

}  // namespace lev
