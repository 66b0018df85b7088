// leveret._core: the extension module behind the Python package. Users see it through
// leveret/__init__.py.
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "errors.hpp"
#include "session.hpp"
#include "waiting.hpp"

namespace lev::python {

// Errors that the applications let through.
static void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const error& e) {
    try {
      raise_status(e.code(), e.what(), e.argument());
    } catch (nb::python_error& raised) {
      raised.restore();
    }
  }
}

void bind_machines(nb::module_& m) {
  m.def("version", &version, "Version of the library, such as '0.1.0'.");
  m.def("available_cores", &available_cores,
        "Cores this process may use: its affinity mask, limited by the cgroup's CPU quota.");
  m.def(
      "status_name", [](int code) { return status_name(static_cast<status>(code)); },
      nb::arg("code"), "Name of a status code, such as 'stale_ticket'.");
  m.def(
      "report_unraisable",
      [](nb::object error, nb::object about) {
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
        PyErr_WriteUnraisable(about.ptr());
      },
      nb::arg("error"), nb::arg("about").none(),
      nb::sig("def report_unraisable(error: BaseException, about: object) -> None"),
      "Has sys.unraisablehook told of an exception that has nobody to be raised to.");
  m.def(
      "machines",
      [] {
        nb::list all;
        for (unsigned i = 0; machine_name(i) != nullptr; ++i) {
          const char* why = machine_unavailable(machine_name(i));
          const nb::object reason = why == nullptr ? nb::none() : nb::object(nb::str(why));
          all.append(nb::make_tuple(machine_name(i), reason));
        }
        return all;
      },
      nb::sig("def machines() -> list[tuple[str, str | None]]"),
      "The machines built in, each with the reason why it does not work here, or None.");
}

namespace {

// What is of the process, such as the types, is made once. A program may drop the module and import
// it again: then it gets what is there.
PyObject* first_names = nullptr;

bool gives_what_is_there(nb::module_& m) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw nb::import_error(
        "leveret works in the main interpreter of a process only: import it "
        "there, not in a subinterpreter");
  const nb::dict names = nb::borrow<nb::dict>(PyModule_GetDict(m.ptr()));
  if (first_names == nullptr) {
    first_names = names.inc_ref().ptr();
    return false;
  }
  if (PyDict_Merge(names.ptr(), first_names, 0) != 0) throw nb::python_error();
  return true;
}

}  // namespace

}  // namespace lev::python

NB_MODULE(_core, m) {
  using namespace lev::python;
  if (gives_what_is_there(m)) return;
  nanobind::set_leak_warnings(false);  // tickets may live as long as the interpreter
  nanobind::register_exception_translator(&translate);
  remember_main_thread();
  watch_forks();
  bind_machines(m);
  bind_procedures(m);
  bind_bell(m);
  bind_tickets(m);
  bind_runtime(m);
  make_quick(m);
  bind_contents(m);
  bind_files(m);
  bind_shared(m);
  bind_worker(m);
  bind_obituaries(m);
  bind_last_words(m);
  bind_calls(m);
  bind_replies(m);
  bind_look(m);
  bind_interleave(m);
#ifdef LEVERET_PYTHON_APPS
  bind_apps(m);
  bind_papers(m);
#endif
}
