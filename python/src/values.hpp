// Python numbers as the bits that travel in a descriptor, and back.
#pragma once

#include <cstdint>

#include "errors.hpp"

namespace lev::python {

// to_bits() converts a Python number. Integers are never rounded: a float for an integer parameter
// raises TypeError, a value outside the type OverflowError.
std::uint64_t to_bits(nb::handle number, scalar type, const place& where);

// to_range() accepts a range(begin, end), a pair of integers, or n for [0, n).
lev::range to_range(nb::handle value, const place& where);

// from_bits() makes the Python int, float, complex or bool of a result.
nb::object from_bits(const void* bits, scalar type);

// load_scalar() reads an element of that type, extended to 64 bits as to_bits() does.
std::uint64_t load_scalar(const char* address, scalar type) noexcept;

}  // namespace lev::python
