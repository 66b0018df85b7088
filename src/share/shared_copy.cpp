// Copies that another process reads next.
//
// 1. The lines of a large block lie in the other process's caches, since it has just read or
//    written them. An ordinary store fetches each from there before it is overwritten.
// 2. So a large copy bypasses the caches, by stores that fetch nothing. A fence behind them puts
//    them before the store that publishes the block.
#include <leveret/shared.hpp>

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/numbers.hpp"

namespace lev {

namespace {

#if defined(__SSE2__)

// There and back between two cores of a virtual EPYC, including the reads, 1 MiB by memcpy takes
// 100 us or 1,000, depending on where the hypervisor places the cores; by these stores it takes 200
// either way. 128 KiB take 40 and 27; below that the caches win.
constexpr std::size_t streamed_bytes_min = 128 << 10;
constexpr std::size_t chunk_bytes = 64;

void stream(char* to, const char* from, std::size_t bytes) noexcept {
  const std::size_t head = round_up(reinterpret_cast<std::uintptr_t>(to), chunk_bytes) -
                           reinterpret_cast<std::uintptr_t>(to);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + chunk_bytes <= bytes; at += chunk_bytes) {
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

constexpr std::size_t streamed_bytes_min = ~std::size_t{0};
void stream(char*, const char*, std::size_t) noexcept {}

#endif

}  // namespace

void shared_copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes >= streamed_bytes_min) {
    stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace lev
