// zone: the memory that this process shares with its worker processes. One range of addresses,
// reserved once and the same in all of them, so that an address is enough to name a byte.
//
//   [ heap: shared_allocate()         | lanes: one mapping per worker process, by machine ]
//
// The heap is one memory file without a name. It ends where the last block ever taken did: a read
// beyond that finds no memory, and allocates none. It grows with the blocks and never shrinks (a
// seal), so that no process can make another one fault. Freeing a large block gives its memory back
// to the system.
#pragma once

#include <leveret/shared.hpp>

#include <cstdint>

namespace lev {

struct zone {
  std::uintptr_t heap_begin = 0;
  std::uintptr_t heap_end = 0;
  int heap_file = -1;

  bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= heap_begin && address < heap_end && bytes <= heap_end - address;
  }
};

// open_zone() makes the zone on its first call; null, with errno set, when the system refuses.
const zone* open_zone() noexcept;

// adopt_zone() makes is_shared() know the host's heap, in a worker process where it is mapped.
void adopt_zone(std::uintptr_t begin, std::uintptr_t end) noexcept;

// map_near() maps a memory file at an address that worker processes are likely to have free, null
// when there is none; map_at() maps it at exactly `address`.
void* map_near(int file, std::size_t bytes) noexcept;
bool map_at(std::uintptr_t address, int file, std::size_t bytes, bool writable) noexcept;

}  // namespace lev
