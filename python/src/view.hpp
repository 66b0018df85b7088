// view: an object's buffer for as long as it is looked at.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace lev::python {

namespace nb = nanobind;

class view {
 public:
  view(nb::handle of, int flags) {
    if (PyObject_GetBuffer(of.ptr(), &buffer_, flags) != 0) throw nb::python_error();
  }
  ~view() { PyBuffer_Release(&buffer_); }
  view(view&&) = delete;
  char* data() const noexcept { return static_cast<char*>(buffer_.buf); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(buffer_.len); }

 private:
  Py_buffer buffer_;
};

}  // namespace lev::python
