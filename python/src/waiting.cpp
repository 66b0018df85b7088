// Deadlines on the monotonic clock.
#include "waiting.hpp"

#include <algorithm>

namespace lev::python {

namespace {

constexpr double seconds_max =
    9e9;  // fits in 64-bit nanoseconds with room for the clock's present value
constexpr std::int64_t signal_slice_ns =
    50'000'000;  // a person does not notice 50 ms; 20 wake-ups a second cost nothing

unsigned long main_thread = 0;  // written at import, and after a fork()

// What Python says of something that is no number, or too large a one.
void drop_no_number() {
  const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  drop_error(is_large ? PyExc_OverflowError : PyExc_TypeError);
}

// The seconds that an option says: 0 or more, or above 0. Raises TypeError or ValueError naming it.
double seconds_in(const char* option, nb::handle timeout, bool may_be_0) {
  const double seconds = PyFloat_AsDouble(timeout.ptr());
  const bool is_number = seconds != -1.0 || PyErr_Occurred() == nullptr;
  if (is_number && (seconds > 0 || (may_be_0 && seconds == 0))) return seconds;  // not NaN
  if (!is_number) drop_no_number();
  const std::string message = std::string(option) + " must be None or a number of seconds " +
                              (may_be_0 ? ">= 0, not " : "> 0, not ") + text_of(nb::repr(timeout));
  if (is_number) raise_value_error(message);
  raise_type_error(message);
}

// What raise_later() has left; on the main thread.
int raise_now(void* value) {
  const nb::object error = nb::steal(static_cast<PyObject*>(value));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  return -1;
}

}  // namespace

void raise_later(nb::python_error& e) noexcept {
  if (PyThread_get_thread_ident() == main_thread) {
    nb::object value = nb::borrow(e.value());
    if (Py_AddPendingCall(&raise_now, value.ptr()) == 0) {
      value.release();  // it is raise_now()'s
      return;
    }
  }
  e.discard_as_unraisable("a signal's handler");
}

void remember_main_thread() {
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
}

void become_main_thread() noexcept {
  main_thread = PyThread_get_thread_ident();
}

std::uint64_t task_ns(const char* option, nb::handle timeout) {
  if (timeout.is_none()) return 0;
  const double seconds = seconds_in(option, timeout, false);
  if (seconds > seconds_max) return no_time_limit;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds * 1e9));
}

deadline::deadline(nb::handle timeout) : is_never_(timeout.is_none()) {
  if (is_never_) return;
  const double seconds = std::min(seconds_in("timeout", timeout, true), seconds_max);
  const auto length = std::chrono::duration<double>(seconds);
  end_ = std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(length);
}

std::int64_t deadline::remaining_ns() const noexcept {
  if (is_never_) return no_timeout;
  const auto left = end_ - std::chrono::steady_clock::now();
  return std::max<std::int64_t>(0,
                                std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
}

std::int64_t deadline::slice_ns() const noexcept {
  const std::int64_t left = remaining_ns();
  if (PyThread_get_thread_ident() != main_thread) return left;
  return left == no_timeout ? signal_slice_ns : std::min(left, signal_slice_ns);
}

}  // namespace lev::python
