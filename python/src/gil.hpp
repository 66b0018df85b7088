// Doing without the GIL for a while.
//
// A daemon thread that wants the GIL back while the interpreter ends gets none. Python before 3.14
// ends such a thread there, by pthread_exit(), and that unwinds the frames of C++ above: one that
// must not throw ends the program ("terminate called without an active exception"). So the thread
// stays where it is until the process is gone, as from Python 3.14 on.
//
// A native procedure may be a Python function that ctypes or cffi has made one. The interpreter has
// one stack of calls for a thread, so a worker does not leave such a task.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>
#include <leveret/this_task.hpp>

namespace lev::python {

class gil_released {
 public:
  gil_released() noexcept : thread_(PyEval_SaveThread()) { detail::stay_on_stack(); }
  ~gil_released() {
#ifdef __GLIBCXX__
    try {
      PyEval_RestoreThread(thread_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
#else
    PyEval_RestoreThread(thread_);
#endif
  }
  gil_released(gil_released&&) = delete;

 private:
  PyThreadState* thread_;
};

template <class Run>
auto without_gil(Run&& run) {
  const gil_released released;
  return run();
}

}  // namespace lev::python
