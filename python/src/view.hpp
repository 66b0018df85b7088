// view: an object's buffer for as long as it is looked at, and what is common to all buffers.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace lev::python {

namespace nb = nanobind;

// buffer_of() has an object export a plain buffer, without a shape; the caller releases it.
inline Py_buffer buffer_of(nb::handle object, int flags) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, flags) != 0) throw nb::python_error();
  return buffer;
}

class view {
 public:
  view(nb::handle of, int flags) : buffer_(buffer_of(of, flags)) {}
  ~view() { PyBuffer_Release(&buffer_); }
  view(view&&) = delete;
  char* data() const noexcept { return static_cast<char*>(buffer_.buf); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(buffer_.len); }

 private:
  Py_buffer buffer_;
};

// release_all() lets go of buffers. An exporter's code may run, and come here again.
inline void release_all(std::vector<Py_buffer>& buffers) noexcept {
  for (Py_buffer& each : std::exchange(buffers, {})) PyBuffer_Release(&each);
}

// give_buffer() is the slot Py_bf_getbuffer of a bound class with data(), bytes() and its name.
template <class Memory>
int give_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  if (!nb::inst_ready(self)) {
    PyErr_Format(PyExc_BufferError, "a %s without memory; make it with %s()", Memory::python_name,
                 Memory::python_name);
    return -1;
  }
  const auto& m = *nb::inst_ptr<Memory>(self);
  return PyBuffer_FillInfo(buffer, self, m.data(), static_cast<Py_ssize_t>(m.bytes()), 0, flags);
}

}  // namespace lev::python
