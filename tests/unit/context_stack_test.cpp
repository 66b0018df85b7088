// Tests of lev::stack: its bounds, its guard, that it is committed lazily, and its colours.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "context/stack.hpp"

namespace lev {
namespace {

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// The permissions of the mapping that holds `address`, as "rw-p"; empty where nothing is mapped.
std::string permissions_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char dash = 0;
    std::string permissions;
    words >> std::hex >> from >> dash >> to >> permissions;
    if (from <= wanted && wanted < to) return permissions;
  }
  return {};
}

std::size_t resident_pages(const stack& s) {
  std::vector<unsigned char> present(s.size_bytes() / page_bytes());
  EXPECT_EQ(mincore(s.bottom(), s.size_bytes(), present.data()), 0);
  std::size_t count = 0;
  for (const unsigned char page : present) count += page & 1u;
  return count;
}

TEST(context_stack, has_the_size_asked_for_rounded_to_pages) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{100000}}) {
    const stack s = stack::map(bytes);
    ASSERT_TRUE(s);
    EXPECT_GE(s.usable_bytes(), bytes);
    EXPECT_LE(s.size_bytes(), bytes + 2 * page_bytes() + 4096);
    EXPECT_EQ(s.size_bytes() % page_bytes(), 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.bottom()) % page_bytes(), 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top()) % 64, 0u);
  }
}

TEST(context_stack, has_a_guard_below) {
  const stack s = stack::map(64 * 1024);
  ASSERT_TRUE(s);
  char* bottom = static_cast<char*>(s.bottom());
  EXPECT_EQ(permissions_at(bottom).substr(0, 3), "rw-");
  EXPECT_EQ(permissions_at(bottom - 1).substr(0, 3), "---");
  EXPECT_EQ(permissions_at(bottom - page_bytes()).substr(0, 3), "---");
}

TEST(context_stack, is_committed_page_by_page) {
  const stack s = stack::map(8 << 20);
  ASSERT_TRUE(s);
  EXPECT_EQ(resident_pages(s), 0u);
  static_cast<volatile char*>(s.top())[-1] = 1;
  EXPECT_EQ(resident_pages(s), 1u);
}

TEST(context_stack, moves_and_unmaps) {
  stack first = stack::map(4096);
  ASSERT_TRUE(first);
  void* bottom = first.bottom();
  stack second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(second.bottom(), bottom);
  first = std::move(second);
  EXPECT_FALSE(second);
  EXPECT_EQ(first.bottom(), bottom);
  EXPECT_EQ(permissions_at(bottom).substr(0, 3), "rw-");
  first = stack();
  EXPECT_NE(permissions_at(bottom).substr(0, 3), "rw-");
}

TEST(context_stack, is_null_when_memory_cannot_be_had) {
  EXPECT_FALSE(stack::map(SIZE_MAX));
  EXPECT_FALSE(stack::map(SIZE_MAX / 2));
}

TEST(context_stack, sixteen_stacks_of_one_size_differ_in_colour) {
  for (const std::size_t kibibytes : {16u, 64u, 128u, 256u, 1024u}) {
    std::vector<stack> stacks;
    std::set<std::uintptr_t> offsets;
    for (int i = 0; i < 16; ++i) {
      stacks.push_back(stack::map(kibibytes * 1024));
      ASSERT_TRUE(stacks.back());
      offsets.insert(reinterpret_cast<std::uintptr_t>(stacks.back().top()) % 4096);
    }
    EXPECT_EQ(offsets.size(), 16u) << kibibytes;
  }
}

using context_stack_death_test = testing::Test;

TEST(context_stack_death_test, writing_below_the_bottom_faults) {
  const stack s = stack::map(4096);
  ASSERT_TRUE(s);
  volatile char* bottom = static_cast<char*>(s.bottom());
  bottom[0] = 1;
  EXPECT_DEATH(bottom[-1] = 1, "");
}

}  // namespace
}  // namespace lev
