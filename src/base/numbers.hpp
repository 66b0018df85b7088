// Small integer helpers: checked arithmetic, alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lev {

constexpr std::size_t page_bytes = 4096;  // of the smallest pages

// checked_add() and checked_multiply() return false when the exact value does not fit.
inline bool checked_add(std::uint64_t a, std::uint64_t b, std::uint64_t* sum) noexcept {
  return !__builtin_add_overflow(a, b, sum);
}
inline bool checked_multiply(std::uint64_t a, std::uint64_t b, std::uint64_t* product) noexcept {
  return !__builtin_mul_overflow(a, b, product);
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t power_of_two) noexcept {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

template <class T>
constexpr T smaller(T a, T b) noexcept {
  return a < b ? a : b;
}
template <class T>
constexpr T larger(T a, T b) noexcept {
  return a < b ? b : a;
}

}  // namespace lev
