// Messages about the procedure and the options of a call.
#include "calls.hpp"

namespace lev::python {

const plan& procedure_in(nb::handle value) {
  if (is_made<plan>(value)) return *nb::inst_ptr<plan>(value);
  const char* const next = PyCallable_Check(value.ptr()) != 0
                               ? "; Python functions are run by leveret.ProcessExecutor"
                               : "";
  raise_type_error("procedure must be a Procedure, made with leveret.load(), leveret.procedure() " +
                   ("or leveret.builtin(), not " + name_of_type(value)) + next);
}

long long integer_in(const char* option, nb::handle value, long long low, long long high) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    drop_error(PyExc_TypeError);
    raise_type_error(std::string(option) + " must be an integer, not " + name_of_type(value));
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow == 0 && low <= number && number <= high) return number;
  const std::string message = std::string(option) + " must be from " + std::to_string(low) +
                              " to " + std::to_string(high) + ", not " + text_of(value);
  PyErr_SetString(PyExc_OverflowError, message.c_str());
  throw nb::python_error();
}

void refuse_call(const char* method, std::size_t given, const nb::dict& options, std::size_t wanted,
                 const char* known) {
  const std::string who = std::string(method) + "()";
  if (given < wanted)
    raise_type_error(who + (wanted == 1 ? " needs a procedure, then the task's arguments"
                                        : " needs a procedure and n, then the task's arguments"));
  const std::string listed = std::string(", ") + known + ",";
  for (nb::handle each : options.keys()) {
    const std::string name = nb::str(each).c_str();
    if (listed.find(", " + name + ",") != std::string::npos) continue;
    const nb::object names = nb::str(known).attr("split")(", ");
    const nb::str hint(nb::module_::import_("leveret.nearest").attr("nearest")(each, names));
    raise_type_error(who + " has no option '" + name + "'" + hint.c_str() +
                     " (the task's arguments are given by position)");
  }
  raise_type_error(who +
                   " takes the task's arguments by position, and these options by name: " + known);
}

}  // namespace lev::python
