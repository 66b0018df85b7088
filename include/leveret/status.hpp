// How Leveret reports what happened: a status code everywhere, and an exception that carries one
// where C++ code wants it.
//
// Codes are stable numbers, the same in C (`lev_status`), Python and traces. A code meant for a
// person never travels alone: `lev::error` adds which argument was at fault and what to do next.
#ifndef LEVERET_STATUS_HPP
#define LEVERET_STATUS_HPP

#include <leveret/version.hpp>

#include <cstdint>
#include <exception>

namespace lev {

enum class status : std::uint8_t {
  ok = 0,                  // done; outputs are visible
  pending = 1,             // no outcome yet
  would_block = 2,         // a bound is reached and the caller asked not to wait, or cannot
  timed_out = 3,           // the time given to a wait is over; nothing was consumed
  cancelled = 4,           // cancelled before it ran, or ended while it did
  task_failed = 5,         // the procedure threw or returned a code other than 0
  dependency_failed = 6,   // a task named in after() did not end with ok; this one did not run
  bad_procedure = 7,       // no procedure has this id or name
  bad_argument = 8,        // kind, size or flags of an argument do not fit the procedure
  bad_argument_count = 9,  // more or fewer arguments than the procedure declares
  too_big = 10,            // more than a fixed bound allows; the message gives needed and available
  bad_address = 11,        // a null address with a length above zero
  bad_range = 12,          // address plus length, or rows times stride, leaves the address space
  overlap = 13,            // an output overlaps another argument, or its own rows
  stale_ticket = 14,       // the ticket was waited for or released before
  bad_ticket = 15,         // not a ticket of this runtime
  closed = 16,             // the runtime is closing or closed, or another process's
  would_deadlock = 17,     // the call waits for itself, or no context is left to go on in
  dice_loop = 18,          // a dice hook does not make its pieces smaller
  unavailable = 19,        // the machine does not work here; the message says why
  exists = 20,             // the name is taken
  bad_config = 21,         // a configuration value makes no sense
  out_of_memory = 22,      // memory could not be reserved
  too_deep = 23,           // tasks on top of each other on one stack, more than config::nest_max
  not_supported = 24,      // this machine cannot do that
  bad_filter = 25,         // a filter lost or invented waiting tasks; its order was ignored
  poison = 26,             // the task's worker process died in it, on every attempt (max_attempts)
  worker_died = 27,        // its worker process died in it, and it must not be run again
  overran = 28,            // it ran longer than its time limit, and its worker process was killed
  pool_down = 29,          // worker processes die as soon as they start; no task runs any more
  not_in_task = 30,        // the call is for the inside of a task, and was made outside
  too_many_contexts = 31,  // all contexts of the worker are in use
  too_late = 32,           // the task had its outcome before it could be ended
};

// status_name() returns the enumerator's name, such as "stale_ticket". Thread safe, never null.
const char* status_name(status code) noexcept;

// An error: a code, the argument at fault, and a sentence that says what to do next.
class error : public std::exception {
 public:
  // `argument` counts from 0; -1 when no argument of the task is at fault. The message is copied
  // and cut at 255 bytes, between two characters of UTF-8.
  error(status code, int argument, const char* message) noexcept;

  status code() const noexcept { return code_; }
  int argument() const noexcept { return argument_; }
  const char* what() const noexcept override { return message_; }

 private:
  status code_;
  int argument_;
  char message_[256];
};

namespace detail {
// throw_error() throws an error that is no argument's fault. Headers call it, so that a program may
// be compiled without exceptions.
[[noreturn]] void throw_error(status code, const char* message);
}  // namespace detail

// A refused submit: the code, the argument at fault (or -1), and a sentence. No allocation.
struct refusal {
  status code = status::ok;
  int argument = -1;
  char message[160];

  refusal() noexcept { message[0] = 0; }
};

}  // namespace lev

#endif
