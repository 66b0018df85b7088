// The process-wide table of procedures: append-only, read without locks.
#pragma once

#include <leveret/procedure.hpp>

#include "sync/env.hpp"

namespace lev {

// Aligned, so that its place is found by a shift.
struct alignas(512) procedure_entry {
  procedure_info info;    // info.name points to `name`
  bool diceable = false;  // has a dice hook
  bool is_own = false;    // Leveret's: see register_own()
  // One bit for each argument: those that name memory, those of them that are not results, and
  // those that the task writes.
  std::uint32_t addresses = 0;
  std::uint32_t memory = 0;
  std::uint32_t outputs = 0;
  // The head of a plain task, and the last word of each argument where the mask has bits
  // (task/plain.hpp); a head that no task has: none is plain.
  std::uint32_t plain_head = 0;
  // What plain_kinds_of_call() returns for a plain task, or plain_kinds_never. Written once, behind
  // all others, and read by submitters: publishes the entry.
  atomic<std::uint64_t> plain_kinds{0};
  std::uint64_t plain_words[argument_count_max] = {};
  std::uint64_t plain_masks[argument_count_max] = {};
  kind kinds[argument_count_max] = {};
  char name[procedure_name_bytes_max + 1] = {};
};

static_assert(sizeof(procedure_entry) == 512);

// The table. Constant-initialised and never destroyed: procedures may be registered by constructors
// and used by destructors of any translation unit. Entry 0 stays empty.
struct procedure_table {
  procedure_entry entries[procedure_count_max + 1];
  // Written under the registration lock, read by everyone: publishes the entries below it.
  atomic<std::uint32_t> count{1};
};
extern procedure_table procedures;

// register_own() is register_procedure() for Leveret's own procedures, whose names begin with one
// of these, which no other procedure may use: "leveret.bulk", "leveret.columns.", "leveret.join",
// "leveret.parallel_for". The same procedure may come again. Throws what define() does.
procedure_id register_own(const procedure_info& info);

// refusal_text() says why register_procedure() refused `info` with `code`, and what to do next.
const char* refusal_text(const procedure_info& info, status code) noexcept;

// find_procedure() returns the entry, or null for an id that is not registered. Wait-free.
inline const procedure_entry* find_procedure(procedure_id id) noexcept {
  // Pairs with register_procedure().
  return id != 0 && id < procedures.count.load(memory_order_acquire) ? &procedures.entries[id]
                                                                     : nullptr;
}

// The entry of an id that was checked before.
inline const procedure_entry& procedure_at(procedure_id id) noexcept {
  return procedures.entries[id];
}

}  // namespace lev
