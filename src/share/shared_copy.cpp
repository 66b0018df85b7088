// Copies that another process reads next.
//
// 1. The lines of a large block lie in the other process's caches, since it has just read or
//    written them. An ordinary store fetches each from there before it is overwritten.
// 2. Between cores that share a cache that is quick, and the reader finds the block in that cache.
//    Between distant ones it takes longer than stores that bypass the caches and fetch nothing.
// 3. Only the machine knows where its cores are, and a hypervisor moves them within minutes. So a
//    large copy begins with ordinary stores, and goes on with those that have proved quicker.
#include <leveret/shared.hpp>

#include <chrono>
#include <cstring>

#include "share/stream_copy.hpp"

namespace lev {

namespace {

// 1 MiB there and back between two cores of a virtual EPYC (Zen 5), reads included, takes by
// memcpy 125 us with a cache in common and 650 to 900 without, by streams 300 either way, and as it
// is here 125 and 330 to 400 (2026-11-27). Blocks shorter than this lose by streams on either.
constexpr std::size_t streamed_bytes_min = 128 << 10;

// Ordinary stores take 0.03 ns a byte with a cache in common, and 0.2 to 0.5 without.
constexpr std::size_t tried_bytes = 8 << 10;
constexpr std::chrono::nanoseconds near_ns_max{1'000};

// Whether ordinary stores are slow here; copies `tried_bytes`.
bool proves_distant(char* to, const char* from) noexcept {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < tried_bytes; at += line)  // or its own misses would be timed
    static_cast<void>(*static_cast<const volatile char*>(from + at));
  const auto begin = std::chrono::steady_clock::now();
  std::memcpy(to, from, tried_bytes);
  return std::chrono::steady_clock::now() - begin > near_ns_max;
}

}  // namespace

void shared_copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (!can_stream || bytes < streamed_bytes_min) {
    std::memcpy(target, source, bytes);
    return;
  }
  const bool is_distant = proves_distant(target, source);
  target += tried_bytes;
  source += tried_bytes;
  bytes -= tried_bytes;
  if (is_distant)
    stream_copy(target, source, bytes);
  else
    std::memcpy(target, source, bytes);
}

}  // namespace lev
