// Slots of tasks in memory that is zero, as opening a runtime leaves it.
#include "task/slot.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/numbers.hpp"
#include "base/zeroed_array.hpp"

namespace lev {
namespace {

bool is_all_zero(const unsigned char* begin, const unsigned char* end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == 0; });
}

// Arguments are written before they are read.
TEST(slot, a_new_one_is_all_zero) {
  alignas(slot) unsigned char bytes[sizeof(slot)] = {};
  slot* const made = new (bytes) slot;
  EXPECT_TRUE(is_all_zero(bytes, reinterpret_cast<unsigned char*>(made->arguments)));
  alignas(slot_extra) unsigned char more[sizeof(slot_extra)] = {};
  new (more) slot_extra;
  EXPECT_TRUE(is_all_zero(more, more + sizeof more));
}

TEST(zeroed_array, is_zero_and_aligned) {
  for (const std::size_t count : {1, 3, 1000}) {
    const zeroed_array<slot_extra> all = make_zeroed<slot_extra>(count);
    const auto* const begin = reinterpret_cast<const unsigned char*>(all.get());
    EXPECT_TRUE(is_all_zero(begin, begin + count * sizeof(slot_extra)));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % alignof(slot_extra), 0u);
  }
  EXPECT_THROW(make_zeroed<slot_extra>(~std::size_t{0} / 2), std::bad_alloc);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // those have a calloc() of theirs
// Whether the page in the middle of an array has memory of its own.
bool has_middle(const zeroed_array<slot>& all, std::size_t count) {
  const auto middle = reinterpret_cast<std::uintptr_t>(&all[count / 2]);
  unsigned char is_there = 0;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(middle / page_bytes * page_bytes), 1, &is_there), 0);
  return (is_there & 1) != 0;
}

TEST(zeroed_array, of_millions_takes_no_memory_before_it_is_used) {
  const std::size_t few = 4096, many = std::size_t{1} << 22;
  EXPECT_TRUE(has_middle(make_zeroed<slot>(few), few));
  EXPECT_FALSE(has_middle(make_zeroed<slot>(many), many));
}
#endif

}  // namespace
}  // namespace lev
