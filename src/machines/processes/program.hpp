// The main program in memory: its beginning, and its segments.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace lev::processes {

struct program_segments {
  std::uintptr_t base = 0;
  const ElfW(Phdr) * first = nullptr;
  unsigned count = 0;

  const ElfW(Phdr) * begin() const noexcept { return first; }
  const ElfW(Phdr) * end() const noexcept { return first + count; }
};

// A fully static program has them, too.
inline program_segments segments_of_program() noexcept {
  program_segments found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<program_segments*>(to) = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
        return 1;  // the first one is the program
      },
      &found);
  return found;
}

}  // namespace lev::processes
