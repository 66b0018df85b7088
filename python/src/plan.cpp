// Laying out a signature, and the one trampoline that calls every C function.
//
// Why no libffi is needed. On x86-64 (System V psABI, 3.2.3 "Parameter Passing") and on AArch64
// (AAPCS64, 6.8.2 "Parameter passing rules") integer and pointer arguments take integer registers
// in order, floating-point arguments take floating-point registers in order, and neither sequence
// knows of the other. Whatever order a C function declares its parameters in, it therefore finds
// them in the same registers as if all integers came first:
//   - integers and pointers: rdi rsi rdx rcx r8 r9 (six) or x0..x7 (eight); the rest on the stack,
//     in order, eight bytes each;
//   - float and double: xmm0..7 or d0..d7 (eight). A float is the low half of its register, and
//     what is above is ignored.
// So `function(14 x uint64_t, 8 x double)` serves every signature with at most 8 floating-point and
// 14 other parameters. With no more than 8 floats none goes to the stack, so the stack holds
// integers only, in order. Words that a function does not declare are not looked at: registers are
// volatile, and the caller removes its stack arguments. Narrow integers are extended to 64 bits,
// which covers what compilers assume about the bits above. Not for variadic functions, nor structs
// by value.
#include "plan.hpp"

#include <Python.h>
#include <cxxabi.h>
#include <leveret/leveret.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <type_traits>

namespace lev::python {

namespace {

[[noreturn]] void refuse(status code, std::size_t parameter_index, const std::string& why) {
  const std::string message =
      "signature, parameter " + std::to_string(parameter_index) + ": " + why;
  throw error(code, static_cast<int>(parameter_index), message.c_str());
}

// What the words of a signature stand for.
struct parameter_word {
  const char* name;
  source from;
  kind argument;  // of a parameter that is one
};
constexpr parameter_word parameter_words[] = {
    {"value", source::value, kind::value},   {"in", source::memory, kind::in},
    {"out", source::memory, kind::out},      {"inout", source::memory, kind::inout},
    {"far in", source::far, kind::in},       {"far out", source::far, kind::out},
    {"far inout", source::far, kind::inout}, {"result", source::result, kind::result},
    {"range", source::range, kind::range},   {"count", source::count, kind::value},
    {"rows", source::rows, kind::value},     {"stride", source::stride, kind::value},
    {"task", source::task, kind::value}};

const parameter_word& word_named(std::size_t parameter_index, const std::string& what) {
  for (const parameter_word& w : parameter_words)
    if (what == w.name) return w;
  refuse(status::bad_argument, parameter_index, "there is no '" + what + "'");
}

bool is_derived(source s) {
  return s == source::count || s == source::rows || s == source::stride;
}

// Not about an argument of its own.
bool has_no_slot(source s) {
  return is_derived(s) || s == source::task;
}

bool is_floating(const step& s) {
  return s.what == source::value && s.type.family == 'f';
}

void add_slot(plan& p, const parameter& parsed, const parameter_word& what) {
  slot s;
  s.what = what.argument;
  s.type = {parsed.family, static_cast<std::uint8_t>(parsed.bytes)};
  s.is_far = what.from == source::far;
  p.result_count += s.what == kind::result;
  p.range_count += s.what == kind::range;
  p.memory_count += is_memory(s.what);
  if (what.from == source::range) {
    s.text = "range";
  } else {
    s.text = (what.from == source::value ? "" : parsed.what + " ") + scalar_name(s.type);
  }
  p.kinds.push_back(s.what);
  p.slots.push_back(s);
}

// The slots first: count(i) may speak of a parameter behind it.
std::vector<int> add_slots(plan& p, const std::vector<parameter>& parameters) {
  std::vector<int> slot_of;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const parameter_word& what = word_named(i, parameters[i].what);
    if (has_no_slot(what.from)) {
      slot_of.push_back(-1);
      continue;
    }
    if (p.slots.size() == argument_count_max)
      refuse(status::too_big, i, "a task takes at most 18 arguments");
    slot_of.push_back(static_cast<int>(p.slots.size()));
    add_slot(p, parameters[i], what);
  }
  return slot_of;
}

void add_step(plan& p, const std::vector<parameter>& parameters, const std::vector<int>& slot_of,
              std::size_t i) {
  const auto source_of = [&](std::size_t at) { return word_named(at, parameters[at].what).from; };
  const source what = source_of(i);
  if (what == source::task) return p.steps.push_back({what, 0, {}});
  const std::size_t named = is_derived(what) ? parameters[i].of : i;
  const source of = named < parameters.size() ? source_of(named) : source::value;
  if (is_derived(what) && of != source::memory && (of != source::far || what != source::count))
    refuse(status::bad_argument, i,
           parameters[i].what + "(" + std::to_string(named) +
               ") must name an in, out or inout parameter by its position, counted from 0");
  const int index = slot_of[named];
  p.steps.push_back({what, static_cast<std::uint8_t>(index), p.slots[index].type});
}

least least_named(const std::string& what) {
  if (what == "fixed") return least::fixed;
  if (what == "count") return least::count;
  if (what == "rows") return least::rows;
  return what == "shape" ? least::shape : least::any;
}

void add_length(plan& p, const std::vector<parameter>& parameters, const std::vector<int>& slot_of,
                std::size_t i) {
  const parameter& parsed = parameters[i];
  length_rule rule{static_cast<std::uint8_t>(slot_of[i]), least_named(parsed.least),
                   parsed.least_n};
  if (rule.what == least::any) return;
  if (rule.what != least::fixed) {
    const auto is_memory_at = [&](std::size_t at) {
      return at < parameters.size() && word_named(at, parameters[at].what).from == source::memory;
    };
    if (!is_memory_at(rule.n) || !is_memory_at(i))
      refuse(status::bad_argument, i, "a length must name an in, out or inout parameter");
    rule.n = static_cast<std::uint64_t>(slot_of[rule.n]);
  }
  p.lengths.push_back(rule);
}

void check_counts(const plan& p) {
  unsigned integers = 0;
  unsigned floats = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    if (is_floating(p.steps[i])) {
      ++floats;
    } else {
      integers += p.steps[i].what == source::range ? 2 : 1;
    }
    if (floats > floats_max)
      refuse(status::too_big, i, "more than 8 floating-point values; pass them as `in f8` memory");
    if (integers > integers_max)
      refuse(status::too_big, i,
             "more than 14 integers and pointers; pass values as `in` memory, or drop counts");
  }
}

std::uint64_t extend(std::uint64_t bits, scalar type) {
  const unsigned shift = 64 - 8 * type.bytes;
  if (type.family == 'i')
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
  return bits << shift >> shift;
}

// The words for the two register files, in order.
struct registers {
  std::uint64_t integers[integers_max] = {};
  double floats[floats_max] = {};
  unsigned integer_count = 0;
  unsigned float_count = 0;

  void add(std::uint64_t word) { integers[integer_count++] = word; }
  void add_float(std::uint64_t bits, scalar type) {
    floats[float_count++] = std::bit_cast<double>(extend(bits, type));
  }
};

// rows() of an argument that one row holds, but whose procedure asks for rows, is 1.
void load(registers& words, const step& s, const argument& a) {
  switch (s.what) {
    case source::value:
      return is_floating(s) ? words.add_float(a.address, s.type)
                            : words.add(extend(a.address, s.type));
    case source::memory:
    case source::result:
      return words.add(a.address);
    case source::range:
      return words.add(a.address), words.add(a.row_bytes);
    case source::count:
      return words.add(a.row_bytes / s.type.bytes * a.rows);
    case source::rows:
      return words.add(a.row_bytes == 0 ? 0 : a.rows);  // an empty array has none
    case source::stride:
      return words.add(static_cast<std::uint64_t>(a.stride_bytes / s.type.bytes));
    case source::far:  // an argument is the same in C
      return words.add(reinterpret_cast<std::uintptr_t>(&a));
    case source::task:
      return words.add(reinterpret_cast<std::uintptr_t>(lev_task_table()));
  }
}

using u64 = std::uint64_t;
using function_of_6 = int (*)(u64, u64, u64, u64, u64, u64, double, double, double, double, double,
                              double, double, double);
using function_of_14 = int (*)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64,
                               double, double, double, double, double, double, double, double);

// The usual case leaves the stack alone: six integers fit in the registers of either CPU.
int jump(void* function, const registers& w) {
  const u64* i = w.integers;
  const double* f = w.floats;
  if (w.integer_count <= 6)
    return reinterpret_cast<function_of_6>(function)(i[0], i[1], i[2], i[3], i[4], i[5], f[0], f[1],
                                                     f[2], f[3], f[4], f[5], f[6], f[7]);
  return reinterpret_cast<function_of_14>(function)(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7],
                                                    i[8], i[9], i[10], i[11], i[12], i[13], f[0],
                                                    f[1], f[2], f[3], f[4], f[5], f[6], f[7]);
}

// A Python function that is a native one may want the GIL while the interpreter ends: see gil.hpp.
int jump_unless_over(void* function, const registers& w) {
#ifdef __GLIBCXX__
  try {
    return jump(function, w);
  } catch (abi::__forced_unwind&) {
    while (Py_IsInitialized() == 0) pause();
    throw;
  }
#else
  return jump(function, w);
#endif
}

}  // namespace

std::string scalar_name(scalar type) {
  return type.family + std::to_string(type.bytes);
}

std::unique_ptr<plan> make_plan(const std::vector<parameter>& parameters) {
  auto p = std::make_unique<plan>();
  const std::vector<int> slot_of = add_slots(*p, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    add_step(*p, parameters, slot_of, i);
    add_length(*p, parameters, slot_of, i);
  }
  check_counts(*p);
  return p;
}

int call_c_function(const call& c) {
  const plan& p = *static_cast<const plan*>(c.context);
  registers words;
  for (const step& s : p.steps) load(words, s, c.arguments[s.argument]);
  const int code = jump_unless_over(p.function, words);
  return p.returns_code ? code : 0;
}

namespace {

// What the trampoline needs of a plan, as bytes: this, then the steps.
struct portable_head {
  std::uint32_t returns_code;
  std::uint32_t step_count;
};

void* rebuild_plan(const void* bytes, unsigned byte_count, void* function) {
  portable_head head{};
  if (byte_count < sizeof head) return nullptr;
  std::memcpy(&head, bytes, sizeof head);
  auto* p = new plan;
  p->function = function;
  p->returns_code = head.returns_code != 0;
  p->steps.resize(head.step_count);
  std::memcpy(p->steps.data(), static_cast<const char*>(bytes) + sizeof head,
              head.step_count * sizeof(step));
  return p;
}

}  // namespace

void make_portable(plan& p) {
  static_assert(std::is_trivially_copyable_v<step>);
  static_assert(sizeof(portable_head) + (integers_max + floats_max) * sizeof(step) <=
                portable_context::bytes_max);
  const portable_head head{p.returns_code, static_cast<std::uint32_t>(p.steps.size())};
  p.portable_bytes.resize(sizeof head + p.steps.size() * sizeof(step));
  std::memcpy(p.portable_bytes.data(), &head, sizeof head);
  std::memcpy(p.portable_bytes.data() + sizeof head, p.steps.data(), p.steps.size() * sizeof(step));
  p.portable.bytes = p.portable_bytes.data();
  p.portable.byte_count = static_cast<unsigned>(p.portable_bytes.size());
  p.portable.function = p.function;
  p.portable.rebuild = &rebuild_plan;
}

const char* trampoline_unavailable() noexcept {
#if (defined(__x86_64__) && !defined(__ILP32__)) || \
    (defined(__aarch64__) && !defined(__AARCH64EB__))
  return nullptr;
#else
  return "C functions can be called on x86-64 and AArch64 only; use the C++ API on this CPU";
#endif
}

}  // namespace lev::python
