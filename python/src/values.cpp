// Numbers in both directions. Steps of to_bits: take the exact Python value, check that the type
// holds it, keep its bits.
#include "values.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace lev::python {

namespace {

[[noreturn]] void refuse_size(nb::handle number, scalar type, const place& where) {
  PyErr_Clear();
  std::string text = "the number";  // Python refuses to write very long ones
  try {
    text = text_of(number);
  } catch (const nb::python_error&) {
  }
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  refuse_argument(PyExc_OverflowError, where, text + " does not fit in " + scalar_name(type));
}

std::uint64_t signed_bits(nb::handle number, scalar type, const place& where) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (value == -1 && overflow == 0 && PyErr_Occurred()) throw nb::python_error();
  const long long highest = static_cast<long long>(~0ull >> (65 - 8 * type.bytes));
  if (overflow != 0 || value > highest || value < -highest - 1) refuse_size(number, type, where);
  return static_cast<std::uint64_t>(value);
}

std::uint64_t unsigned_bits(nb::handle number, scalar type, const place& where) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
  if (value == ~0ull && PyErr_Occurred()) refuse_size(number, type, where);
  if (value > (~0ull >> (64 - 8 * type.bytes))) refuse_size(number, type, where);
  return value;
}

std::uint64_t integer_bits(nb::handle number, scalar type, const place& where) {
  const nb::object integer = nb::steal(PyNumber_Index(number.ptr()));
  if (!integer.is_valid()) {
    drop_error(PyExc_TypeError);
    refuse_argument(PyExc_TypeError, where,
                    "expected an integer, got " + name_of_type(number) + "; convert it with int()");
  }
  return type.family == 'i' ? signed_bits(integer, type, where)
                            : unsigned_bits(integer, type, where);
}

std::uint64_t float_bits(nb::handle number, scalar type, const place& where) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1.0 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) refuse_size(number, type, where);
    drop_error(PyExc_TypeError);
    refuse_argument(PyExc_TypeError, where,
                    "expected a number, got " + name_of_type(number) + "; convert it with float()");
  }
  if (type.bytes == 8) return std::bit_cast<std::uint64_t>(value);
  const float narrow = static_cast<float>(value);
  if (std::isfinite(value) && !std::isfinite(narrow)) refuse_size(number, type, where);
  return std::bit_cast<std::uint32_t>(narrow);
}

// NumPy's truth values have no __index__.
std::uint64_t bool_bits(nb::handle value, const place& where) {
  const auto is_numpys = [](const std::string& name) {
    return name == "numpy.bool" || name == "numpy.bool_";
  };
  const bool is_bool = PyBool_Check(value.ptr()) || is_numpys(name_of_type(value));
  if (!is_bool && !PyLong_Check(value.ptr()))
    refuse_argument(
        PyExc_TypeError, where,
        "expected True or False, got " + name_of_type(value) + "; convert it with bool()");
  if (!is_bool && integer_bits(value, {'u', 1}, where) > 1)
    refuse_size(value, where.declared->type, where);
  const int said = PyObject_IsTrue(value.ptr());
  if (said < 0) throw nb::python_error();  // of an int's class of the program's
  return static_cast<std::uint64_t>(said);
}

// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
double from_half(std::uint64_t bits) noexcept {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = static_cast<double>(bits & 1023) / 1024;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

template <class T>
T read_as(const void* address) noexcept {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

nb::object complex_from(const void* bits, scalar type) {
  const auto* parts = static_cast<const char*>(bits);
  const bool is_double = type.bytes == 16;
  const double real = is_double ? read_as<double>(parts) : read_as<float>(parts);
  const double imaginary = is_double ? read_as<double>(parts + 8) : read_as<float>(parts + 4);
  return nb::steal(PyComplex_FromDoubles(real, imaginary));
}

template <class T>
std::uint64_t load_as(const char* address) noexcept {
  return static_cast<std::uint64_t>(read_as<T>(address));
}

}  // namespace

std::uint64_t to_bits(nb::handle number, scalar type, const place& where) {
  if (type.family == 'b') return bool_bits(number, where);
  return type.family == 'f' ? float_bits(number, type, where) : integer_bits(number, type, where);
}

lev::range to_range(nb::handle value, const place& where) {
  const scalar index{'u', 8};
  // One of NumPy's, too, but none of its arrays.
  const bool is_number = PyLong_Check(value.ptr()) ||
                         (nb::hasattr(value, "__index__") && !nb::hasattr(value, "__len__"));
  if (is_number) return {0, integer_bits(value, index, where)};
  lev::range r;
  if (PyRange_Check(value.ptr())) {
    if (!nb::object(value.attr("step")).equal(nb::int_(1)))
      refuse_argument(PyExc_ValueError, where, "a range needs step 1");
    r = {integer_bits(value.attr("start"), index, where),
         integer_bits(value.attr("stop"), index, where)};
  } else if (PyTuple_Check(value.ptr()) && PyTuple_Size(value.ptr()) == 2) {
    r = {integer_bits(PyTuple_GetItem(value.ptr(), 0), index, where),
         integer_bits(PyTuple_GetItem(value.ptr(), 1), index, where)};
  } else {
    refuse_argument(PyExc_TypeError, where,
                    "expected range(begin, end), (begin, end) or n, got " + name_of_type(value));
  }
  if (r.end < r.begin) refuse_argument(PyExc_ValueError, where, "the range ends before it begins");
  return r;
}

std::uint64_t load_scalar(const char* address, scalar type) noexcept {
  const bool is_signed = type.family == 'i';
  switch (type.bytes) {
    case 1:
      return is_signed ? load_as<std::int8_t>(address) : load_as<std::uint8_t>(address);
    case 2:
      return is_signed ? load_as<std::int16_t>(address) : load_as<std::uint16_t>(address);
    case 4:
      return is_signed ? load_as<std::int32_t>(address) : load_as<std::uint32_t>(address);
    default:
      return load_as<std::uint64_t>(address);
  }
}

nb::object from_bits(const void* bits, scalar type) {
  if (type.family == 'c') return complex_from(bits, type);
  const std::uint64_t word = load_scalar(static_cast<const char*>(bits), type);
  if (type.family == 'i') return nb::int_(static_cast<std::int64_t>(word));
  if (type.family == 'u') return nb::int_(word);
  if (type.family == 'b') return nb::bool_(word != 0);
  if (type.bytes == 8) return nb::float_(std::bit_cast<double>(word));
  if (type.bytes == 2) return nb::float_(from_half(word));
  return nb::float_(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word))));
}

}  // namespace lev::python
