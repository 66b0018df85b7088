// Binds Procedure, and how Python defines one.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "builtins.hpp"
#include "pack.hpp"

namespace lev::python {

namespace {

// What, code such as "f4", of; how long it is at least.
using parsed = std::tuple<std::string, std::string, unsigned, std::string, std::uint64_t>;

const plan& define_c_function(nb::str given_name, std::uintptr_t address,
                              const std::vector<parsed>& list, bool returns_code,
                              const std::string& signature) {
  const std::string name = c_text("name", given_name);
  if (trampoline_unavailable() != nullptr)
    raise_status(status::not_supported, trampoline_unavailable());
  if (address == 0) raise_value_error("procedure '" + name + "': the function's address is null");
  std::vector<parameter> parameters;
  for (const auto& [what, code, of, least, least_n] : list) {
    const unsigned bytes = static_cast<unsigned>(std::stoul(code.substr(1)));
    parameters.push_back({what, code.at(0), bytes, of, least, least_n});
  }
  builtin("null");  // else a name of theirs could be taken before their first use
  std::unique_ptr<plan> p;
  try {
    p = make_plan(parameters);
  } catch (const error& e) {
    raise_value_error(e.what());
  }
  p->name = name;
  p->signature = signature;
  p->function = reinterpret_cast<void*>(address);
  p->returns_code = returns_code;
  register_plan(*p, &call_c_function);
  return *p.release();
}

constexpr const char* procedure_doc = R"(A native function that tasks run, found by name.

Made by leveret.load(), leveret.procedure() or leveret.builtin(); it lives as long as the process.
Thread safety: constant.)";

}  // namespace

void bind_procedures(nb::module_& m) {
  nb::class_<plan>(m, "Procedure", procedure_doc)
      .def_prop_ro(
          "name", [](const plan& p) { return p.name; }, "Its name in traces and messages.")
      .def_prop_ro(
          "signature", [](const plan& p) { return p.signature; },
          "Its parameters, as they were given.")
      .def_prop_ro(
          "id", [](const plan& p) { return p.id; }, "Its place in the process-wide table.")
      .def("__repr__", [](const plan& p) {
        return "<leveret.Procedure '" + p.name + "' (" + p.signature + ")>";
      });
  m.def("define", &define_c_function, nb::rv_policy::reference, nb::arg("name"), nb::arg("address"),
        nb::arg("parameters"), nb::arg("returns_code"), nb::arg("signature"),
        "Registers the C function at `address`. leveret.procedure() calls this after parsing.");
  m.def("builtin", &builtin, nb::rv_policy::reference, nb::arg("name"),
        "A procedure that comes with the package: see leveret.builtin().");
  nb::class_<sliced_array>(m, "Sliced", "What leveret.sliced(a) returns.")
      .def(
          "__init__", [](sliced_array* self, nb::object a) { new (self) sliced_array{a}; },
          nb::arg("array").none())
      .def_ro("array", &sliced_array::array);
  nb::class_<whole_array>(m, "Whole", "What leveret.whole(a) returns.")
      .def(
          "__init__", [](whole_array* self, nb::object a) { new (self) whole_array{a}; },
          nb::arg("array").none())
      .def_ro("array", &whole_array::array);
}

}  // namespace lev::python
