// Worker processes of a Python host. The zygote is a Python interpreter; its workers are forked
// with the interpreter's own hooks. Between tasks a worker gives up the GIL, so that threads that a
// function has left behind go on.
#include "worker.hpp"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "errors.hpp"

namespace lev::python {

namespace {

// What a process may take to run what was registered with atexit, and to flush its files.
constexpr unsigned end_seconds_max = 5;

constexpr const char* worker_index_doc =
    "Which of its executor's or runtime's worker processes this is: 0 to workers - 1, the same for "
    "a process and for the one that replaces it. None in the host. Thread safe; costs 50 ns.";

PyThreadState* worker_thread = nullptr;  // in a worker: the main thread, while a task is awaited
PyObject* runner = nullptr;              // what runs a call: leveret.worker.calls.run, or null
PyObject* ender = nullptr;               // what ends a worker in order, or null

void in_worker() {
  PyOS_AfterFork_Child();
  worker_thread = PyEval_SaveThread();
}

nb::object view_of(const argument& a, int flags) {
  static char nothing = 0;
  char* begin = a.row_bytes == 0 ? &nothing : reinterpret_cast<char*>(a.address);
  return nb::steal(PyMemoryView_FromMemory(begin, static_cast<Py_ssize_t>(a.row_bytes), flags));
}

// Of a traceback: the error. A message has no room for the rest.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);  // npos + 1: all of it
}

void run_with_gil(const call& c) {
  if (runner == nullptr) throw std::runtime_error("the worker process runs no Python functions");
  const argument& setup = c.arguments[call_setup];
  nb::list buffers;
  for (unsigned i = call_buffers; i < c.argument_count; ++i)
    buffers.append(view_of(c.arguments[i], PyBUF_READ));
  try {
    const nb::handle run(runner);
    run(setup.address, setup.row_bytes, view_of(c.arguments[call_request], PyBUF_READ),
        view_of(c.arguments[call_reply], PyBUF_WRITE), buffers);
  } catch (const nb::python_error& e) {
    if (e.matches(PyExc_MemoryError))
      throw std::runtime_error(
          "its process had no memory left to say how it ended, and is replaced; is worker_memory "
          "too small?");
    throw std::runtime_error(
        "its process was spoiled, perhaps by a call that changed a module, and is replaced: " +
        last_line(e.what()));
  }
}

int run_python_call(const call& c) {
  PyEval_RestoreThread(worker_thread);
  try {
    run_with_gil(c);
  } catch (...) {
    worker_thread = PyEval_SaveThread();
    throw;
  }
  worker_thread = PyEval_SaveThread();
  return 0;
}

// Once: what it does may be what asks for it again.
void at_end() {
  if (ender == nullptr || worker_thread == nullptr) return;
  // A thread that a function has left behind may keep the GIL: the process ends all the same.
  signal(SIGALRM, SIG_DFL);
  alarm(end_seconds_max);
  PyEval_RestoreThread(worker_thread);
  if (PyObject* done = PyObject_CallNoArgs(std::exchange(ender, nullptr)); done != nullptr) {
    Py_DECREF(done);
  } else {
    PyErr_Print();
  }
  alarm(0);
}

bool keeps_alarm = false;  // it is the initializer's, and for all calls

void keep_alarm() noexcept {
  itimerval now{};
  keeps_alarm = getitimer(ITIMER_REAL, &now) == 0 && timerisset(&now.it_value);
}

// A timer that a call has set, and left, would end a later one, or raise in it. To end none takes
// 0.2 us, and to ask first whether there is one 0.3 (2026-11-29).
pid_t leave_call() noexcept {
  constexpr itimerval none{};
  if (!keeps_alarm) setitimer(ITIMER_REAL, &none, nullptr);
  return getpid();
}

void run_worker_program(nb::object run, nb::object end) {
  if (!run.is_none()) runner = run.release().ptr();
  if (!end.is_none()) ender = end.release().ptr();
  lev::run_worker_program({&PyOS_BeforeFork, &in_worker, &PyOS_AfterFork_Parent, &at_end});
}

procedure_id register_python_call(unsigned buffers, bool may_rerun) {
  kind kinds[argument_count_max] = {kind::value, kind::in, kind::out};
  for (unsigned i = 0; i < buffers; ++i) kinds[call_buffers + i] = kind::in;
  const std::string name = std::string("leveret.python_call") + (may_rerun ? "" : "_once") +
                           (buffers == 0 ? "" : "/" + std::to_string(buffers));
  auto* kept = new kind[argument_count_max];  // the table points to it for ever
  std::copy_n(kinds, argument_count_max, kept);
  procedure_info info;
  info.name = name.c_str();
  info.run = &run_python_call;
  info.kinds = kept;
  info.kind_count = call_buffers + buffers;
  info.may_rerun = may_rerun;
  procedure_id id = 0;
  const status code = register_procedure(info, &id);
  if (code != status::ok) raise_status(code, "procedure '" + name + "': the table is full");
  return id;
}

}  // namespace

procedure_id python_call(unsigned buffers, bool may_rerun) {
  static procedure_id known[2][call_buffers_max + 1];  // with the GIL
  procedure_id& id = known[may_rerun ? 1 : 0][buffers];
  if (id == 0) id = register_python_call(buffers, may_rerun);
  return id;
}

void bind_worker(nb::module_& m) {
  m.def("run_worker_program", &run_worker_program, nb::arg("run").none() = nb::none(),
        nb::arg("end").none() = nb::none(),
        "Becomes the source of worker processes; see leveret.worker.program.");
  m.def("leave_call", &leave_call,
        "In a worker, when a call is over: ends a timer (alarm, setitimer) that it has left. "
        "Returns the number of this process, which the call may have forked.");
  m.def("keep_alarm", &keep_alarm,
        "In a worker, after the initializer: a timer that runs now is none of a call's.");
  m.def("retire_worker", &retire_worker, "In a worker: ends the process after the present task.");
  m.def("retire_worker_after", &retire_worker_after, nb::arg("idle_ns"),
        "In a worker: ends the process when it had no task for so long; 0: not any more.");
  m.def(
      "worker_index",
      []() -> nb::object {
        const int index = worker_index();
        return index < 0 ? nb::none() : nb::object(nb::int_(index));
      },
      nb::sig("def worker_index() -> int | None"), worker_index_doc);
}

}  // namespace lev::python
