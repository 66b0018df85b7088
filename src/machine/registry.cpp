// The list of machines. This is the one place that names them.
#include "machine/machine.hpp"

#include "sync/uncancelled.hpp"

#include <cstring>

namespace lev {

extern const machine_kind threads_kind;
extern const machine_kind processes_kind;
extern const machine_kind sim_kind;

const machine_kind* machine_kind_at(unsigned index) noexcept {
  static const machine_kind* const kinds[] = {&threads_kind, &processes_kind, &sim_kind};
  return index < sizeof kinds / sizeof kinds[0] ? kinds[index] : nullptr;
}

const machine_kind* find_machine_kind(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  for (unsigned i = 0; const machine_kind* k = machine_kind_at(i); ++i) {
    if (std::strcmp(k->name, name) == 0) return k;
  }
  return nullptr;
}

const char* machine_name(unsigned index) noexcept {
  const machine_kind* k = machine_kind_at(index);
  return k == nullptr ? nullptr : k->name;
}

const char* machine_unavailable(const char* name) noexcept {
  const uncancelled now;
  const machine_kind* k = find_machine_kind(name);
  return k == nullptr ? "no machine has this name; lev::machine_name() lists them"
                      : k->unavailable();
}

}  // namespace lev
