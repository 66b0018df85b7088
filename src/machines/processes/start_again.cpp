// Whether a program can be started again, and what it gets; see start_again.hpp.
//
// Which modules a program's start loads:
//
//   1. The program's start has loaded what the program needs, by name, and what that needs.
//   2. The loader lists modules in the order in which it has loaded them. One that was preloaded is
//      needed by none, but stands before those that are.
//   3. A module with a Leveret of its own has the name of zygotes among its constants.
#include "machines/processes/start_again.hpp"

#include "machines/processes/program.hpp"
#include "machines/processes/zygote.hpp"
#include "share/role.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

extern char** environ;

// glibc 2.34 closes files in the new process. The wheels are built with an older one, and look at
// run time whether it is there. As <spawn.h> has it; null where glibc is older.
extern "C" int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t*, int) noexcept
    __attribute__((weak));

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

// A variable that tells a zygote its socket is not passed on: the zygote would find it in place of
// the new one.
bool is_of_zygotes(std::string_view variable) noexcept {
  for (const std::string_view name : {zygote_variable, worker_program_variable}) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) return true;
  }
  return false;
}

bool is_needed(std::string_view variable) noexcept {
  const std::size_t equals = variable.find('=');
  if (equals == variable.npos) return false;
  const std::string_view name = variable.substr(0, equals);
  const std::string_view value = variable.substr(equals + 1);
  for (const char* needed : {"LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME"}) {
    if (name == needed) return true;
  }
  constexpr std::size_t digits_max = 4;
  return name.ends_with("_NUM_THREADS") && !value.empty() && value.size() <= digits_max &&
         value.find_first_not_of("0123456789") == value.npos;
}

}  // namespace

bool is_loaded_late() noexcept try {
  const link_map* const own = module_of(reinterpret_cast<void*>(&is_loaded_late));
  if (own == nullptr) return false;  // a fully static program
  const std::vector<const link_map*> needed = needed_by(*program_of(own));
  for (const link_map* m = own; m != nullptr; m = m->l_next)
    if (std::find(needed.begin(), needed.end(), m) != needed.end()) return false;
  search others{needed};
  dl_iterate_phdr(&look_for_leveret, &others);
  return !others.is_found;
} catch (const std::bad_alloc&) {
  return false;
}

std::vector<char*> environment_for(isolation level, char* own) {
  std::vector<char*> all;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const bool is_for_it = level != isolation::confined || is_needed(*e);
    if (is_for_it && !is_of_zygotes(*e)) all.push_back(*e);
  }
  all.push_back(own);
  all.push_back(nullptr);
  return all;
}

bool forget_start() noexcept {
  static char* none[] = {nullptr};
  environ = none;
  std::FILE* f = std::fopen("/proc/self/stat", "re");
  if (f == nullptr) return false;
  char text[1024];
  text[std::fread(text, 1, sizeof text - 1, f)] = 0;
  std::fclose(f);
  // Numbers follow the program's name, which may hold anything: 45 of no interest, then the
  // beginning and end of the arguments, and of the environment.
  constexpr int passed_over = 45;
  const char* at = std::strrchr(text, ')');
  for (int i = 0; at != nullptr && i <= passed_over; ++i) at = std::strchr(at + 1, ' ');
  std::uintptr_t places[4] = {};
  if (at == nullptr ||
      std::sscanf(at, "%lu %lu %lu %lu", &places[0], &places[1], &places[2], &places[3]) != 4)
    return false;
  for (int i = 0; i < 4; i += 2) {
    const std::size_t bytes = places[i + 1] - places[i];
    if (places[i] != 0 && places[i] < places[i + 1])
      std::memset(reinterpret_cast<void*>(places[i]), 0, bytes);
  }
  return true;
}

void close_from(posix_spawn_file_actions_t& actions, int first) noexcept {
  const auto in_one_go = &posix_spawn_file_actions_addclosefrom_np;
  if (in_one_go != nullptr && in_one_go(&actions, first) == 0) return;
  close_listed(actions, first);
}

void close_listed(posix_spawn_file_actions_t& actions, int first) noexcept {
  DIR* all = opendir("/proc/thread-self/fd");
  if (all == nullptr) return;
  while (const dirent* each = readdir(all)) {
    const int file = std::atoi(each->d_name);
    // A file that is closed meanwhile is no error there.
    if (file >= first && file != dirfd(all)) posix_spawn_file_actions_addclose(&actions, file);
  }
  closedir(all);
}

}  // namespace lev::processes
