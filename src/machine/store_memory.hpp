// store_memory: the memory of a local store on machines whose workers are threads. A store of 2 MiB
// or more begins at a multiple of that, and is in huge pages if the kernel gives them on request;
// otherwise nothing else differs. (CellMT's arenas: a walk in one should not wait for page tables.)
//
// Untouched memory is not resident; the first touch takes 2 MiB at once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace lev {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// map_store() returns null when there is no memory; unmap_store() gives back all of it.
inline void* map_store(std::size_t bytes) noexcept {
  const bool is_huge = bytes >= huge_page_bytes;
  const std::size_t slack = is_huge ? huge_page_bytes : 0;
  void* all =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (!is_huge) return all;
  char* begin = static_cast<char*>(all);
  const std::size_t before = (slack - reinterpret_cast<std::uintptr_t>(all) % slack) % slack;
  char* store = begin + before;
  // The end of the store is the end of its last page of 4 KiB.
  const std::size_t end = (before + bytes + 4095) / 4096 * 4096;
  if (before != 0) munmap(begin, before);
  if (end < bytes + slack) munmap(begin + end, bytes + slack - end);
  (void)madvise(store, bytes, MADV_HUGEPAGE);  // fails where the kernel has none
  return store;
}

inline void unmap_store(void* store, std::size_t bytes) noexcept {
  munmap(store, bytes);
}

}  // namespace lev
