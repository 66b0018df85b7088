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

// make_memory_file() returns a memory file of `bytes` bytes, or -1. The file cannot shrink, nor
// grow without may_grow. seal_memory_file() allows no more seals and, with `read_only`, no new
// mapping that can write; existing mappings stay as they are. False when the system refuses.
enum file_growth : bool { has_fixed_size, may_grow };
int make_memory_file(const char* name, std::size_t bytes,
                     file_growth growth = has_fixed_size) noexcept;
bool seal_memory_file(int file, bool read_only) noexcept;
// open_to_read() opens a memory file once more, so that mappings of it cannot be made writable; -1
// when the system refuses.
int open_to_read(int file) noexcept;
// out_of_the_way() moves a new file to a high number: new files of the program get the lowest free
// one. A program may close files that are not its own, as daemons do, and open others in their
// place; those would otherwise be written to and closed here. If the limit on files allows no such
// number, the file is only moved off standard input, output and error. -1 when it cannot be moved.
int out_of_the_way(int file) noexcept;

// map_near() maps a memory file at an address that worker processes are likely to have free, null
// when there is none; map_at() maps it at exactly `address`.
void* map_near(int file, std::size_t bytes) noexcept;
bool map_at(std::uintptr_t address, int file, std::size_t bytes, bool writable) noexcept;

}  // namespace lev
