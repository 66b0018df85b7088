// Seeded random numbers that are the same with every compiler and library: splitmix64 (Steele, Lea
// and Flood, 2014).
#pragma once

#include <cstdint>

namespace leveret_apps {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed) {}

  // next() is uniform in [0, 1), a multiple of 2^-53.
  double next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace leveret_apps
