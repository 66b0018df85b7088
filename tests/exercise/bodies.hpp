// The procedures of exercised programs. All have one body, which looks up in the world's board what
// its task is to do; they differ in the kinds of their arguments.
#pragma once

#include "exercise/world.hpp"

#include <cstdint>
#include <string>

namespace lev::exercise {

// The first argument of each task.
struct where {
  board* shared;
  std::uint32_t task;
  std::uint32_t piece;
};

// A record in place of `of` for a body that may not write that one, and what it says in the end.
record& private_record(const record& of);
std::string finding_in(const record& r);

// The procedure for a task's arguments.
procedure_id procedure_for(const task_spec& t) noexcept;

// The descriptor of a task, or of one piece of a bulk.
descriptor describe(const world& w, std::uint32_t task, std::uint32_t piece);
// Makes the description of a bulk's first piece that of the whole: its memory becomes columns.
void make_columns(const world& w, std::uint32_t task, descriptor& d);

// Looks at a flag without giving way until it is set, or for too long: false.
bool spin_on(board& shared, std::uint32_t flag, bool passes_time);

}  // namespace lev::exercise
