// How the binding reports: statuses become the exceptions of leveret.errors, bad arguments Python's
// own.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <leveret/leveret.hpp>
#include <string>
#include <string_view>

#include "plan.hpp"

namespace lev::python {

namespace nb = nanobind;

// Where a bad argument stands, for messages.
struct place {
  int position;  // among what the caller passes
  const slot* declared;
};

// refuse_argument() raises `type` with "argument 1 (in f4): <message>".
[[noreturn]] void refuse_argument(PyObject* type, const place& where, const std::string& message);

// raise_status() raises the class of leveret.errors that stands for `code`. `argument` is -1 when
// none is at fault.
[[noreturn]] void raise_status(status code, const std::string& message, int argument = -1,
                               int task_code = 0, unsigned failures = 0);

// raise_value_error() raises ValueError; for options and time-outs.
[[noreturn]] void raise_value_error(const std::string& message);

// raise_type_error() raises TypeError, likewise.
[[noreturn]] void raise_type_error(const std::string& message);

// drop_error() drops the exception that Python has set, if it is of that class, or one of a tuple.
// Any other is raised: an __index__() of the program's may raise what it likes, and a Ctrl-C may
// come while it runs.
void drop_error(nb::handle expected);

// is_made() tells whether `value` is a T that its constructor has made: T.__new__() alone gives one
// without anything in it.
template <class T>
bool is_made(nb::handle value) noexcept {
  return nb::isinstance<T>(value) && nb::inst_ready(value);
}

// text_of() is str(value); what UTF-8 cannot say (a lone surrogate) as an escape.
std::string text_of(nb::handle value);

// c_text() is text_of() for what becomes a C string. Raises ValueError, which names the argument,
// for a text with a null character: what is behind it would be lost, and another thing be named.
std::string c_text(const char* name, nb::handle value);

// python_text() is a text that anybody may have written, such as what() of an exception: bytes that
// are no UTF-8 become U+FFFD. Raises MemoryError only.
nb::object python_text(std::string_view text);

// in_python() is a message of the core with its options as Python spells them.
std::string in_python(std::string message);

// thrown_text() is what() of an exception; empty when there is none.
std::string thrown_text(const std::exception_ptr& thrown);

// what_failed() says how a task that has no Ticket, and so no name here, failed.
std::string what_failed(const outcome& o);

// why_refused() says why a thread could not wait.
std::string why_refused(status code);

// is_empty_tuple() recognises the default of after= and locks= without iterating.
inline bool is_empty_tuple(nb::handle value) noexcept {
  return PyTuple_Check(value.ptr()) && PyTuple_Size(value.ptr()) == 0;
}

// is_iterable() tells whether nb::iter() would take it.
bool is_iterable(nb::handle value);

// name_of_type() is the name of a value's type, for messages.
std::string name_of_type(nb::handle value);

}  // namespace lev::python
