// Whether a task's arrays are as long as its procedure takes them to be.
#pragma once

#include "errors.hpp"

namespace lev::python {

// check_lengths() raises ValueError naming the array that is shorter than the signature says, and
// the one it is measured by. Arrays that dicing cuts must be cut together.
void check_lengths(const plan& p, const argument* arguments, bool are_ranges_passed);

}  // namespace lev::python
