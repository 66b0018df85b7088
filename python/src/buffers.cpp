// From the buffer protocol to arguments: export, check element type and layout, describe rows.
#include "buffers.hpp"

#include <cstring>

namespace lev::python {

namespace {

struct element {
  scalar type;
  bool is_big_endian;
  bool is_known;
};

// PEP 3118 format of one element: an optional byte order, then a letter of the struct module.
element parse_format(const char* format, Py_ssize_t element_bytes) {
  if (format == nullptr) format = "B";
  const bool is_big = *format == '>' || *format == '!';
  if (std::strchr("@=<>!", *format) != nullptr && *format != '\0') ++format;
  element e{{'u', static_cast<std::uint8_t>(element_bytes)}, is_big && element_bytes > 1, true};
  if (*format == '\0' || format[1] != '\0') return e.is_known = false, e;
  if (std::strchr("bhilqn", *format) != nullptr) {
    e.type.family = 'i';
  } else if (std::strchr("fd", *format) != nullptr) {
    e.type.family = 'f';
  } else if (std::strchr("BHILQN", *format) == nullptr) {
    e.is_known = false;
  }
  return e;
}

std::string element_name(const Py_buffer& view, const element& e) {
  if (e.is_known) return scalar_name(e.type);
  const std::string format = view.format == nullptr ? "B" : view.format;
  if (format == "O") return "Python objects";
  if (format == "?") return "bool";
  return "'" + format + "'";
}

void check_element(const Py_buffer& view, const place& where) {
  const element e = parse_format(view.format, view.itemsize);
  const scalar wanted = where.declared->type;
  if (e.is_known && e.is_big_endian)
    refuse_argument(
        PyExc_ValueError, where,
        "the array is big-endian; convert it with a.astype('" + scalar_name(wanted) + "')");
  if (e.is_known && e.type == wanted) return;
  std::string message = "the array holds " + element_name(view, e) + ", the procedure takes " +
                        scalar_name(wanted) + "; ";
  // Integers of the other sign, truth values and records of one number have the right bits already.
  const bool has_bits = view.itemsize == wanted.bytes &&
                        element_name(view, e) != "Python objects" &&
                        (!e.is_known || (e.type.family == 'f') == (wanted.family == 'f'));
  message += has_bits ? "use a.view('" : "convert it with a.astype('";
  refuse_argument(PyExc_TypeError, where, message + scalar_name(wanted) + "')");
}

bool export_buffer(nb::handle array, int flags, Py_buffer* view) {
  return PyObject_GetBuffer(array.ptr(), view, flags) == 0;
}

[[noreturn]] void refuse_export(nb::handle array, const place& where, bool needs_write) {
  const nb::python_error cause;
  if (!PyObject_CheckBuffer(array.ptr()))
    refuse_argument(PyExc_TypeError, where,
                    "expected an array, got " + name_of_type(array) + "; use numpy.asarray(x, '" +
                        scalar_name(where.declared->type) + "')");
  Py_buffer probe;
  if (needs_write && export_buffer(array, PyBUF_STRIDES | PyBUF_FORMAT, &probe)) {
    PyBuffer_Release(&probe);
    refuse_argument(PyExc_BufferError, where,
                    "the array is read-only, and the procedure writes it; pass a writable copy");
  }
  PyErr_Clear();
  refuse_argument(PyExc_TypeError, where,
                  std::string("the array gives no plain memory (") + cause.what() +
                      "); convert it with a.astype('" + scalar_name(where.declared->type) + "')");
}

// Bytes of one row when everything behind axis `first` lies without gaps; -1 when it does not.
Py_ssize_t packed_bytes(const extent& e, int first) noexcept {
  Py_ssize_t bytes = e.element_bytes;
  for (int axis = e.dimensions - 1; axis >= first; --axis) {
    if (e.shape[axis] > 1 && e.strides[axis] != bytes) return -1;
    bytes *= e.shape[axis];
  }
  return bytes;
}

bool is_empty(const extent& e) noexcept {
  for (int axis = 0; axis < e.dimensions; ++axis)
    if (e.shape[axis] == 0) return true;
  return false;
}

void set_rows(argument& a, const extent& e, Py_ssize_t row_bytes, const place& where) {
  const Py_ssize_t rows = e.shape[0];
  const Py_ssize_t stride = rows > 1 ? e.strides[0] : row_bytes;
  if (stride < row_bytes || stride % e.element_bytes != 0)
    refuse_argument(PyExc_ValueError, where,
                    "the rows lie backwards or overlap; use numpy.ascontiguousarray(a)");
  if (rows > 0xffffffffll)
    refuse_argument(PyExc_ValueError, where, "more than 2**32 - 1 rows; use a.ravel()");
  a.rows = static_cast<std::uint32_t>(rows);
  a.row_bytes = static_cast<std::uint64_t>(row_bytes);
  a.stride_bytes = stride;
}

}  // namespace

void open_buffer(nb::handle array, const place& where, Py_buffer* view) {
  const bool needs_write = writes_memory(where.declared->what);
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (needs_write ? PyBUF_WRITABLE : 0);
  if (!export_buffer(array, flags, view)) refuse_export(array, where, needs_write);
  try {
    check_element(*view, where);
  } catch (...) {
    PyBuffer_Release(view);
    throw;
  }
}

extent whole_extent(const Py_buffer& view) noexcept {
  return {static_cast<char*>(view.buf), view.ndim, view.shape, view.strides, view.itemsize};
}

extent row_extent(const extent& all, Py_ssize_t i) noexcept {
  return {all.data + i * all.strides[0], all.dimensions - 1, all.shape + 1, all.strides + 1,
          all.element_bytes};
}

argument memory_argument(const extent& e, bool is_sliced, const place& where) {
  argument a;
  a.address = reinterpret_cast<std::uintptr_t>(e.data);
  a.unit_bytes = static_cast<std::uint16_t>(e.element_bytes);
  a.what = where.declared->what;
  a.flags = is_sliced ? argument_sliced : 0;
  if (is_empty(e)) {
    a.row_bytes = 0;
    return a;
  }
  if (a.address % static_cast<std::uint64_t>(e.element_bytes) != 0)
    refuse_argument(PyExc_ValueError, where, "the elements are not aligned; pass a.copy()");
  const bool is_far = where.declared->is_far;
  if (is_far && is_sliced)
    refuse_argument(PyExc_ValueError, where, "far memory is not cut; pass the array itself");
  const Py_ssize_t row_bytes = packed_bytes(e, e.dimensions < 2 || is_far ? 0 : 1);
  if (row_bytes < 0)
    refuse_argument(PyExc_ValueError, where,
                    "the array is not contiguous; use numpy.ascontiguousarray(a), or a view whose "
                    "rows are contiguous");
  if (is_far) a.flags = argument_far;
  if (e.dimensions < 2 || is_far) {
    a.row_bytes = static_cast<std::uint64_t>(row_bytes);
    a.stride_bytes = row_bytes;
    return a;
  }
  set_rows(a, e, row_bytes, where);
  if (a.rows == 1) a.flags = 0;  // dicing would cut the elements of the row, not the rows
  return a;
}

}  // namespace lev::python
