// Procedures that come with the Python package: to try it without a C compiler, and to measure it.
#pragma once

#include "errors.hpp"

namespace lev::python {

// builtin() finds a procedure by its short name, such as "null"; raises ValueError that lists them.
// Registers all of them the first time.
const plan& builtin(const std::string& name);

// register_plan() gives a plan its id. Raises for a name that is taken or too long.
void register_plan(plan& p, body run);

}  // namespace lev::python
