// Options that are words in Python and enumerators here.
#pragma once

#include <leveret/config.hpp>

#include <string>

#include "errors.hpp"

namespace lev::python {

template <class Enum>
struct choice {
  const char* name;
  Enum value;
};

template <class Enum, std::size_t Count>
Enum choose(const char* field, const std::string& name, const choice<Enum> (&choices)[Count]) {
  std::string known;
  for (const choice<Enum>& c : choices) {
    if (name == c.name) return c.value;
    known += std::string(known.empty() ? "" : ", ") + c.name;
  }
  raise_value_error(std::string(field) + " must be one of " + known + ", not '" + name + "'");
}

inline constexpr choice<wait_policy> wait_policies[] = {{"help", wait_policy::help},
                                                        {"park", wait_policy::park},
                                                        {"spin", wait_policy::spin},
                                                        {"yield", wait_policy::yield},
                                                        {"directed", wait_policy::directed}};

// policy_of() reads the argument `policy` of a wait: None is what the runtime was opened with.
// Raises TypeError for what is no string, ValueError for an unknown one.
inline wait_policy policy_of(nb::handle name) {
  if (name.is_none()) return wait_policy::of_runtime;
  if (!nb::isinstance<nb::str>(name))
    raise_type_error("policy must be None or a string, not " + text_of(nb::repr(name)));
  return choose("policy", text_of(name), wait_policies);
}

}  // namespace lev::python
