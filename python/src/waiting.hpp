// Waits that a person can interrupt: time-outs from Python, the GIL given up, Ctrl-C looked for
// between slices.
#pragma once

#include <chrono>

#include "errors.hpp"
#include "gil.hpp"

namespace lev::python {

// task_ns() is the time limit of a task, from seconds: 0 for None, no_time_limit for infinity.
// Raises TypeError or ValueError naming the option.
std::uint64_t task_ns(const char* option, nb::handle timeout);

class deadline {
 public:
  // From seconds: None never ends, 0 polls. Raises ValueError for NaN and negative numbers; more
  // than 9e9 s is clamped.
  explicit deadline(nb::handle timeout);
  deadline() noexcept : is_never_(true) {}  // one that never ends

  std::int64_t remaining_ns() const noexcept;  // 0 when over; `no_timeout` when it never ends

  double remaining_seconds() const noexcept {
    return is_never_ ? 1e9 : 1e-9 * static_cast<double>(remaining_ns());
  }

  // slice_ns() is how long to wait before looking for signals: 50 ms on the main thread, which
  // alone receives them.
  std::int64_t slice_ns() const noexcept;

 private:
  bool is_never_;
  std::chrono::steady_clock::time_point end_;
};

// remember_main_thread() is called at import; become_main_thread() in a child of fork(), by the one
// thread that is there.
void remember_main_thread();
void become_main_thread() noexcept;

// raise_later() has an exception of a signal's handler raised on the main thread, where it was
// raised in the middle of something that had to be done: by wait_in_slices() there, or when the
// thread is back in Python. Elsewhere, and where that cannot be, it is reported.
void raise_later(nb::python_error& e) noexcept;

// run_handlers() runs handlers of signals that have come, and raises what they raise.
inline void run_handlers() {
  if (PyErr_CheckSignals() != 0 || Py_MakePendingCalls() != 0) throw nb::python_error();
}

// wait_in_slices() calls step(timeout_ns) without the GIL until its outcome is not timed_out or the
// deadline is over. Raises KeyboardInterrupt, or what another signal handler raises; nothing is
// consumed then.
template <class Step>
outcome wait_in_slices(const deadline& end, Step&& step) {
  while (true) {
    const std::int64_t slice = end.slice_ns();
    outcome o;
    {
      const gil_released released;
      o = step(slice);
    }
    if (o.code != status::timed_out) return o;
    run_handlers();
    if (end.remaining_ns() == 0) return o;
  }
}

}  // namespace lev::python
