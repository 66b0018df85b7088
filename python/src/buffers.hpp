// Python arrays as memory arguments, without copying: anything with the buffer protocol (NumPy
// arrays, bytearray, array.array, memoryview, ctypes arrays), __array__ or __dlpack__.
#pragma once

#include "errors.hpp"

namespace lev::python {

// The part of a buffer that one argument names: all of it, or one row of it.
struct extent {
  char* data;
  int dimensions;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  Py_ssize_t element_bytes;
};

// open_buffer() exports `array` into `view`; the caller releases it with PyBuffer_Release when the
// task is done. Raises TypeError (no array, a masked one, other elements), ValueError (big-endian)
// or BufferError (read-only, or a copy of what should be written).
void open_buffer(nb::handle array, const place& where, Py_buffer* view);

extent whole_extent(const Py_buffer& view) noexcept;

// The i-th row along the first axis; the extent must have one.
extent row_extent(const extent& all, Py_ssize_t i) noexcept;

// memory_argument() describes an extent. One row when one-dimensional, else shape[0] rows of the
// rest. Elements that are not aligned are packed by the runtime. Raises ValueError for memory that
// is not contiguous within its rows.
argument memory_argument(const extent& e, bool is_sliced, const place& where);

}  // namespace lev::python
