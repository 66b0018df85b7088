// Virtual time, in which simulated machines count. Cycles are a type of their own.
//
// A virtual_time is a chrono duration, so 3us and 250ns of std::chrono convert exactly. The unit is
// a femtosecond: a cycle of 3.2 GHz is 312,500 of them, no rounding, and 63 bits hold 2.5 hours.
// Cycles become time only through the clock to which they belong.
#ifndef LEVERET_VIRTUAL_TIME_HPP
#define LEVERET_VIRTUAL_TIME_HPP

#include <chrono>
#include <compare>
#include <cstdint>
#include <ratio>

namespace lev {

using virtual_time = std::chrono::duration<std::int64_t, std::femto>;

// Cycles of one clock. They add up and compare, but do not mix with times.
struct cycles {
  std::int64_t count = 0;

  constexpr cycles() = default;
  constexpr explicit cycles(std::int64_t n) : count(n) {}
  constexpr auto operator<=>(const cycles&) const = default;
  constexpr cycles operator+(cycles other) const { return cycles(count + other.count); }
  constexpr cycles operator-(cycles other) const { return cycles(count - other.count); }
  constexpr cycles operator*(std::int64_t n) const { return cycles(count * n); }
};

constexpr double seconds_of(virtual_time t) {
  return static_cast<double>(t.count()) * 1e-15;
}

// The rate at which cycles pass.
class clock_rate {
 public:
  // Precondition: hz is at least 1. A cycle is rounded to a whole femtosecond.
  constexpr explicit clock_rate(double hz)
      : cycle_fs_(static_cast<std::int64_t>(1e15 / hz + 0.5)) {}

  constexpr virtual_time time_of(cycles n) const { return virtual_time(n.count * cycle_fs_); }
  // Whole cycles in a time.
  constexpr cycles cycles_in(virtual_time t) const { return cycles(t.count() / cycle_fs_); }

 private:
  std::int64_t cycle_fs_;
};

}  // namespace lev

#endif
