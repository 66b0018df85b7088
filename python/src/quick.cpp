// Methods in front of nanobind's. A plain call, one without names and of the usual kinds, is
// answered here; any other goes on to the bound method, which knows all of them and their errors.
//
// What nanobind does for a method with defaults (a tuple of the arguments, a look for each name, a
// second search for the instance by its address) takes longer than a task.
#include <array>
#include <new>
#include <vector>

#include "bindings.hpp"
#include "runtime_object.hpp"

namespace lev::python {

namespace {

// The bound methods, and types that are looked up once. All of it with the GIL.
PyObject* bound_submit = nullptr;
PyObject* bound_wait = nullptr;
PyObject* bound_result = nullptr;
PyTypeObject* procedure_type = nullptr;
PyTypeObject* sliced_type = nullptr;
nb::handle ticket_type;

bool is_a(PyObject* value, PyTypeObject* type) noexcept {
  return Py_TYPE(value) == type || PyType_IsSubtype(Py_TYPE(value), type) != 0;
}

// Calls the bound method of `self`.
PyObject* go_on(PyObject* bound, PyObject* self, PyObject* const* given, Py_ssize_t count,
                PyObject* names) {
  const Py_ssize_t all = count + (names == nullptr ? 0 : PyTuple_Size(names));
  std::vector<PyObject*> values{self};
  values.insert(values.end(), given, given + all);
  return PyObject_Vectorcall(bound, values.data(), static_cast<std::size_t>(count) + 1, names);
}

// Runs what may raise as nanobind's functions do.
template <class Call>
PyObject* answer(Call&& call) noexcept {
  try {
    return call();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

bool is_plain_submit(PyObject* self, PyObject* const* given, Py_ssize_t count) noexcept {
  if (count == 0 || !is_a(given[0], procedure_type)) return false;
  if (!nb::inst_ready(given[0]) || !nb::inst_ready(self)) return false;
  for (Py_ssize_t i = 1; i < count; ++i) {
    if (Py_TYPE(given[i]) == sliced_type) return false;  // it may be diced
  }
  return true;
}

PyObject* submit(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return answer([&]() -> PyObject* {
    if (names == nullptr && is_plain_submit(self, given, count)) {
      // The room comes first: without memory for it nothing may have been submitted.
      nb::object made = nb::inst_alloc(ticket_type);
      const plan& p = *nb::inst_ptr<plan>(given[0]);
      if (nb::inst_ptr<runtime_object>(self)->submit_at_once(
              p, given + 1, static_cast<std::size_t>(count) - 1, nb::inst_ptr<void>(made))) {
        nb::inst_mark_ready(made);
        return made.release().ptr();
      }
    }
    return go_on(bound_submit, self, given, count, names);
  });
}

PyObject* wait(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return answer([&]() -> PyObject* {
    if (count != 0 || names != nullptr || !nb::inst_ready(self))
      return go_on(bound_wait, self, given, count, names);
    nb::inst_ptr<ticket_object>(self)->wait(deadline(), wait_policy::of_runtime);
    return nb::none().release().ptr();
  });
}

PyObject* result(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return answer([&]() -> PyObject* {
    if (count != 0 || names != nullptr || !nb::inst_ready(self))
      return go_on(bound_result, self, given, count, names);
    ticket_object& t = *nb::inst_ptr<ticket_object>(self);
    return t.result(deadline(), wait_policy::of_runtime).release().ptr();
  });
}

using quick_function = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// Such as "submit($self, procedure, *args, priority=0)", which inspect.signature() reads: the first
// line of nanobind's text, without types.
std::string signature_in(const std::string& text) {
  std::string made;
  int depth = 0;
  bool is_in_type = false;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '(' || c == '[') ++depth;
    if (depth == 1 && c == ':') is_in_type = true;
    if (depth == 1 && (c == ',' || c == '=' || c == ')')) is_in_type = false;
    if (c == ')' || c == ']') --depth;
    if (!is_in_type) made += c;
    if (depth == 0 && c == ')') break;  // what comes of the call follows
  }
  const std::size_t at = made.find("(self");
  if (at != std::string::npos) made.insert(at + 1, "$");
  return made;
}

// Puts a function in front of the method that is there; that one stays to be looked at in _bound.
void put_in_front(nb::dict all, nb::handle type, const char* name, quick_function quick,
                  PyMethodDef& kept, PyObject** bound) {
  const nb::object there = nb::getattr(type, name);
  static std::vector<std::string>* const texts = new std::vector<std::string>;
  texts->reserve(8);  // their addresses are given away
  const std::string said = text_of(nb::getattr(there, "__doc__"));
  texts->push_back(signature_in(said) + "\n--\n\n" + said);
  kept = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(quick)),
          METH_FASTCALL | METH_KEYWORDS, texts->back().c_str()};
  const nb::object method =
      nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &kept));
  if (!method.is_valid()) throw nb::python_error();
  all[(text_of(nb::getattr(type, "__name__")) + "." + name).c_str()] = there;
  *bound = nb::object(there).release().ptr();
  nb::setattr(type, name, method);
}

}  // namespace

void make_quick(nb::module_& m) {
  static std::array<PyMethodDef, 3> kept;
  nb::dict all;
  procedure_type = reinterpret_cast<PyTypeObject*>(nb::type<plan>().ptr());
  sliced_type = reinterpret_cast<PyTypeObject*>(nb::type<sliced_array>().ptr());
  const nb::handle of_runtime = nb::type<runtime_object>();
  ticket_type = nb::type<ticket_object>();
  put_in_front(all, of_runtime, "submit", &submit, kept[0], &bound_submit);
  put_in_front(all, ticket_type, "wait", &wait, kept[1], &bound_wait);
  put_in_front(all, ticket_type, "result", &result, kept[2], &bound_result);
  m.attr("_bound") = all;
  // The first Ticket that is dropped has nanobind make room for others: now, while there is memory.
  nb::inst_alloc(ticket_type);
}

}  // namespace lev::python
