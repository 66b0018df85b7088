// What is in lists and dicts of plain values, by identity: whether a global that calls need is what
// it was is asked before each of them, of 200,000 items as well as of three.
#include <cstring>
#include <unordered_set>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;

namespace lev::python {

namespace {

bool is_atom(PyObject* value) noexcept {
  if (value == Py_None) return true;
  const PyTypeObject* kind = Py_TYPE(value);
  return kind == &PyLong_Type || kind == &PyFloat_Type || kind == &PyUnicode_Type ||
         kind == &PyBool_Type || kind == &PyBytes_Type || kind == &PyComplex_Type;
}

// Calls visit(item) for each item, until that is false. The keys of a dict are items, too.
template <class Visit>
bool each_item(PyObject* value, Visit visit) {
  if (PyList_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PyList_Size(value); ++i)
      if (!visit(PyList_GetItem(value, i))) return false;
    return true;
  }
  if (PyTuple_CheckExact(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(value); ++i)
      if (!visit(PyTuple_GetItem(value, i))) return false;
    return true;
  }
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item) != 0;)
    if (!visit(key) || !visit(item)) return false;
  return true;
}

// The lists and dicts of a value that is made of these, of tuples and of constants; else None. They
// may be `most` at most, and in tuples only if they may nest.
nb::object plain_containers(nb::handle value, std::size_t most, bool may_nest) {
  nb::list found;
  std::unordered_set<PyObject*> met;
  std::vector<PyObject*> left{value.ptr()};
  while (!left.empty()) {
    PyObject* now = left.back();
    left.pop_back();
    if (is_atom(now)) continue;
    if (!PyTuple_CheckExact(now)) {
      if (!PyList_CheckExact(now) && !PyDict_CheckExact(now)) return nb::none();
      if (!met.insert(now).second) continue;
      if (found.size() >= most) return nb::none();
      found.append(nb::handle(now));
    } else if (Py_REFCNT(now) > 1 && !met.insert(now).second) {
      continue;  // it is in several places: one of nested pairs would be looked at 2^n times
    }
    const bool takes_any = may_nest || !PyTuple_CheckExact(now);
    const bool is_plain = each_item(now, [&](PyObject* item) {
      if (is_atom(item)) return true;
      left.push_back(item);
      return takes_any || PyTuple_CheckExact(item) != 0;
    });
    if (!is_plain) return nb::none();
  }
  return std::move(found);
}

// The items of a list, tuple or dict, in order.
nb::object contents_of(nb::handle container) {
  nb::list items;
  each_item(container.ptr(), [&](PyObject* item) {
    items.append(nb::handle(item));
    return true;
  });
  return nb::tuple(items);
}

// Whether these very objects are its items.
bool has_contents(nb::handle container, const nb::tuple& contents) {
  const Py_ssize_t count = PyTuple_Size(contents.ptr());
#ifndef Py_LIMITED_API
  if (PyList_CheckExact(container.ptr())) {
    if (PyList_GET_SIZE(container.ptr()) != count) return false;
    const auto* items = PySequence_Fast_ITEMS(container.ptr());
    const auto* before = PySequence_Fast_ITEMS(contents.ptr());
    return count == 0 ||
           std::memcmp(items, before, static_cast<std::size_t>(count) * sizeof *items) == 0;
  }
  PyObject** items = PySequence_Fast_ITEMS(contents.ptr());
  const auto item_at = [items](Py_ssize_t i) { return items[i]; };
#else
  const auto item_at = [&](Py_ssize_t i) { return PyTuple_GetItem(contents.ptr(), i); };
#endif
  Py_ssize_t at = 0;
  const bool same = each_item(container.ptr(),
                              [&](PyObject* item) { return at < count && item_at(at++) == item; });
  return same && at == count;
}

void expects_container(nb::handle value) {
  PyObject* it = value.ptr();
  if (!PyList_CheckExact(it) && !PyDict_CheckExact(it) && !PyTuple_CheckExact(it))
    throw nb::type_error("a list, a tuple or a dict is needed");
}

}  // namespace

void bind_contents(nb::module_& m) {
  m.def("plain_containers", &plain_containers, nb::arg("value"), nb::arg("most"),
        nb::arg("may_nest") = true,
        "The lists and dicts of a value that has only such, tuples and constants; else None. "
        "may_nest: also where a tuple holds a list or dict.");
  m.def(
      "contents_of",
      [](nb::handle container) {
        expects_container(container);
        return contents_of(container);
      },
      nb::arg("container"), "The items of a list, tuple or dict, in order.");
  m.def(
      "has_contents",
      [](nb::handle container, const nb::tuple& contents) {
        expects_container(container);
        return has_contents(container, contents);
      },
      nb::arg("container"), nb::arg("contents"), "Whether these very objects are its items.");
}

}  // namespace lev::python
