// Binds lev_interleave(): items of native code, which run without the interpreter.
#include <leveret/leveret.h>

#include <optional>

#include "bindings.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

// An item's argument: nothing, a number, or the first byte of a buffer, which stays where it is
// until the items have run.
class item_argument {
 public:
  explicit item_argument(nb::handle given) {
    if (given.is_none()) return;
    if (PyLong_Check(given.ptr())) {
      address_ = PyLong_AsVoidPtr(given.ptr());
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return;
    }
    if (PyObject_CheckBuffer(given.ptr()) == 0)
      raise_type_error(
          "argument: expected None, an address, a ctypes pointer, or something with the buffer "
          "protocol (a NumPy array, a bytearray, a ctypes structure), got " +
          name_of_type(given));
    address_ = view_.emplace(given, PyBUF_SIMPLE).data();
  }

  void* address() const noexcept { return address_; }

 private:
  void* address_ = nullptr;
  std::optional<view> view_;
};

void run_items(std::uintptr_t function, std::size_t count, nb::handle argument, unsigned n) {
  const item_argument held(argument);
  const lev_status outcome = without_gil([&] {
    return lev_interleave(n, count, reinterpret_cast<lev_item>(function), held.address());
  });
  if (outcome != LEV_OK) raise_status(static_cast<status>(outcome), lev_last_message());
}

}  // namespace

void bind_interleave(nb::module_& m) {
  m.def("interleave", &run_items, nb::arg("function"), nb::arg("count"), nb::arg("argument").none(),
        nb::arg("n"), "Runs items of native code: see leveret.interleave().");
}

}  // namespace lev::python
