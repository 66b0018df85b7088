// The process-wide table of procedures: append-only, read without locks.
#ifndef LEVERET_TASK_PROCEDURE_TABLE_HPP
#define LEVERET_TASK_PROCEDURE_TABLE_HPP

#include <leveret/procedure.hpp>

namespace lev {

struct procedure_entry {
  procedure_info info;  // info.name points to `name`
  bool diceable = false;  // has a dice hook
  kind kinds[argument_count_max] = {};
  char name[procedure_name_bytes_max + 1] = {};
};

// find_procedure() returns the entry, or null for an id that is not registered. Wait-free.
const procedure_entry* find_procedure(procedure_id id) noexcept;

// The entry of an id that was checked before.
const procedure_entry& procedure_at(procedure_id id) noexcept;

}  // namespace lev

#endif
