// shared_copy: all bytes that were asked for and none beside them, from and to any address.
#include <gtest/gtest.h>
#include <leveret/shared.hpp>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "share/stream_copy.hpp"

namespace lev {
namespace {

// By which stores a copy goes depends on the machine, so those past the caches are tested as well.
void expect_copies(void (*copy)(char*, const char*, std::size_t)) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::size_t room = 600'000;
  constexpr std::size_t offset_max = 200;
  std::vector<char> from(room + offset_max);
  for (char& c : from) c = static_cast<char>(random());
  std::vector<char> to(from.size());
  std::vector<char> expected(from.size());
  for (int i = 0; i < 200; ++i) {
    // Small ones, those about the size from which on copies take another way, and larger ones.
    const std::size_t most = i % 4 == 0 ? 1'000 : i % 4 == 1 ? room : 140'000;
    const std::size_t least = i % 4 >= 2 ? 120'000 : 0;
    const std::size_t bytes = least + random() % (most - least);
    const std::size_t source = random() % offset_max;
    const std::size_t target = random() % offset_max;
    std::memset(to.data(), i, to.size());
    std::memset(expected.data(), i, expected.size());
    copy(to.data() + target, from.data() + source, bytes);
    std::memcpy(expected.data() + target, from.data() + source, bytes);
    ASSERT_EQ(std::memcmp(to.data(), expected.data(), to.size()), 0)
        << bytes << " bytes from " << source << " to " << target;
  }
}

TEST(shared_copy, copies_what_memcpy_would) {
  expect_copies(
      [](char* to, const char* from, std::size_t bytes) { shared_copy(to, from, bytes); });
}

TEST(stream_copy, copies_what_memcpy_would) {
  expect_copies(&stream_copy);
}

TEST(stream_copy, of_less_than_a_line_stays_in_it) {
  alignas(64) char to[128] = {};
  const char from[64] = "less than the line that it is in";
  for (std::size_t at = 0; at < 64; ++at) {
    stream_copy(to + at, from, 5);
    EXPECT_EQ(std::memcmp(to + at, from, 5), 0);
    EXPECT_EQ(to[at + 5], 0);
    std::memset(to, 0, sizeof to);
  }
}

TEST(shared_copy, of_no_bytes_touches_nothing) {
  shared_copy(nullptr, nullptr, 0);
  char c = 3;
  shared_copy(&c, nullptr, 0);
  EXPECT_EQ(c, 3);
}

}  // namespace
}  // namespace lev
