// How the C API says what went wrong: a status, and a message that the thread keeps.
#pragma once

#include <leveret/leveret.h>
#include <leveret/status.hpp>
#include <leveret/ticket.hpp>

#include "base/text.hpp"

#include <cstring>
#include <new>
#include <type_traits>

namespace lev {

inline thread_local char last_c_message[256];

inline lev_status fail(status code, const char* message) noexcept {
  copy_text(last_c_message, sizeof last_c_message, message);
  return static_cast<lev_status>(code);
}
// `call` is the name of the C function that was called, for those that share their checks.
lev_status fail_in(const char* call, status code, const char* what) noexcept;

inline lev_status bad_argument(const char* message) noexcept {
  return fail(status::bad_argument, message);
}

// Returns the status that a call about a ticket has answered, and keeps its text.
lev_status answer(status code) noexcept;

// Returns the code of an outcome, having written it to `out`, which may be null, and kept its text.
lev_status report(const outcome& o, lev_outcome* out) noexcept;

// lev_options has the fields of config::processes beside the others: a message names them so.
inline void flatten_names(char* message) noexcept {
  constexpr std::size_t kept_bytes = sizeof "config." - 1;
  constexpr std::size_t left_out_bytes = sizeof "processes." - 1;
  while ((message = std::strstr(message, "config.processes.")) != nullptr) {
    message += kept_bytes;
    std::memmove(message, message + left_out_bytes, std::strlen(message + left_out_bytes) + 1);
  }
}

// Runs a call into the C++ API, which may return a status, and turns its exception into one.
template <class Call>
lev_status guarded(Call&& call) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      return call(), LEV_OK;
    } else {
      return call();
    }
  } catch (const error& e) {
    return fail(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(status::out_of_memory, "out of memory");
  } catch (...) {
    return fail(status::task_failed, text_of_thrown());
  }
}

}  // namespace lev
