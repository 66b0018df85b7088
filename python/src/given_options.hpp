// The keyword arguments of a submit, and what a submit says that has others.
#pragma once

#include "calls.hpp"
#include "runtime_object.hpp"

namespace lev::python {

// The options of a task as Python gives them.
struct given_options {
  nb::object after, locks, priority, key, grain, task_timeout, max_attempts;

  submit_options read() const {
    return {after,
            locks,
            number_in<std::int32_t>("priority", priority),
            number_in<std::uint32_t>("key", key),
            number_in<std::uint32_t>("grain", grain),
            task_ns("task_timeout", task_timeout),
            number_in<std::uint32_t>("max_attempts", max_attempts)};
  }
};

// bind_refusal() binds a second function of the same name, which nanobind calls when the first does
// not fit. `wanted` arguments come before the task's; `known` lists the keywords.
template <class Result, class Object>
void bind_refusal(nb::class_<Object>& c, const char* method, std::size_t wanted,
                  const char* known) {
  c.def(
      method,
      [=](Object&, nb::args given, nb::kwargs options) -> Result {
        if (given.size() != 0 && !is_made<plan>(given[0]))
          raise_type_error(std::string(method) + "() needs a procedure first, not " +
                           text_of(nb::repr(given[0])));
        refuse_call(method, given.size(), options, wanted, known);
      },
      nb::arg("args"), nb::arg("options"), "Any other call raises TypeError.");
}

}  // namespace lev::python
