// quick: methods that programs call once for each task, without what nanobind does for any call.
#pragma once

#include <nanobind/nanobind.h>

namespace lev::python {

// make_quick() puts such methods in front of those that are bound already, which keep all calls
// but the plainest.
void make_quick(nanobind::module_& m);

}  // namespace lev::python
