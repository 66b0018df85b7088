// Procedures: named functions that tasks run.
//
// A procedure is registered once per process and then found by name, in every language. The typed
// front below takes the kinds of its arguments from the C++ signature:
//
//   void saxpy(float a, lev::in<float> x, lev::inout<float> y);
//   const auto saxpy_procedure = lev::define("saxpy", saxpy);
//
// or LEV_PROCEDURE(saxpy) at namespace scope.
//
// Papers: gcell's GC_DECLARE_PROC and lookup_proc; Sol MT's Work::typeID and Dice.
#ifndef LEVERET_PROCEDURE_HPP
#define LEVERET_PROCEDURE_HPP

#include <leveret/args.hpp>
#include <leveret/status.hpp>
#include <leveret/task.hpp>

#include <type_traits>
#include <utility>

namespace lev {

// The input of a procedure's body: its arguments, as seen from the worker.
struct call {
  const argument* arguments;  // local views: `address` is where this worker finds the bytes, rows
                              // are packed or in place
  unsigned argument_count;
  void* context;  // procedure_info::context
};

// The untyped body. Returns 0 on success; any other value fails the task (status::task_failed) and
// is kept as its code. May throw: the exception reaches the waiter.
using body = int (*)(const call&);

// A dice hook splits `whole` into at most `pieces_max` smaller tasks written to `pieces`, and
// returns how many. Together they must do exactly what `whole` does. Returning 0 or 1, or throwing,
// means "cannot be split". Runs under the scheduler's lock: waits and submits for the same
// runtime are refused (would_deadlock). Paper: Sol MT and Jack Rabbit, `Work::Dice`.
using dice_hook = unsigned (*)(const descriptor& whole, descriptor* pieces, unsigned pieces_max);

// A cost hook tells a machine with virtual time how long a task takes, in cycles; if it throws,
// unit cost. Other machines ignore it. Waits and submits as in a dice hook.
using cost_hook = std::uint64_t (*)(const descriptor& task);

// How a procedure's context is made anew in a worker process, where the host's pointers mean
// nothing. Needed by `processes` when `procedure_info::context` points into the heap; a context
// that is null, a function or a static object is found there without it.
struct portable_context {
  static constexpr unsigned bytes_max = 512;

  const void* bytes = nullptr;  // copied to the worker
  unsigned byte_count = 0;      // at most bytes_max
  void* function = nullptr;     // a function or static object, found in the worker too; may be null
  // Runs in the worker, once; its result lives as long as the worker. When it throws, the task
  // fails with bad_procedure.
  void* (*rebuild)(const void* bytes, unsigned byte_count, void* function) = nullptr;
};

// Everything Leveret knows about a procedure. All pointers must stay valid while the process runs;
// the name is copied.
struct procedure_info {
  const char* name = nullptr;
  body run = nullptr;
  void* context = nullptr;
  const kind* kinds = nullptr;  // kind of each argument
  unsigned kind_count = 0;
  dice_hook dice = nullptr;  // null: sliced arguments and ranges are diced automatically
  cost_hook cost = nullptr;  // null: unit cost
  const portable_context* portable = nullptr;  // null: the context needs none
  // Whether a task may be run again when its worker process died in it. False: it has effects
  // outside its declared outputs, and reports worker_died instead.
  bool may_rerun = true;
};

constexpr unsigned procedure_count_max = 1023;
constexpr unsigned procedure_name_bytes_max = 63;

// register_procedure() adds a procedure to the process-wide table. Errors: exists (same name; the
// id of the present one is stored), bad_argument (no name or body, or a reserved name),
// bad_argument_count, too_big (name or table). Names are reserved that begin with "leveret.bulk",
// "leveret.columns.", "leveret.join" or "leveret.parallel_for". Thread safe. May be called while
// runtimes run.
status register_procedure(const procedure_info& info, procedure_id* id) noexcept;

// lookup() finds a procedure by name; 0 when there is none. Thread safe; takes time linear in the
// number of procedures.
procedure_id lookup(const char* name) noexcept;

// procedure_name() returns the name, or "?" for an unknown id. Thread safe.
const char* procedure_name(procedure_id id) noexcept;

// A typed handle of a registered procedure, against which runtime::submit checks a call.
template <class Signature>
struct procedure;

template <class... Parameters>
struct procedure<void(Parameters...)> {
  procedure_id id = 0;
};

namespace detail {

template <class... Parameters>
struct parameter_kinds {
  static_assert(sizeof...(Parameters) <= argument_count_max,
                "a procedure takes at most 18 arguments");
  static constexpr kind values[sizeof...(Parameters) + 1] = {parameter<Parameters>::what...,
                                                             kind::value};
};

constexpr unsigned plain_places_max = 3;
// The kinds of a plain procedure's arguments (values, and so many at most with an address), in one
// word; it is never 0. Or plain_kinds_unknown: there are others.
constexpr std::uint64_t plain_kinds_unknown = ~std::uint64_t{0};
constexpr std::uint64_t plain_kinds_of(const kind* kinds, unsigned count) noexcept {
  std::uint64_t word = 1;
  unsigned places = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (kinds[i] == kind::range || (kinds[i] != kind::value && ++places > plain_places_max))
      return plain_kinds_unknown;
    word = word << 3 | static_cast<std::uint64_t>(kinds[i]);
  }
  return word;
}
template <class... Parameters>
constexpr std::uint64_t plain_kinds =
    plain_kinds_of(parameter_kinds<Parameters...>::values, sizeof...(Parameters));

// Set where the places that a call names were compared, results among them. A procedure's only
// place, if it is a result, is the variable that the caller has named: that needs no comparison.
constexpr std::uint64_t plain_kinds_compared = std::uint64_t{1} << 63;
constexpr bool has_places_to_compare(const kind* kinds, unsigned count) noexcept {
  unsigned places = 0;
  bool has_memory = false;
  for (unsigned i = 0; i < count; ++i) {
    places += kinds[i] != kind::value ? 1 : 0;
    has_memory |= is_memory(kinds[i]);
  }
  return has_memory || places > 1;
}

// The largest virtual address space there is.
constexpr std::uint64_t payload_max = std::uint64_t{1} << 57;

// Whether two places in the address space, neither of which is empty, share no byte: the distance
// from each to the other, modulo 2^64, is at least its size.
constexpr bool are_places_apart(const argument& a, const argument& b) noexcept {
  return b.address - a.address >= a.row_bytes && a.address - b.address >= b.row_bytes;
}
template <kind First>
[[gnu::always_inline]] constexpr bool is_apart_from(const argument&, const argument*) noexcept {
  return true;
}
template <kind First, kind Second, kind... Rest>
[[gnu::always_inline]] constexpr bool is_apart_from(const argument& place,
                                                    const argument* rest) noexcept {
  constexpr bool is_read_twice = First == kind::in && Second == kind::in;
  if constexpr (Second != kind::value && !is_read_twice) {
    if (!are_places_apart(place, rest[0])) return false;
  }
  return is_apart_from<First, Rest...>(place, rest + 1);
}

// are_places_plain() is for the arguments of a call, each of one row, that have plain kinds:
// whether the places that it names are not empty, in the address space, and share no byte that the
// task writes.
template <class = void>
[[gnu::always_inline]] constexpr bool are_places_plain(const argument*) noexcept {
  return true;
}
template <kind First, kind... Rest>
[[gnu::always_inline]] constexpr bool are_places_plain(const argument* packed) noexcept {
  if constexpr (First != kind::value) {
    if (((packed[0].address - 1) | (packed[0].row_bytes - 1)) >= payload_max) return false;
    if (!is_apart_from<First, Rest...>(packed[0], packed + 1)) return false;
  }
  return are_places_plain<Rest...>(packed + 1);
}

// plain_kinds_of() of a call, whose arguments have been packed. Unknown: one of them is not one
// row, is sliced or far, or two share bytes. For views of one row the compiler knows most of it.
template <class... Parameters>
[[gnu::always_inline]] inline std::uint64_t plain_kinds_of_call(const argument* packed) noexcept {
  constexpr unsigned count = sizeof...(Parameters);
  constexpr auto& kinds = parameter_kinds<Parameters...>::values;
  if constexpr (plain_kinds<Parameters...> == plain_kinds_unknown ||
                !has_places_to_compare(kinds, count)) {
    return plain_kinds<Parameters...>;
  } else {
    for (unsigned i = 0; i < count; ++i) {
      if (is_memory(kinds[i]) && (packed[i].rows != 1 || packed[i].flags != 0))
        return plain_kinds_unknown;
    }
    if (!are_places_plain<parameter<Parameters>::what...>(packed)) return plain_kinds_unknown;
    return plain_kinds<Parameters...> | plain_kinds_compared;
  }
}

template <class... Parameters, std::size_t... Index>
void apply(void (*function)(Parameters...), const call& c, std::index_sequence<Index...>) {
  function(parameter<Parameters>::unpack(c.arguments[Index])...);
}

template <class... Parameters>
int run_typed(const call& c) {
  detail::apply(reinterpret_cast<void (*)(Parameters...)>(c.context), c,
                std::index_sequence_for<Parameters...>{});
  return 0;
}

template <class... Parameters>
procedure_info describe(const char* name, void (*function)(Parameters...)) {
  procedure_info info;
  info.name = name;
  info.run = function == nullptr ? nullptr : &run_typed<Parameters...>;
  info.context = reinterpret_cast<void*>(function);
  info.kinds = parameter_kinds<Parameters...>::values;
  info.kind_count = sizeof...(Parameters);
  return info;
}

// register_or_throw() is what define() does once the types are gone.
procedure_id register_or_throw(const procedure_info& info);

// The id of a function registered with LEV_PROCEDURE. Set while the program loads, constant
// afterwards.
template <auto Function>
inline procedure_id id_of = 0;

template <auto Function, class... Parameters>
procedure_id register_function(const char* name, void (*function)(Parameters...)) {
  return id_of<Function> = register_or_throw(detail::describe(name, function));
}
// What is no procedure is refused with what to do.
template <class Result>
constexpr void expect_no_result() noexcept {
  static_assert(std::is_void_v<Result>,
                "a procedure returns nothing: its result is a parameter, lev::result<T>");
}
template <auto Function, class Result, class... Parameters>
  requires(!std::is_void_v<Result>)
procedure_id register_function(const char*, Result (*)(Parameters...)) {
  detail::expect_no_result<Result>();
  return 0;
}
template <class Lambda>
concept is_plain = requires(const Lambda& lambda) { +lambda; };

}  // namespace detail

// define() registers a function, or a lambda that captures nothing, under `name`. Throws lev::error
// when the name is taken or bad, the function null, or the table full. The parameters decide the
// kinds: T by value, lev::result<T>, lev::in<T>, lev::out<T>, lev::inout<T>, lev::range.
template <class... Parameters>
procedure<void(Parameters...)> define(const char* name, void (*function)(Parameters...),
                                      dice_hook dice = nullptr, cost_hook cost = nullptr) {
  procedure_info info = detail::describe(name, function);
  info.dice = dice;
  info.cost = cost;
  return {detail::register_or_throw(info)};
}

template <class Result, class... Parameters>
  requires(!std::is_void_v<Result>)
procedure<void(Parameters...)> define(const char*, Result (*)(Parameters...), dice_hook = nullptr,
                                      cost_hook = nullptr) {
  detail::expect_no_result<Result>();
  return {};
}
// Whatever the lambda says of itself (noexcept, mutable): it becomes a plain function.
template <class Lambda, class Pointer = decltype(+std::declval<const Lambda&>())>
  requires std::is_class_v<Lambda>
auto define(const char* name, Lambda lambda, dice_hook dice = nullptr, cost_hook cost = nullptr) {
  return lev::define(name, static_cast<Pointer>(lambda), dice, cost);
}
template <class Lambda>
  requires(std::is_class_v<Lambda> && !detail::is_plain<Lambda>)
void define(const char*, const Lambda&, dice_hook = nullptr, cost_hook = nullptr) {
  static_assert(detail::is_plain<Lambda>,
                "a procedure is a function, or a lambda that captures nothing and whose parameters "
                "have types: what it needs is passed as arguments");
}

}  // namespace lev

// LEV_PROCEDURE(function) registers a function under its own name while the program loads; submit
// it as `runtime.submit<function>(...)`. At namespace scope, once per function. A name that another
// function has ends the program while it loads, or while it opens the library (std::terminate).
#define LEV_PROCEDURE(function)                                                \
  [[maybe_unused]] static const ::lev::procedure_id lev_procedure_##function = \
      ::lev::detail::register_function<&function>(#function, &function)

#endif
