// Which modules a program's start loads; see loaded_late.hpp.
//
//   1. The program's start has loaded what the program needs, by name, and what that needs.
//   2. The loader lists modules in the order in which it has loaded them. One that was preloaded is
//      needed by none, but stands before those that are.
//   3. A module with a Leveret of its own has the name of zygotes among its constants.
#include "machines/processes/loaded_late.hpp"

#include "machines/processes/zygote.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace lev::processes {

namespace {

// The names in a module's dynamic section.
struct module_names {
  std::vector<const char*> needed;
  const char* own = nullptr;
};

module_names names_of(const link_map& module) {
  std::uintptr_t texts = 0;
  for (const ElfW(Dyn)* d = module.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d)
    if (d->d_tag == DT_STRTAB) texts = d->d_un.d_ptr;
  if (texts < module.l_addr) texts += module.l_addr;  // a loader that leaves it as in the file
  module_names names;
  for (const ElfW(Dyn)* d = module.l_ld; d != nullptr && d->d_tag != DT_NULL; ++d) {
    const auto* text = reinterpret_cast<const char*>(texts + d->d_un.d_val);
    if (d->d_tag == DT_NEEDED) names.needed.push_back(text);
    if (d->d_tag == DT_SONAME) names.own = text;
  }
  return names;
}

bool is_called(const link_map& module, const char* name) {
  const char* own = names_of(module).own;
  if (own != nullptr && std::strcmp(own, name) == 0) return true;
  const char* last = std::strrchr(module.l_name, '/');
  return std::strcmp(module.l_name, name) == 0 ||
         (last != nullptr && std::strcmp(last + 1, name) == 0);
}

// Those that the first one needs, and itself.
std::vector<const link_map*> needed_by(const link_map& first) {
  std::vector<const link_map*> found{&first};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const char* name : names_of(*found[i]).needed) {
      const link_map* m = &first;
      while (m != nullptr && !is_called(*m, name)) m = m->l_next;
      if (m != nullptr && std::find(found.begin(), found.end(), m) == found.end())
        found.push_back(m);
    }
  }
  return found;
}

struct search {
  const std::vector<const link_map*>& modules;
  bool is_found = false;
};

int look_for_leveret(dl_phdr_info* module, std::size_t, void* of) noexcept {
  search& s = *static_cast<search*>(of);
  const auto is_it = [&](const link_map* m) { return m->l_addr == module->dlpi_addr; };
  if (std::none_of(s.modules.begin(), s.modules.end(), is_it)) return 0;
  for (unsigned i = 0; i < module->dlpi_phnum && !s.is_found; ++i) {
    const ElfW(Phdr) & segment = module->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & (PF_R | PF_W)) != PF_R) continue;
    const auto* begin = reinterpret_cast<const char*>(module->dlpi_addr + segment.p_vaddr);
    s.is_found = memmem(begin, segment.p_memsz, zygote_name, std::strlen(zygote_name)) != nullptr;
  }
  return s.is_found ? 1 : 0;
}

}  // namespace

bool is_loaded_late() noexcept try {
  Dl_info info;
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&is_loaded_late), &info, &extra, RTLD_DL_LINKMAP) == 0)
    return false;  // a fully static program
  const auto* own = static_cast<const link_map*>(extra);
  const link_map* program = own;
  while (program->l_prev != nullptr) program = program->l_prev;
  const std::vector<const link_map*> needed = needed_by(*program);
  for (const link_map* m = own; m != nullptr; m = m->l_next)
    if (std::find(needed.begin(), needed.end(), m) != needed.end()) return false;
  search others{needed};
  dl_iterate_phdr(&look_for_leveret, &others);
  return !others.is_found;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace lev::processes
