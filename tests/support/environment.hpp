// Settings of a test run from outside: LEVERET_SEED=n sets the seed of every randomised test,
// LEVERET_DEEP=1 makes them longer.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace lev::test {

inline std::uint64_t base_seed() {
  const char* text = std::getenv("LEVERET_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

inline bool is_deep() {
  const char* text = std::getenv("LEVERET_DEEP");
  return text != nullptr && *text != 0 && *text != '0';
}

// How often to repeat something that is worth repeating.
constexpr bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}
inline int rounds(int plain) {
  return is_deep() ? plain * 20 : is_sanitized() ? (plain + 3) / 4 : plain;
}

}  // namespace lev::test
