// From the buffer protocol to arguments: export, check element type and layout, describe rows.
#include "buffers.hpp"

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
  const bool is_complex = *format == 'Z';
  if (is_complex) ++format;
  if (*format == '\0' || format[1] != '\0') return e.is_known = false, e;
  if (is_complex) {
    e.type.family = 'c';
    e.is_known = std::strchr("fd", *format) != nullptr;
  } else if (*format == '?') {
    e.type.family = 'b';
  } else if (std::strchr("bhilqn", *format) != nullptr) {
    e.type.family = 'i';
  } else if (std::strchr("efd", *format) != nullptr) {
    e.type.family = 'f';
  } else if (std::strchr("BHILQN", *format) == nullptr) {
    e.is_known = false;
  }
  return e;
}

std::string element_name(const Py_buffer& view, const element& e) {
  const std::string bits = std::to_string(8 * e.type.bytes);
  if (e.is_known && e.type.family == 'c') return "complex" + bits;
  if (e.is_known && e.type.family == 'b') return "bool";
  if (e.is_known) return scalar_name(e.type);
  const std::string format = view.format == nullptr ? "B" : view.format;
  const auto holds = [&](char letter) { return format.find(letter) != std::string::npos; };
  if (format == "O") return "Python objects";
  if (holds('T')) return "records";
  if (holds('w')) return "strings";
  if (holds('s') || holds('c')) return "byte strings";
  return holds('g') ? "long doubles" : "elements of format '" + format + "'";
}

bool is_integer(scalar type) noexcept {
  return type.family == 'i' || type.family == 'u';
}

// What makes an array of the right type out of another.
std::string conversion(nb::handle array, const Py_buffer& view, const element& e, scalar wanted) {
  const std::string type = "'" + scalar_name(wanted) + "'";
  const bool is_bytes = e.is_known && e.type.bytes == 1 && is_integer(e.type);
  if (!nb::hasattr(array, "astype"))
    return is_bytes ? "read them as numbers with numpy.frombuffer(a, " + type + ")"
                    : "convert it with numpy.asarray(a, " + type + ")";
  // Integers of the other sign, truth values and records of one number have the right bits already.
  const bool is_record = !e.is_known && element_name(view, e) == "records";
  const bool is_same = is_integer(wanted) && (is_integer(e.type) || e.type.family == 'b');
  if (view.itemsize == wanted.bytes && (is_record || (e.is_known && is_same)))
    return "use a.view(" + type + ")";
  const bool is_cut = e.is_known && e.type.family == 'c' && wanted.family != 'c';
  return (is_cut ? "take a.real, a.imag or abs(a), and convert it with .astype("
                 : "convert it with a.astype(") +
         type + ")";
}

void check_element(nb::handle array, const Py_buffer& view, const place& where) {
  const element e = parse_format(view.format, view.itemsize);
  const scalar wanted = where.declared->type;
  if (e.is_known && e.is_big_endian)
    refuse_argument(PyExc_ValueError, where,
                    std::string("the array is big-endian; convert it with ") +
                        (nb::hasattr(array, "astype") ? "a.astype('" : "numpy.asarray(a, '") +
                        scalar_name(wanted) + "')");
  if (e.is_known && e.type == wanted) return;
  refuse_argument(PyExc_TypeError, where,
                  "the array holds " + element_name(view, e) + ", the procedure takes " +
                      scalar_name(wanted) + "; " + conversion(array, view, e, wanted));
}

// A mask is beside the memory that the task would see.
void refuse_masked(nb::handle array, const place& where) {
  static PyTypeObject* plain = nullptr;  // one without a mask that lives as long as the process
  PyTypeObject* const own = Py_TYPE(array.ptr());
  if (own == plain) return;
  for (const nb::handle base : nb::borrow<nb::tuple>(array.type().attr("__mro__"))) {
    if (base.attr("__name__").equal(nb::str("MaskedArray")))
      refuse_argument(PyExc_TypeError, where,
                      "the array has a mask, which a task does not see; pass a.filled(value), or "
                      "a.data and a.mask as two arrays");
  }
  if ((PyType_GetFlags(own) & Py_TPFLAGS_HEAPTYPE) == 0) plain = own;
}

// The NumPy array of something that keeps its memory in another way: data frames, Arrow, tensors.
// Null when it has none.
nb::object as_array(nb::handle value, const place& where, bool needs_write) {
  if (PyObject_CheckBuffer(value.ptr()) != 0) return nb::borrow(value);
  if (!nb::hasattr(value, "__array__") && !nb::hasattr(value, "__dlpack__")) return {};
  try {
    return nb::module_::import_("leveret.arrays").attr("memory_of")(value, needs_write);
  } catch (nb::python_error& e) {
    const bool is_read_only = e.matches(PyExc_BufferError);
    if (!is_read_only && !e.matches(PyExc_TypeError)) throw;
    refuse_argument(is_read_only ? PyExc_BufferError : PyExc_TypeError, where, text_of(e.value()));
  }
}

// Arrays of ctypes leave their strides out, whatever they are asked for; a memoryview has some.
bool export_buffer(nb::handle array, int flags, Py_buffer* view) {
  if (PyObject_GetBuffer(array.ptr(), view, flags) != 0) return false;
  if (view->ndim == 0 || (view->shape != nullptr && view->strides != nullptr)) return true;
  PyBuffer_Release(view);
  const nb::object whole = nb::steal(PyMemoryView_FromObject(array.ptr()));
  return whole.is_valid() && PyObject_GetBuffer(whole.ptr(), view, flags) == 0;
}

[[noreturn]] void refuse_export(nb::handle array, const place& where, bool needs_write) {
  const nb::python_error cause;
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
  if (stride < row_bytes)
    refuse_argument(PyExc_ValueError, where,
                    "the rows lie backwards or overlap; use numpy.ascontiguousarray(a)");
  if (rows > 0xffffffffll)
    refuse_argument(PyExc_ValueError, where, "more than 2**32 - 1 rows; use a.ravel()");
  if (stride % static_cast<Py_ssize_t>(alignment_of(where.declared->type)) != 0)
    a.flags |= argument_packed;
  a.rows = static_cast<std::uint32_t>(rows);
  a.row_bytes = static_cast<std::uint64_t>(row_bytes);
  a.stride_bytes = stride;
}

}  // namespace

void open_buffer(nb::handle given, const place& where, Py_buffer* view) {
  const bool needs_write = writes_memory(where.declared->what);
  const nb::object array = as_array(given, where, needs_write);
  if (!array.is_valid())
    refuse_argument(PyExc_TypeError, where,
                    "expected an array, got " + name_of_type(given) + "; use numpy.asarray(x, '" +
                        scalar_name(where.declared->type) + "')");
  refuse_masked(array, where);
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (needs_write ? PyBUF_WRITABLE : 0);
  if (!export_buffer(array, flags, view)) refuse_export(array, where, needs_write);
  try {
    check_element(array, *view, where);
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
  const bool is_far = where.declared->is_far;
  if (is_far && is_sliced)
    refuse_argument(PyExc_ValueError, where, "far memory is not cut; pass the array itself");
  a.flags = is_far ? argument_far : is_sliced ? argument_sliced : 0;
  if (is_empty(e)) {
    a.row_bytes = 0;
    return a;
  }
  if (a.address % alignment_of(where.declared->type) != 0) {
    if (is_far)
      refuse_argument(PyExc_ValueError, where,
                      "the elements are not aligned, and far memory is used where it is; pass "
                      "a.copy()");
    a.flags |= argument_packed;
  }
  const Py_ssize_t row_bytes = packed_bytes(e, e.dimensions < 2 || is_far ? 0 : 1);
  if (row_bytes < 0)
    refuse_argument(PyExc_ValueError, where,
                    "the array is not contiguous; use numpy.ascontiguousarray(a), or a view whose "
                    "rows are contiguous");
  if (e.dimensions < 2 || is_far) {
    a.row_bytes = static_cast<std::uint64_t>(row_bytes);
    a.stride_bytes = row_bytes;
    return a;
  }
  set_rows(a, e, row_bytes, where);
  if (is_sliced) a.flags |= argument_rows;  // one row is not cut by its elements
  return a;
}

}  // namespace lev::python
