// Seeded random numbers for victims, back-off and schedules: splitmix64 (Steele, Lea, Flood 2014).
// Every actor has its own, so that a run on virtual time repeats.
#pragma once

#include <cstdint>

namespace lev {

constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class random_source {
 public:
  explicit random_source(std::uint64_t seed = 0) noexcept
      : state_(mix64(seed + 0x9e3779b97f4a7c15u)) {}
  std::uint64_t next() noexcept { return mix64(state_ += 0x9e3779b97f4a7c15u); }
  // A number in [0, bound); bound is above 0. The bias is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{static_cast<std::uint32_t>(next())} * bound) >>
                                      32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace lev
