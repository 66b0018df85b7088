// The checks that every task passes before it is accepted. A refusal names the argument and says
// what to do.
#pragma once

#include <leveret/status.hpp>
#include <leveret/task.hpp>

#include "task/procedure_table.hpp"

#include <span>

namespace lev {

// refuse() fills in a refusal; `format` takes the arguments of printf. The message names the
// argument first, if it is for one: -1, it is for the task. Always returns false.
bool refuse(refusal* why, status code, int argument_index, const char* format, ...) noexcept
    __attribute__((format(printf, 4, 5)));

// The findings of the checks, for the next steps.
struct draft_facts {
  bool has_address = false;  // some argument names memory
  bool is_sliced = false;    // some argument is sliced
  bool is_strided = false;   // some memory has gaps between its rows, or must be packed
  bool is_far = false;       // some argument is far memory
  bool may_dice = false;     // some argument is sliced, or the procedure has a dice hook
};

// validate() checks a draft against its procedure. On false, `why` says what is wrong.
bool validate(const detail::draft& d, draft_facts* facts, refusal* why) noexcept;

// validate_memory() checks memory alone, for example that of several tasks: sizes, addresses, and
// that no output shares a byte with another argument.
bool validate_memory(std::span<const argument> arguments, refusal* why) noexcept;

}  // namespace lev
