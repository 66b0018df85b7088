// The parts of the extension module `leveret._core`.
#pragma once

#include <nanobind/nanobind.h>

namespace lev::python {

// make_quick() puts methods that programs call once for each task in front of those that are bound
// already, which keep all calls but the plainest (quick.cpp).
void make_quick(nanobind::module_& m);

void bind_procedures(nanobind::module_& m);
void bind_tickets(nanobind::module_& m);
void bind_runtime(nanobind::module_& m);
void bind_ordered(nanobind::module_& m, nanobind::handle of_runtime);
void bind_machines(nanobind::module_& m);
void bind_contents(nanobind::module_& m);
void bind_files(nanobind::module_& m);
void bind_shared(nanobind::module_& m);
void bind_worker(nanobind::module_& m);
void bind_calls(nanobind::module_& m);
void bind_replies(nanobind::module_& m);
void bind_bell(nanobind::module_& m);
void bind_look(nanobind::module_& m);
void bind_interleave(nanobind::module_& m);
void bind_obituaries(nanobind::module_& m);
void bind_last_words(nanobind::module_& m);
void bind_apps(nanobind::module_& m);
void bind_papers(nanobind::module_& m);

}  // namespace lev::python
