// A copy whose stores bypass the caches: no line of the target is fetched before it is overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/numbers.hpp"

namespace lev {

#if defined(__SSE2__)

inline constexpr bool can_stream = true;

// A fence behind the stores puts them before the store that publishes the block.
inline void stream_copy(char* to, const char* from, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  std::size_t at = round_up(address, line) - address;
  if (at > bytes) at = bytes;
  std::memcpy(to, from, at);
  for (; at + line <= bytes; at += line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
}

#else

inline constexpr bool can_stream = false;
inline void stream_copy(char* to, const char* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace lev
