// What the methods of Runtime read from a call besides the task's arguments: the procedure and the
// options. By hand, as nanobind's own message about a wrong one lists C++ types.
#pragma once

#include <limits>

#include "errors.hpp"

namespace lev::python {

// procedure_in() raises TypeError for anything but a Procedure.
const plan& procedure_in(nb::handle value);

// integer_in() raises TypeError or OverflowError naming the option.
long long integer_in(const char* option, nb::handle value, long long low, long long high);

template <class Number>
Number number_in(const char* option, nb::handle value) {
  using limits = std::numeric_limits<Number>;
  return static_cast<Number>(integer_in(option, value, limits::min(), limits::max()));
}

// refuse_call() raises TypeError for a call of a method that takes the named options when a
// positional argument is missing or an option is unknown.
[[noreturn]] void refuse_call(const char* method, std::size_t given, const nb::dict& options,
                              std::size_t wanted, const char* known);

}  // namespace lev::python
