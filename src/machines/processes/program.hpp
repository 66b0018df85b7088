// The main program in memory: its beginning and its segments, and the modules that were loaded.
#pragma once

#include <dlfcn.h>
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

// module_of() is the loaded module in which an address is; null: no loader knows it, as in a fully
// static program. program_of() is the first of the list in which a module is.
inline const link_map* module_of(const void* address) noexcept {
  Dl_info about;
  void* module = nullptr;
  if (dladdr1(address, &about, &module, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(module);
}
inline const link_map* program_of(const link_map* module) noexcept {
  while (module->l_prev != nullptr) module = module->l_prev;
  return module;
}

}  // namespace lev::processes
