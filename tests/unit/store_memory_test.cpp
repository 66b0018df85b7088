// The memory of local stores: large ones ask for huge pages, and leave nothing behind.
#include "machine/store_memory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace lev {
namespace {

bool is_mapped(const char* page) {
  return msync(const_cast<char*>(page), 4096, MS_ASYNC) == 0 || errno != ENOMEM;
}

// The flags of the mapping that holds an address, as the kernel tells them: "rd wr ... hg".
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  const auto at = reinterpret_cast<unsigned long>(address);
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) is_here = begin <= at && at < end;
    if (is_here && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(store_memory, can_be_written_to_its_end_and_goes_away) {
  for (const std::size_t bytes :
       {std::size_t{4096}, std::size_t{256} << 10, huge_page_bytes - 4096, huge_page_bytes,
        huge_page_bytes + 4096, 5 * huge_page_bytes / 2}) {
    char* store = static_cast<char*>(map_store(bytes));
    ASSERT_NE(store, nullptr);
    if (bytes >= huge_page_bytes) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(store) % huge_page_bytes, 0u) << bytes;
    }
    std::memset(store, 1, bytes);
    unmap_store(store, bytes);
    EXPECT_FALSE(is_mapped(store)) << bytes;
    EXPECT_FALSE(is_mapped(store + bytes - 4096)) << bytes;
  }
}

TEST(store_memory, nothing_around_a_large_store_stays_mapped) {
  const auto mapped_kib = [] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4;
  };
  constexpr int count = 16;
  constexpr std::size_t bytes = huge_page_bytes + 3 * 4096;
  void* stores[count];
  const long before = mapped_kib();
  for (void*& s : stores) s = map_store(bytes);
  EXPECT_LE(mapped_kib() - before, static_cast<long>(count * bytes / 1024) + 256);
  for (void* s : stores) unmap_store(s, bytes);
  EXPECT_LE(mapped_kib() - before, 256);
}

TEST(store_memory, asks_for_huge_pages_from_their_size_on) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    GTEST_SKIP() << "this kernel has no huge pages";
  void* large = map_store(2 * huge_page_bytes);
  void* small = map_store(huge_page_bytes / 2);
  EXPECT_NE(flags_of(large).find(" hg "), std::string::npos) << flags_of(large);
  EXPECT_EQ(flags_of(small).find(" hg "), std::string::npos) << flags_of(small);
  unmap_store(large, 2 * huge_page_bytes);
  unmap_store(small, huge_page_bytes / 2);
}

TEST(store_memory, a_shortage_is_told) {
  EXPECT_EQ(map_store(std::size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace lev
