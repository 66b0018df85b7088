// What a procedure's signature means: how a task's arguments become those of a plain C function.
//
// A plan is made once, when Python defines a procedure, and lives as long as the process, as the
// procedure table asks. It is constant afterwards, so any thread may read it.
#pragma once

#include <cstdint>
#include <leveret/leveret.hpp>
#include <memory>
#include <string>
#include <vector>

namespace lev::python {

// An element or value: family 'i' (signed), 'u' (unsigned), 'f' (floating), 'c' (complex) or 'b'
// (a truth value), and its size.
struct scalar {
  char family = 'u';
  std::uint8_t bytes = 8;
  bool operator==(const scalar&) const = default;
};

std::string scalar_name(scalar type);  // "f4"

// A complex number is aligned as its parts are.
constexpr unsigned alignment_of(scalar type) noexcept {
  return type.family == 'c' ? type.bytes / 2u : type.bytes;
}

// Where a parameter of the C function comes from.
enum class source : std::uint8_t { value, memory, far, result, range, count, rows, stride, task };

// One parameter of the C function. count, rows and stride speak of the memory argument `argument`;
// task speaks of none.
struct step {
  source what;
  std::uint8_t argument;  // index among the task's arguments
  scalar type;
};

// One argument of the task.
struct slot {
  kind what;
  scalar type;
  std::string text;  // as the signature has it: "in f4"
  bool is_far = false;
};

// How many elements a memory argument has at least, as its signature says.
enum class least : std::uint8_t {
  any,
  fixed,  // `n` elements
  count,  // as many as argument `n` has
  rows,   // as many as argument `n` has rows
  shape,  // as many rows as argument `n`, each as long as there
};
struct length_rule {
  std::uint8_t argument;  // index among the task's arguments
  least what;
  std::uint64_t n;
};

struct plan {
  std::string name;
  std::string signature;
  void* function = nullptr;  // null: the body is not a C function
  bool returns_code = false;
  std::vector<step> steps;
  std::vector<slot> slots;
  std::vector<kind> kinds;  // of slots
  std::vector<length_rule> lengths;
  // Of the slots, counted once for all tasks.
  unsigned result_count = 0;
  unsigned range_count = 0;
  unsigned memory_count = 0;
  procedure_id id = 0;
  // For worker processes: how the body's part of the plan is made anew there.
  std::vector<unsigned char> portable_bytes;
  portable_context portable;
};

// One parsed parameter as the Python side hands it over.
struct parameter {
  std::string what;  // "value", "in", "far in", "result", "range", "count", "task" and so on
  char family;
  unsigned bytes;
  unsigned of;  // count, rows, stride: position of the memory parameter in the signature
  std::string least = "any";  // memory: the names of enum least
  std::uint64_t least_n = 0;  // a number of elements, or a position in the signature
};

constexpr unsigned integers_max = 14;  // integers and pointers the trampoline passes on
constexpr unsigned floats_max = 8;     // floating-point registers for arguments, on both CPUs

// make_plan() lays out the parameters. Throws lev::error (bad_argument, too_big) saying which
// parameter is at fault.
std::unique_ptr<plan> make_plan(const std::vector<parameter>& parameters);

// call_c_function() is the body of every procedure that is a C function; its context is the plan.
int call_c_function(const call& c);

// make_portable() fills in what worker processes need of a plan whose body is call_c_function().
void make_portable(plan& p);

// trampoline_unavailable() says why C functions cannot be called on this CPU; null when they can.
const char* trampoline_unavailable() noexcept;

}  // namespace lev::python
