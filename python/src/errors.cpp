// Raising errors: every C++ status goes through leveret.errors.make_error, which knows the classes.
#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

namespace lev::python {

[[noreturn]] static void raise(PyObject* type, const std::string& message) {
  PyErr_SetObject(type, python_text(message).ptr());
  throw nb::python_error();
}

nb::object python_text(std::string_view text) {
  nb::object made =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

void refuse_argument(PyObject* type, const place& where, const std::string& message) {
  raise(type, "argument " + std::to_string(where.position) + " (" + where.declared->text +
                  "): " + message);
}

void raise_status(status code, const std::string& message, int argument, int task_code,
                  unsigned failures) {
  const nb::object made = nb::module_::import_("leveret.errors")
                              .attr("make_error")(static_cast<int>(code), python_text(message),
                                                  argument, task_code, failures);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw nb::python_error();
}

void raise_value_error(const std::string& message) {
  raise(PyExc_ValueError, message);
}

void raise_type_error(const std::string& message) {
  raise(PyExc_TypeError, message);
}

void drop_error(nb::handle expected) {
  if (PyErr_ExceptionMatches(expected.ptr()) == 0) throw nb::python_error();
  PyErr_Clear();
}

std::string text_of(nb::handle value) {
  const nb::str text(value);
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) nb::raise_python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string c_text(const char* name, nb::handle value) {
  std::string text = text_of(value);
  if (text.find('\0') != std::string::npos)
    raise_value_error(std::string(name) + " must have no null character, not " +
                      text_of(nb::repr(value)));
  return text;
}

static void replace_all(std::string& text, const std::string& old, const char* with) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += std::strlen(with))
    text.replace(at, old.size(), with);
}

// Options whose names differ are in docs/reference/python.md, too.
std::string in_python(std::string message) {
  static constexpr std::pair<const char*, const char*> spellings[] = {
      {"config.processes.task_ns_max", "task_timeout"},
      {"task_ns_max", "task_timeout"},
      {"config.processes.worker_bytes_max", "worker_memory"},
      {"config.processes.worker_cpu_seconds_max", "worker_cpu_seconds"},
      {"isolation::crash", "isolation='crash'"},
      {"the program that config.processes.worker_command names", "the Python of sys.executable"},
      {"config.processes.", ""},
  };
  for (const auto& [theirs, ours] : spellings) replace_all(message, theirs, ours);
  // One by one: a machine file of the user's may be called config.toml.
  for (const char* option :
       {"context_stack_bytes", "contexts", "depth", "host_threads", "local_store_bytes", "nest_max",
        "sim_machine", "tickets", "trace_events", "wait", "workers"})
    replace_all(message, std::string("config.") + option, option);
  return message;
}

// What an exception says of itself, which may be nothing: also no text at all.
static const char* text_of(const std::exception& e) noexcept {
  const char* text = e.what();
  return text != nullptr && *text != 0 ? text : "an exception whose what() is empty";
}

std::string thrown_text(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  try {
    std::rethrow_exception(thrown);
  } catch (const error& e) {
    return in_python(text_of(e));
  } catch (const std::exception& e) {
    return text_of(e);
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

std::string what_failed(const outcome& o) {
  std::string text = thrown_text(o.exception);
  if (text.empty() && o.code == status::task_failed && o.task_code != 0)
    text = "returned " + std::to_string(o.task_code);
  if (text.empty()) text = status_name(o.code);
  if (o.failures > 1) text += " (the first of " + std::to_string(o.failures) + " that failed)";
  return text;
}

std::string why_refused(status code) {
  if (code == status::would_deadlock)
    return "the wait cannot end: it is for a task below the caller, or for one that no worker can "
           "run meanwhile; a Python function that waits as a task keeps its worker";
  if (code != status::would_block) return "the wait was refused";
  return "there is no place for this thread to wait: on the machine 'sim' only the thread that "
         "opened the runtime has one, on others host_threads threads have";
}

bool is_iterable(nb::handle value) {
#ifdef Py_LIMITED_API
  const bool iterates = PyType_GetSlot(Py_TYPE(value.ptr()), Py_tp_iter) != nullptr;
#else  // before Python 3.10 the other way knows no types of the interpreter's own
  const bool iterates = Py_TYPE(value.ptr())->tp_iter != nullptr;
#endif
  return iterates || PySequence_Check(value.ptr()) != 0;
}

std::string name_of_type(nb::handle value) {
#ifdef Py_LIMITED_API
  const nb::handle type = value.type();
  std::string name = nb::cast<std::string>(type.attr("__name__"));
  auto* made = reinterpret_cast<PyTypeObject*>(type.ptr());
  if ((PyType_GetFlags(made) & Py_TPFLAGS_HEAPTYPE) != 0) return name;
  const auto module = nb::cast<std::string>(type.attr("__module__"));
  return module == "builtins" ? name : module + "." + name;
#else
  return Py_TYPE(value.ptr())->tp_name;
#endif
}

}  // namespace lev::python
