// Memory files mapped for one process alone: what it writes to the mapping stays its own. Python's
// mmap keeps a file number for each mapping before 3.13, and a worker may keep many arrays.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "bindings.hpp"
#include "gil.hpp"
#include "view.hpp"

namespace lev::python {

namespace {

class file_map {
 public:
  static constexpr const char* python_name = "FileMap";
  file_map(int file, std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (data_ != MAP_FAILED) return;
    if (errno == ENOMEM)
      PyErr_NoMemory();
    else
      PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  ~file_map() { munmap(data_, bytes_); }
  file_map(file_map&&) = delete;
  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
};

bool same_bytes(nb::handle a, nb::handle b) {
  const view one(a, PyBUF_SIMPLE);
  const view other(b, PyBUF_SIMPLE);
  if (one.bytes() != other.bytes()) return false;
  const gil_released released;
  return std::memcmp(one.data(), other.data(), one.bytes()) == 0;
}

PyType_Slot map_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&give_buffer<file_map>)},
                           {0, nullptr}};

}  // namespace

void bind_files(nb::module_& m) {
  nb::class_<file_map>(m, file_map::python_name, nb::type_slots(map_slots),
                       "The memory of a file, with the buffer protocol; what is written to it "
                       "stays in this object. Raises OSError, MemoryError.")
      .def(nb::init<int, std::size_t>(), nb::arg("file"), nb::arg("size"));
  m.def("same_bytes", &same_bytes, nb::arg("a"), nb::arg("b"),
        "Whether two buffers have the same bytes.");
  m.def(
      "address_of",
      [](nb::handle buffer) {
        return reinterpret_cast<std::uintptr_t>(view(buffer, PyBUF_SIMPLE).data());
      },
      nb::arg("buffer"), "Where a buffer's bytes are.");
}

}  // namespace lev::python
