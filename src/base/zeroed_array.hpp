// zeroed_array: an array whose objects are all zero to begin with. Of a large one the system gives
// each page when it is first touched: a program that asks for room for millions of tasks, and has
// thousands, neither waits for the rest nor takes its memory.
#pragma once

#include "base/numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace lev {

#ifdef LEVERET_MODEL_CHECKER
template <class T>
using zeroed_array = std::unique_ptr<T[]>;  // its atomics are never zero
template <class T>
zeroed_array<T> make_zeroed(std::size_t count) {
  return zeroed_array<T>(new T[count]);
}
#else

// The elements are not destroyed: what they own by then is lost.
struct zeroed_deleter {
  void* block = nullptr;  // the elements are aligned within it
  void operator()(void*) const noexcept { std::free(block); }
};
template <class T>
using zeroed_array = std::unique_ptr<T[], zeroed_deleter>;

// An array of up to this size is touched at once, so that no task is the first to.
constexpr std::size_t touched_bytes_max = std::size_t{64} << 20;

// Throws std::bad_alloc. Precondition: a T whose bytes are 0 is as good as a new one.
template <class T>
zeroed_array<T> make_zeroed(std::size_t count) {
  std::size_t bytes = 0;
  if (!checked_multiply(count, sizeof(T), &bytes) || !checked_add(bytes, alignof(T), &bytes))
    throw std::bad_alloc();
  void* const block = std::calloc(1, bytes);
  if (block == nullptr) throw std::bad_alloc();
  auto* const touched = static_cast<volatile char*>(block);
  for (std::size_t i = 0; i < bytes && bytes <= touched_bytes_max; i += page_bytes) touched[i] = 0;
  const std::uintptr_t at = round_up(reinterpret_cast<std::uintptr_t>(block), alignof(T));
  return {reinterpret_cast<T*>(at), zeroed_deleter{block}};
}

#endif

}  // namespace lev
